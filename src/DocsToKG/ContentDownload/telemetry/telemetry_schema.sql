-- The record of runs: what was tried, what was obtained, what it cost. One writer; anyone may read.
-- Changes are additive (new tables, new nullable or defaulted columns), so that one rule upgrades every older file,
-- also one of the same version that lacks a column: the version number changes only when old programs must keep out.

-- One row per processing attempt of a work; the last row of a doc_id is its latest outcome.
CREATE TABLE manifests (
  id             INTEGER PRIMARY KEY,
  run_id         TEXT,
  doc_id         TEXT,
  stage          TEXT,
  url            TEXT,
  canonical_url  TEXT,
  role           TEXT,
  status         TEXT,     -- ok | skipped | error
  http_status    INTEGER,
  mime           TEXT,
  size_bytes     INTEGER,
  sha256         TEXT,
  path           TEXT,
  attempt        INTEGER,
  duration_ms    INTEGER,
  retry_after_s  REAL,
  cache_hit      INTEGER,
  resolver       TEXT,
  tier           TEXT,
  fallback_chain TEXT,     -- JSON array of source names, in the order tried
  created_at     TEXT,
  config_hash    TEXT,
  worker_id      TEXT,
  outcome        TEXT,     -- success | skip | error
  reason         TEXT,
  bytes          INTEGER,
  title          TEXT,
  year           INTEGER,
  license        TEXT,     -- SPDX name
  oa_status      TEXT,
  version        TEXT,
  host_type      TEXT,
  evidence       TEXT,
  hops           TEXT,     -- JSON array of {url, status}
  dedupe         TEXT,     -- new | duplicate | adopted
  ttfp_ms        INTEGER,  -- first request to proved file, less waited_ms
  waited_ms      INTEGER,  -- spent waiting for our own limits
  lease_id       TEXT,
  candidates     TEXT,     -- JSON array of {url, source, reason, http_status, evidence, is_guess, quarantine}
  license_raw    TEXT,     -- in the words of the source
  doi_seen       TEXT,
  is_retracted   INTEGER,
  is_guess       INTEGER,
  cause          TEXT,     -- of a miss: one token
  explanation    TEXT,     -- of a miss: one sentence
  proof          TEXT,     -- how sure it is that the file is the work
  damaged        INTEGER,  -- kept on request
  validation     TEXT,     -- JSON object: what was read of the file, and the evidence
  doi            TEXT,     -- of the work that was asked for
  version_doi    TEXT,     -- of the version that is stored
  supplements    TEXT      -- JSON list: files beside the paper
);
-- A lease ends once: saying so again after a crash adds nothing.
CREATE UNIQUE INDEX manifests_one_per_lease ON manifests (lease_id, doc_id) WHERE lease_id IS NOT NULL;
CREATE INDEX manifests_by_doc ON manifests (doc_id, id, status, stage);
CREATE INDEX manifests_by_run ON manifests (run_id, id);
-- What was taken down: no success before such a line counts any more.
CREATE INDEX manifests_takedowns ON manifests (doc_id, id) WHERE stage = 'takedown';
-- Works whose files wait in quarantine.
CREATE INDEX manifests_quarantined ON manifests (id) WHERE proof = 'unproved' AND status = 'error';

-- Finished artifacts: which bytes stand for which work, and where.
CREATE TABLE downloads (
  doc_id        TEXT NOT NULL,
  sha256        TEXT NOT NULL,
  size_bytes    INTEGER,
  path          TEXT,
  mime          TEXT,
  url           TEXT,
  canonical_url TEXT,
  license       TEXT,
  oa_status     TEXT,
  version       TEXT,
  dedupe        TEXT,
  run_id        TEXT,
  manifest_id   INTEGER,
  created_at    TEXT,
  verified_at   TEXT,
  corrupt       INTEGER NOT NULL DEFAULT 0,  -- found damaged or missing since it was stored
  proof         TEXT,
  damaged       INTEGER,  -- it came so, and was kept on request
  version_doi   TEXT,
  PRIMARY KEY (doc_id, sha256)
);
CREATE INDEX downloads_by_digest ON downloads (sha256);
CREATE INDEX downloads_unproved ON downloads (doc_id) WHERE proof = 'unproved';
CREATE INDEX downloads_damaged ON downloads (sha256) WHERE corrupt <> 0;

-- Every network or cache decision; the first twelve columns after id are those of attempts.csv.
CREATE TABLE http_events (
  id                 INTEGER PRIMARY KEY,
  ts                 TEXT,
  run_id             TEXT,
  resolver           TEXT,
  url                TEXT,
  verb               TEXT,
  status             TEXT,
  http_status        INTEGER,
  content_type       TEXT,
  elapsed_ms         INTEGER,
  bytes_written      INTEGER,
  content_length_hdr INTEGER,
  reason             TEXT,
  work_id            TEXT,
  host               TEXT,
  role               TEXT,
  from_cache         INTEGER,
  revalidated        INTEGER,
  retry_after_s      REAL
);
CREATE INDEX http_events_by_work ON http_events (work_id, id);

CREATE TABLE rate_events (
  id       INTEGER PRIMARY KEY,
  ts       TEXT,
  run_id   TEXT,
  key      TEXT,     -- host:<host> or resolver:<name>
  why      TEXT,
  delay_ms INTEGER,
  work_id  TEXT,
  resolver TEXT,
  role     TEXT
);

CREATE TABLE breaker_transitions (
  id              INTEGER PRIMARY KEY,
  ts              TEXT,
  run_id          TEXT,
  key             TEXT,
  old_state       TEXT,
  new_state       TEXT,
  reason          TEXT,
  reset_timeout_s REAL
);

-- Every source tried for a work, tier by tier.
CREATE TABLE fallback_attempts (
  id          INTEGER PRIMARY KEY,
  ts          TEXT,
  run_id      TEXT,
  work_id     TEXT,
  tier        TEXT,
  source      TEXT,
  outcome     TEXT,
  reason      TEXT,
  host        TEXT,
  http_status INTEGER,
  elapsed_ms  INTEGER,
  stage       TEXT      -- resolve: the source itself was asked; fetch: a file that it named
);
CREATE INDEX fallback_attempts_by_work ON fallback_attempts (work_id, id);

-- One row per run; finished_at stays empty when the run was cut off.
CREATE TABLE run_summary (
  run_id               TEXT PRIMARY KEY,
  started_at           TEXT,
  finished_at          TEXT,
  config_hash          TEXT,
  artifacts_total      INTEGER,
  artifacts_success    INTEGER,
  artifacts_skipped    INTEGER,
  artifacts_failed     INTEGER,
  yield_pct            REAL,
  bytes                INTEGER,
  requests             INTEGER,
  http_429_ratio       REAL,
  cache_hit_pct        REAL,
  ttfp_p50_ms          INTEGER,
  ttfp_p95_ms          INTEGER,
  rate_delay_p95_ms    INTEGER,
  breaker_open_events  INTEGER,
  dedupe_saved_mb      REAL,
  corruption_count     INTEGER,
  catalog_write_p95_ms REAL
);

-- The latest summary payload of each run, as in summary.json.
CREATE TABLE summaries (
  run_id     TEXT PRIMARY KEY,
  created_at TEXT,
  payload    TEXT
);

-- How far the text files have followed: rows first_id..last_id stand in bytes base_bytes..end_bytes of the file.
CREATE TABLE projections (
  name       TEXT PRIMARY KEY,
  first_id   INTEGER NOT NULL DEFAULT 1,
  base_bytes INTEGER NOT NULL DEFAULT 0,
  last_id    INTEGER NOT NULL DEFAULT 0,
  end_bytes  INTEGER NOT NULL DEFAULT 0
);

-- What full blocks of a table come to, counted once: a report adds them up. They are no more than a saving; rows of these
-- tables are only ever added, and where somebody changes one all the same, its block is counted anew.
CREATE TABLE folds (
  name     TEXT NOT NULL,     -- of what is counted
  first_id INTEGER NOT NULL,
  last_id  INTEGER NOT NULL,
  of_table TEXT NOT NULL,
  rules    INTEGER NOT NULL,  -- by which it was counted
  runs     TEXT NOT NULL,     -- JSON array: whose rows they are
  first_at TEXT NOT NULL,
  last_at  TEXT NOT NULL,
  counted  TEXT NOT NULL,     -- JSON object
  PRIMARY KEY (name, first_id)
);
CREATE TRIGGER manifests_updated AFTER UPDATE ON manifests BEGIN
  DELETE FROM folds WHERE of_table = 'manifests' AND old.id BETWEEN first_id AND last_id;
END;
CREATE TRIGGER manifests_deleted AFTER DELETE ON manifests BEGIN
  DELETE FROM folds WHERE of_table = 'manifests' AND old.id BETWEEN first_id AND last_id;
END;
CREATE TRIGGER http_events_updated AFTER UPDATE ON http_events BEGIN
  DELETE FROM folds WHERE of_table = 'http_events' AND old.id BETWEEN first_id AND last_id;
END;
CREATE TRIGGER http_events_deleted AFTER DELETE ON http_events BEGIN
  DELETE FROM folds WHERE of_table = 'http_events' AND old.id BETWEEN first_id AND last_id;
END;
CREATE TRIGGER fallback_attempts_updated AFTER UPDATE ON fallback_attempts BEGIN
  DELETE FROM folds WHERE of_table = 'fallback_attempts' AND old.id BETWEEN first_id AND last_id;
END;
CREATE TRIGGER fallback_attempts_deleted AFTER DELETE ON fallback_attempts BEGIN
  DELETE FROM folds WHERE of_table = 'fallback_attempts' AND old.id BETWEEN first_id AND last_id;
END;
CREATE TRIGGER rate_events_updated AFTER UPDATE ON rate_events BEGIN
  DELETE FROM folds WHERE of_table = 'rate_events' AND old.id BETWEEN first_id AND last_id;
END;
CREATE TRIGGER rate_events_deleted AFTER DELETE ON rate_events BEGIN
  DELETE FROM folds WHERE of_table = 'rate_events' AND old.id BETWEEN first_id AND last_id;
END;

-- The name under which this record's rows are known in one that several machines share.
CREATE TABLE journal (
  id TEXT PRIMARY KEY
);

-- A work that was obtained stays obtained unless it was taken down; otherwise its latest row speaks.
CREATE VIEW catalog_entries AS
SELECT doc_id, CASE WHEN obtained THEN 'ok' ELSE status END AS status
  FROM (SELECT m.doc_id, m.status, MAX(m.id),
               SUM(m.status = 'ok' AND NOT EXISTS (SELECT 1 FROM manifests t WHERE t.stage = 'takedown'
                                                      AND t.doc_id = m.doc_id AND t.id > m.id)) > 0 AS obtained
          FROM manifests m GROUP BY m.doc_id);
