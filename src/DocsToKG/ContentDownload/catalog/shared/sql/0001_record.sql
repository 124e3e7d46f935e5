-- The record of runs on many machines: the tables of a run's own record, and how much of each machine's has arrived.
-- Texts compare byte by byte, as in the machines' own records.

CREATE TABLE record.manifests (
  id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  run_id         text COLLATE "C",
  doc_id         text COLLATE "C",
  stage          text COLLATE "C",
  url            text COLLATE "C",
  canonical_url  text COLLATE "C",
  role           text COLLATE "C",
  status         text COLLATE "C",
  http_status    bigint,
  mime           text COLLATE "C",
  size_bytes     bigint,
  sha256         text COLLATE "C",
  path           text COLLATE "C",
  attempt        bigint,
  duration_ms    bigint,
  retry_after_s  double precision,
  cache_hit      bigint,
  resolver       text COLLATE "C",
  tier           text COLLATE "C",
  fallback_chain text COLLATE "C",
  created_at     text COLLATE "C",
  config_hash    text COLLATE "C",
  worker_id      text COLLATE "C",
  outcome        text COLLATE "C",
  reason         text COLLATE "C",
  bytes          bigint,
  title          text COLLATE "C",
  year           bigint,
  license        text COLLATE "C",
  oa_status      text COLLATE "C",
  version        text COLLATE "C",
  host_type      text COLLATE "C",
  evidence       text COLLATE "C",
  hops           text COLLATE "C",
  dedupe         text COLLATE "C",
  ttfp_ms        bigint,
  waited_ms      bigint,
  lease_id       text COLLATE "C",
  candidates     text COLLATE "C",
  license_raw    text COLLATE "C",
  doi_seen       text COLLATE "C",
  is_retracted   bigint,
  is_guess       bigint,
  cause          text COLLATE "C",
  explanation    text COLLATE "C"
);
CREATE UNIQUE INDEX manifests_one_per_lease ON record.manifests (doc_id, lease_id) WHERE lease_id IS NOT NULL;
CREATE INDEX manifests_by_doc ON record.manifests (doc_id, id);
CREATE INDEX manifests_by_run ON record.manifests (run_id, id);
CREATE INDEX manifests_takedowns ON record.manifests (doc_id, id) WHERE stage = 'takedown';

CREATE TABLE record.downloads (
  doc_id        text COLLATE "C" NOT NULL,
  sha256        text COLLATE "C" NOT NULL,
  size_bytes    bigint,
  path          text COLLATE "C",
  mime          text COLLATE "C",
  url           text COLLATE "C",
  canonical_url text COLLATE "C",
  license       text COLLATE "C",
  oa_status     text COLLATE "C",
  version       text COLLATE "C",
  dedupe        text COLLATE "C",
  run_id        text COLLATE "C",
  manifest_id   bigint,
  created_at    text COLLATE "C",
  verified_at   text COLLATE "C",
  corrupt       bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (doc_id, sha256)
);
CREATE INDEX downloads_by_digest ON record.downloads (sha256);

CREATE TABLE record.http_events (
  id                 bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  ts                 text COLLATE "C",
  run_id             text COLLATE "C",
  resolver           text COLLATE "C",
  url                text COLLATE "C",
  verb               text COLLATE "C",
  status             text COLLATE "C",
  http_status        bigint,
  content_type       text COLLATE "C",
  elapsed_ms         bigint,
  bytes_written      bigint,
  content_length_hdr bigint,
  reason             text COLLATE "C",
  work_id            text COLLATE "C",
  host               text COLLATE "C",
  role               text COLLATE "C",
  from_cache         bigint,
  revalidated        bigint,
  retry_after_s      double precision
);
CREATE INDEX http_events_by_work ON record.http_events (work_id, id);

CREATE TABLE record.rate_events (
  id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  ts       text COLLATE "C",
  run_id   text COLLATE "C",
  key      text COLLATE "C",
  why      text COLLATE "C",
  delay_ms bigint,
  work_id  text COLLATE "C",
  resolver text COLLATE "C",
  role     text COLLATE "C"
);

CREATE TABLE record.breaker_transitions (
  id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  ts              text COLLATE "C",
  run_id          text COLLATE "C",
  key             text COLLATE "C",
  old_state       text COLLATE "C",
  new_state       text COLLATE "C",
  reason          text COLLATE "C",
  reset_timeout_s double precision
);

CREATE TABLE record.fallback_attempts (
  id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  ts          text COLLATE "C",
  run_id      text COLLATE "C",
  work_id     text COLLATE "C",
  tier        text COLLATE "C",
  source      text COLLATE "C",
  outcome     text COLLATE "C",
  reason      text COLLATE "C",
  host        text COLLATE "C",
  http_status bigint,
  elapsed_ms  bigint,
  stage       text COLLATE "C"
);
CREATE INDEX fallback_attempts_by_work ON record.fallback_attempts (work_id, id);

CREATE TABLE record.run_summary (
  run_id               text COLLATE "C" PRIMARY KEY,
  started_at           text COLLATE "C",
  finished_at          text COLLATE "C",
  config_hash          text COLLATE "C",
  artifacts_total      bigint,
  artifacts_success    bigint,
  artifacts_skipped    bigint,
  artifacts_failed     bigint,
  yield_pct            double precision,
  bytes                bigint,
  requests             bigint,
  http_429_ratio       double precision,
  cache_hit_pct        double precision,
  ttfp_p50_ms          bigint,
  ttfp_p95_ms          bigint,
  rate_delay_p95_ms    bigint,
  breaker_open_events  bigint,
  dedupe_saved_mb      double precision,
  corruption_count     bigint,
  catalog_write_p95_ms double precision
);

CREATE TABLE record.summaries (
  run_id     text COLLATE "C" PRIMARY KEY,
  created_at text COLLATE "C",
  payload    text COLLATE "C"
);

-- One row per machine's own record: the last of its rows, table by table, that has arrived here.
CREATE TABLE record.journals (
  journal             text COLLATE "C" PRIMARY KEY,
  node                text COLLATE "C",
  seen_at             timestamptz NOT NULL DEFAULT now(),
  last_line           text COLLATE "C",
  manifests           bigint NOT NULL DEFAULT 0,
  fallback_attempts   bigint NOT NULL DEFAULT 0,
  http_events         bigint NOT NULL DEFAULT 0,
  rate_events         bigint NOT NULL DEFAULT 0,
  breaker_transitions bigint NOT NULL DEFAULT 0
);

-- What was taken down, by whichever machine: refused by all. A change gets a number behind all others.
CREATE SEQUENCE record.takedown_changes;
CREATE TABLE record.takedowns (
  doc_id   text COLLATE "C",
  taken_at text COLLATE "C",
  stands   boolean NOT NULL,
  entry    text NOT NULL,
  change   bigint NOT NULL DEFAULT nextval('record.takedown_changes'),
  PRIMARY KEY (doc_id, taken_at)
);
CREATE INDEX takedowns_by_change ON record.takedowns (change);

-- A work that was obtained stays obtained unless it was taken down; otherwise its latest row speaks.
CREATE VIEW record.catalog_entries AS
SELECT doc_id,
       CASE WHEN bool_or(status = 'ok' AND NOT EXISTS (
                   SELECT 1 FROM record.manifests t
                    WHERE t.stage = 'takedown' AND t.doc_id = m.doc_id AND t.id > m.id))
            THEN 'ok' ELSE (array_agg(status ORDER BY id DESC))[1] END AS status
  FROM record.manifests m GROUP BY doc_id;

CREATE FUNCTION record.copies_of(candidates text)
RETURNS TABLE (place bigint, host text, reason text) LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT n, lower(split_part(split_part(copy ->> 'url', '://', 2), '/', 1)), copy ->> 'reason'
    FROM json_array_elements(coalesce(candidates, '[]')::json) WITH ORDINALITY AS c (copy, n)
   WHERE coalesce(copy ->> 'url', '') <> ''
$$;

-- Where the copy stands that decided about a miss: the first that failed for this cause, else the first.
CREATE FUNCTION record.host_of_copies(candidates text, cause text)
RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT c.host FROM record.copies_of(candidates) c
   ORDER BY (c.reason IS NOT DISTINCT FROM cause) DESC, c.place LIMIT 1
$$;

-- Whether a copy of a work that was missed stands at the host.
CREATE FUNCTION record.copies_at(wanted text, candidates text)
RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT EXISTS (SELECT 1 FROM record.copies_of(candidates) c
                  WHERE CASE WHEN wanted LIKE '.%' THEN right('.' || c.host, length(wanted)) = wanted
                             ELSE c.host = wanted OR starts_with(c.host, wanted || ':') END)
$$;
