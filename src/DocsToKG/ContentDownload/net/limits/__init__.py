"""How often, how many at once and whether at all a host may be asked now."""
