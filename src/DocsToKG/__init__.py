"""DocsToKG: acquire open research papers, with proof."""
