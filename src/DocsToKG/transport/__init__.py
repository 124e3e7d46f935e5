"""HTTP/1.1 to the outside world: checked addresses, total deadlines, calls that can be called off."""
