"""Signed bundles of the history, and a verifier that needs nothing but the bundle and the trusted keys."""
