"""Where proved bytes live: names people read, the content-addressed store, and the local disk."""
