-- The key of each requested work, by the first of its names that the index knows. A name that points to several works tells
-- none of them.
INSERT INTO keys
SELECT work, min(key), bucket_of(min(key), ?) AS bucket
FROM (
  SELECT a.work, coalesce(r.same_as, r.key) AS key, a.name
  FROM (SELECT key, same_as FROM read_parquet({files})) r JOIN requested a ON r.key = a.name
  QUALIFY a.rank = min(a.rank) OVER (PARTITION BY a.work)
)
GROUP BY work
HAVING min(key) = max(key)
ORDER BY bucket
