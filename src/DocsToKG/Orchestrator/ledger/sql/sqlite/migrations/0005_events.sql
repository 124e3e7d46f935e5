-- Events for others: who wants them, and what was not delivered yet. While nobody wants any, nothing is written here:
-- the trigger that fills the outbox (outbox_on.sql) is made with the first target and goes with the last.

CREATE TABLE event_targets (
  name TEXT PRIMARY KEY,
  kind TEXT NOT NULL,
  tenant TEXT NOT NULL,
  types TEXT,
  registered_at INTEGER NOT NULL,
  sent INTEGER NOT NULL DEFAULT 0,
  failures INTEGER NOT NULL DEFAULT 0,
  next_at INTEGER NOT NULL DEFAULT 0,
  last_sent_at INTEGER,
  last_error TEXT
) WITHOUT ROWID;

CREATE TABLE events_outbox (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  target TEXT NOT NULL,
  event_type TEXT NOT NULL,
  lane INTEGER NOT NULL,
  tenant TEXT NOT NULL,
  shard INTEGER NOT NULL,
  link INTEGER NOT NULL,
  job_id INTEGER,
  at INTEGER NOT NULL,
  event TEXT NOT NULL,
  from_state TEXT,
  to_state TEXT,
  fence INTEGER,
  attempts INTEGER,
  actor TEXT NOT NULL,
  reason TEXT,
  ticket TEXT,
  detail_json TEXT,
  hash BLOB NOT NULL,
  tries INTEGER NOT NULL DEFAULT 0,
  next_at INTEGER NOT NULL DEFAULT 0,
  claimed_by TEXT,
  dead_at INTEGER,
  last_error TEXT
);

CREATE INDEX events_outbox_waiting ON events_outbox (target, id) WHERE dead_at IS NULL;
CREATE INDEX events_outbox_tried ON events_outbox (target, tenant, lane, id) WHERE dead_at IS NULL AND tries > 0;
CREATE INDEX events_outbox_dead ON events_outbox (target, id) WHERE dead_at IS NOT NULL;
