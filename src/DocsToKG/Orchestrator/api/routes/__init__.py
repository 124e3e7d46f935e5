"""One file per resource: the forms of its bodies and its routes. A route parses, calls one service, shows."""
