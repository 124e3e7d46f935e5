"""The read side of the record: what was obtained, from where, and how well the runs went."""
