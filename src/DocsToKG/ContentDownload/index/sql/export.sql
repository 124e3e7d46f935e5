-- One row for each copy, and one without an address for each work of which no copy is known.
SELECT key AS id, source, title, year, array_to_string(authors, '; ') AS authors, type, is_retracted, oa_status, copy.url AS url, copy.kind AS kind, copy.page AS page,
  host_of(copy.url) AS host, copy.host_type AS host_type, copy.license AS license, copy.version AS version,
  copy.evidence AS evidence, copy.checksum AS checksum, array_to_string(ids, ' ') AS ids, updated
FROM (SELECT *, unnest(CASE WHEN len(copies) > 0 THEN copies ELSE [NULL] END) AS copy FROM read_parquet({files}) WHERE same_as IS NULL)
