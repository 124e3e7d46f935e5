"""What robots.txt allows."""
