"""Promised import paths for the client and the cache builders. Not the library of that name."""
