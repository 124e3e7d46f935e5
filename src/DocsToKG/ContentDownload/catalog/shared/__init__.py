"""The record that several machines share, on PostgreSQL: where it is, its schema, and how questions are put to it."""
