-- The records of a source as rows of the index: one under the work's key with all that is known, and one under each
-- other name that points to the key. A record without a name is a bad line; its bucket is NULL.
WITH records AS (
  {records}
), work AS (
  SELECT *, names_of(doi, arxiv_id, pmcid, pmid, openalex_id) AS names FROM records
)
SELECT
  bucket_of(name, {buckets}) AS bucket,
  name AS key,
  CASE WHEN name <> names[1] THEN names[1] END AS same_as,
  '{source}' AS source,
  record,
  updated,
  CASE WHEN name = names[1] THEN names END AS ids,
  CASE WHEN name = names[1] THEN left(title, 500) END AS title,
  CASE WHEN name = names[1] THEN year END::SMALLINT AS year,
  CASE WHEN name = names[1] THEN authors[:5] END AS authors,
  CASE WHEN name = names[1] THEN left(pages, 40) END AS pages,
  CASE WHEN name = names[1] THEN type END AS type,
  CASE WHEN name = names[1] THEN is_retracted END AS is_retracted,
  CASE WHEN name = names[1] THEN oa_status END AS oa_status,
  CASE WHEN name = names[1] THEN copies END AS copies,
  CASE WHEN name IS NULL THEN file END AS bad_in,
  CASE WHEN name IS NULL THEN left(raw_id, 200) END AS raw_id
FROM (SELECT *, unnest(CASE WHEN record IS NULL OR len(names) = 0 THEN [NULL] ELSE names END) AS name FROM work)
