"""The history of a tenant: as a feed, as operators' decisions, and as rates by the minute."""
