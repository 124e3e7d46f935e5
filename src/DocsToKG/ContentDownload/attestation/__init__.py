"""A corpus that others can check: a signed list of its files, and the check of a copy against it."""
