"""Is this file the paper? Bytes are proved here before they count; nothing in this room fetches or stores."""
