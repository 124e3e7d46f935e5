-- PMC's inventory names the metadata that are of today: `metadata/PMC<n>.<v>.json` in the second column.
CREATE OR REPLACE TEMP TABLE inventory AS
SELECT regexp_extract(key, 'metadata/(PMC[0-9.]+)\.json', 1) AS name
FROM read_csv({files}, header=false, null_padding=true, ignore_errors=true,
  columns={'bucket': 'VARCHAR', 'key': 'VARCHAR', 'modified': 'VARCHAR', 'etag': 'VARCHAR'})
WHERE contains(key, 'metadata/PMC')
