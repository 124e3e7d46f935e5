"""What the indexes answer, read into values."""
