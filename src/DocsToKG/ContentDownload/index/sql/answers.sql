-- What the rows of some files say of the works in `keys` (work, key): one row for each work, its copies best source first.
SELECT work, min(key) AS key,
  list_distinct(flatten(list(ids))) AS ids,
  first(title ORDER BY rank) FILTER (title IS NOT NULL) AS title,
  first(year ORDER BY rank) FILTER (year IS NOT NULL) AS year,
  first(authors ORDER BY rank) FILTER (len(authors) > 0) AS authors,
  first(pages ORDER BY rank) FILTER (pages IS NOT NULL) AS pages,
  first(type ORDER BY rank) FILTER (type IS NOT NULL) AS type,
  bool_or(is_retracted) AS is_retracted,
  first(oa_status ORDER BY rank) FILTER (oa_status IS NOT NULL) AS oa_status,
  flatten(list(list_transform(copies, lambda c: struct_insert(c, source := source)) ORDER BY rank)) AS copies,
  bool_or(source IN ({telling})) AS is_told
FROM (
  SELECT k.work, r.*, list_position({sources}, r.source) AS rank
  FROM read_parquet({files}) r JOIN {keys} k ON r.key = k.key
  WHERE r.same_as IS NULL
)
GROUP BY work
