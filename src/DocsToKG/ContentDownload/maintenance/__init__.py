"""Looking after a corpus: are the stored files whole, what is nobody's, what may not be kept."""
