"""Is a document the work? Verdicts with their evidence, pure."""
