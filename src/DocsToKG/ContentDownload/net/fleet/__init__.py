"""What the machines of a fleet must know of each other, on one Redis or Valkey server."""
