-- A table of one's own: an identifier and the address of a copy in each row.
SELECT
  name || ' ' || url AS record,
  NULL::VARCHAR AS updated,
  CASE WHEN starts_with(name, 'doi:') THEN substr(name, 5) END AS doi,
  CASE WHEN starts_with(name, 'arxiv:') THEN substr(name, 7) END AS arxiv_id,
  CASE WHEN starts_with(name, 'pmcid:') THEN substr(name, 7) END AS pmcid,
  CASE WHEN starts_with(name, 'pmid:') THEN substr(name, 6) END AS pmid,
  CASE WHEN starts_with(name, 'openalex:') THEN substr(name, 10) END AS openalex_id,
  title,
  try_cast(year AS INTEGER) AS year,
  NULL::VARCHAR[] AS authors, NULL::VARCHAR AS pages,
  NULL::VARCHAR AS type, NULL::BOOLEAN AS is_retracted, NULL::VARCHAR AS oa_status,
  [copy_of(url, coalesce(kind, 'pdf'), NULL::VARCHAR, host_type, license, version, coalesce(evidence, 'table'), NULL::VARCHAR, checksum)]
    AS copies,
  file, id AS raw_id
FROM (SELECT *, name_of(trim(id)) AS name FROM {parts})
