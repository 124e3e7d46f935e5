-- arXiv's metadata, one object for each paper. The file is asked for at the host that is set aside for programs.
SELECT
  'arxiv:' || arxiv_of(id) AS record,
  update_date::VARCHAR AS updated,
  doi_of(regexp_extract(doi, '^\S+')) AS doi,
  arxiv_of(id) AS arxiv_id,
  NULL::VARCHAR AS pmcid, NULL::VARCHAR AS pmid, NULL::VARCHAR AS openalex_id,
  regexp_replace(title, '\s+', ' ', 'g') AS title,
  try_cast(regexp_extract(versions[1].created, '\b([12][0-9]{3})\b', 1) AS INTEGER) AS year,
  string_split_regex(authors, ',\s*|\s+and\s+')[:5] AS authors, NULL::VARCHAR AS pages,
  'preprint' AS type,
  NULL::BOOLEAN AS is_retracted,
  'green' AS oa_status,
  [copy_of('https://export.arxiv.org/pdf/' || arxiv_of(id), 'pdf', NULL::VARCHAR, 'repository', license, 'submittedVersion',
    'arxiv_id', 'oai:arXiv.org:' || arxiv_of(id), NULL::VARCHAR)] AS copies,
  file, id AS raw_id
FROM {parts}
