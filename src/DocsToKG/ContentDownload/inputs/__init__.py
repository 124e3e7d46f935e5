"""What the user gave, entry by entry: identifiers, lists, tables, JSON, BibTeX and RIS."""

from DocsToKG.ContentDownload.inputs.readers import InputLine, coerce_works, read_inputs

__all__ = ["InputLine", "coerce_works", "read_inputs"]
