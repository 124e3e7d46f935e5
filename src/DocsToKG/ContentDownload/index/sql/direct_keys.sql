-- The key of each requested work that is named once. A DOI is the strongest name, so it is a key or nothing.
CREATE OR REPLACE TEMP TABLE keys AS
SELECT work, name AS key, bucket_of(name, {buckets}) AS bucket FROM requested WHERE starts_with(name, 'doi:')
UNION ALL
SELECT work, min(key), bucket_of(min(key), {buckets})
FROM (
  SELECT a.work, coalesce(r.same_as, r.key) AS key
  FROM (SELECT key, same_as FROM read_parquet({files})) r JOIN (FROM requested WHERE NOT starts_with(name, 'doi:')) a
    ON r.key = a.name
)
GROUP BY work HAVING min(key) = max(key)
ORDER BY bucket
