-- OpenAlex works. A closed work has no copies. PMC and arXiv copies are known by the ids of locations only.
SELECT
  'openalex:' || openalex_of(id) AS record,
  updated_date::VARCHAR AS updated,
  doi_of(coalesce(doi, ids.doi)) AS doi,
  arxiv_in(places) AS arxiv_id,
  coalesce(pmcid_of(ids.pmcid), pmcid_in(places)) AS pmcid,
  pmid_of(ids.pmid) AS pmid,
  openalex_of(id) AS openalex_id,
  coalesce(title, display_name) AS title,
  CASE WHEN publication_year BETWEEN 1000 AND 3000 THEN publication_year END AS year,
  list_filter(list_transform(authorships[:5], lambda a: a.author.display_name), lambda a: a IS NOT NULL) AS authors,
  biblio.first_page || coalesce('-' || biblio.last_page, '') AS pages,
  type, is_retracted,
  open_access.oa_status AS oa_status,
  CASE WHEN len(open) > 0 THEN list_transform(open, lambda l: copy_of(
    coalesce(l.pdf_url, l.landing_page_url), CASE WHEN l.pdf_url IS NULL THEN 'page' ELSE 'pdf' END,
    CASE WHEN l.pdf_url IS NOT NULL THEN l.landing_page_url END,
    CASE WHEN l.source.type = 'repository' THEN 'repository' ELSE 'publisher' END,
    l.license, l.version, CASE WHEN l.pdf_url IS NULL THEN 'landing_page_url' ELSE 'pdf_url' END, l.id, NULL::VARCHAR))
  WHEN open_access.oa_url IS NOT NULL
  THEN [copy_of(open_access.oa_url, 'page', NULL::VARCHAR, NULL::VARCHAR, NULL::VARCHAR, NULL::VARCHAR, 'oa_url',
    NULL::VARCHAR, NULL::VARCHAR)] ELSE [] END AS copies,
  file, coalesce(id, doi) AS raw_id
FROM (
  SELECT *,
    array_to_string(list_transform(locations, lambda l: concat_ws(' ', l.id, l.landing_page_url, l.pdf_url)), ' ') AS places,
    list_filter(
      CASE WHEN best_oa_location IS NULL THEN [] ELSE [best_oa_location] END
        || list_filter(coalesce(locations, []), lambda l: l.is_oa AND l IS DISTINCT FROM best_oa_location),
      lambda l: coalesce(l.pdf_url, l.landing_page_url) IS NOT NULL) AS open
  FROM {parts}
)
