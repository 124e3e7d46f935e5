-- DataCite's public file. Only works in words; a registered file or page counts where the rights say that it is open.
SELECT
  'doi:' || doi_of(attributes.doi) AS record,
  attributes.updated::VARCHAR AS updated,
  doi_of(attributes.doi) AS doi,
  NULL::VARCHAR AS arxiv_id, NULL::VARCHAR AS pmcid, NULL::VARCHAR AS pmid, NULL::VARCHAR AS openalex_id,
  attributes.titles[1].title AS title,
  CASE WHEN attributes.publicationYear BETWEEN 1000 AND 3000 THEN attributes.publicationYear END AS year,
  list_transform(attributes.creators[:5], lambda c: c.name) AS authors, NULL::VARCHAR AS pages,
  lower(attributes.types.resourceTypeGeneral) AS type,
  NULL::BOOLEAN AS is_retracted,
  NULL::VARCHAR AS oa_status,
  CASE WHEN len(open) = 0 THEN [] ELSE
    list_transform(list_filter(CASE WHEN starts_with(content, '[') THEN content::VARCHAR[] ELSE [content] END,
        lambda u: starts_with(u, 'http')),
      lambda u: copy_of(u, 'pdf', attributes.url, 'repository', rights, NULL::VARCHAR, 'contentUrl', NULL::VARCHAR, NULL::VARCHAR))
    || CASE WHEN attributes.url IS NULL THEN [] ELSE [copy_of(attributes.url,
        CASE WHEN regexp_matches(lower(attributes.url), '\.pdf$') THEN 'pdf' ELSE 'page' END, NULL::VARCHAR, 'repository', rights,
        NULL::VARCHAR, 'url', NULL::VARCHAR, NULL::VARCHAR)] END
  END AS copies,
  file, attributes.doi AS raw_id
FROM (
  SELECT *,
    trim(attributes.contentUrl::VARCHAR, '"') AS content,
    list_filter(coalesce(attributes.rightsList, []), lambda r: regexp_matches(
      lower(concat_ws(' ', r.rightsUri, r.rightsIdentifier, r.rights)), 'creativecommons\.org|\bcc-|openaccess|open access')) AS open,
    coalesce(open[1].rightsIdentifier, open[1].rightsUri, open[1].rights) AS rights
  FROM {parts}
)
WHERE record IS NULL OR coalesce(attributes.types.resourceTypeGeneral, 'Text') IN ('Text', 'Preprint', 'JournalArticle',
  'ConferencePaper', 'Report', 'Dissertation', 'Book', 'BookChapter', 'Other')
