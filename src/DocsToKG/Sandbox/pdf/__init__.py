"""PDF files of papers, as the programs of publishers, repositories and authors write them."""

from __future__ import annotations

from DocsToKG.Sandbox.pdf.paper import Paper, make_pdf

__all__ = ["Paper", "make_pdf"]
