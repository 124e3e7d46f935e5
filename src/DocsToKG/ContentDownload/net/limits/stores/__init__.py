"""Where limits are counted: in this process, for this machine (SQLite), for many machines (Redis or Valkey)."""
