"""Acquiring open research artifacts: from an identifier to a proved file with its licence and provenance."""
