"""Where might the PDF be? One file per source, and the names papers go by."""
