"""Proof for outsiders: bundles of what happened, signed, and the verifier that needs nothing but the bundle."""
