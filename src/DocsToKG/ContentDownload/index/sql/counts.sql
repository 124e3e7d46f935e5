-- Of the collected rows of one hash: all of them, and the works by what is known of their access.
SELECT
  (SELECT count(*) FROM collected),
  count(*),
  count(*) FILTER (copies > 0),
  count(*) FILTER (copies = 0 AND is_told),
  coalesce(sum(copies), 0)
FROM (
  SELECT key, sum(len(copies)) AS copies, bool_or(source IN ({telling})) AS is_told
  FROM collected WHERE same_as IS NULL GROUP BY key
)
