"""Who calls: bearer tokens, the keys they are checked with, permissions and rate limits."""
