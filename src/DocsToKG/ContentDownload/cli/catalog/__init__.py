"""`content catalog`: inspect what was obtained, check it, export it, sign it."""
