"""PDFs: their structure, damage and text, read in worker processes."""
