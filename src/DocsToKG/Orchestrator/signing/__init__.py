"""Signatures that outsiders can check: DSSE envelopes, Ed25519 keys, whom to trust."""
