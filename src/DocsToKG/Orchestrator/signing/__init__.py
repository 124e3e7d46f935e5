"""Signatures: DSSE envelopes, Ed25519 keys, trust files."""
