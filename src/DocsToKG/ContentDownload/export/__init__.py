"""A corpus in the forms that other programs and archives take."""
