"""The floor: pure rules and small values, no I/O, imported by every other package."""
