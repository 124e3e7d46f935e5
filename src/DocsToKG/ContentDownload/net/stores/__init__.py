"""The places where cache entries are kept: a folder, an SQLite file, a Redis or Valkey server, an S3 bucket."""
