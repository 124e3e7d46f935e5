-- Records of Unpaywall: its dump, its feed, or answers of its service, one in a line.
SELECT
  'doi:' || doi_of(doi) AS record,
  updated::VARCHAR AS updated,
  doi_of(doi) AS doi,
  arxiv_in(places) AS arxiv_id,
  pmcid_in(places) AS pmcid,
  NULL::VARCHAR AS pmid,
  NULL::VARCHAR AS openalex_id,
  title,
  CASE WHEN year BETWEEN 1000 AND 3000 THEN year END AS year,
  list_filter(list_transform(z_authors[:5], lambda a: concat_ws(', ', a.family, a.given)), lambda a: a <> '') AS authors,
  NULL::VARCHAR AS pages,
  genre AS type,
  NULL::BOOLEAN AS is_retracted,
  coalesce(oa_status, CASE WHEN is_oa = false THEN 'closed' END) AS oa_status,
  list_transform(open, lambda l: copy_of(
    coalesce(l.url_for_pdf, l.url_for_landing_page, l.url), CASE WHEN l.url_for_pdf IS NULL THEN 'page' ELSE 'pdf' END,
    CASE WHEN l.url_for_pdf IS NOT NULL THEN coalesce(l.url_for_landing_page, nullif(l.url, l.url_for_pdf)) END,
    l.host_type, l.license, l.version, CASE WHEN l.url_for_pdf IS NULL THEN 'url_for_landing_page' ELSE 'url_for_pdf' END,
    l.pmh_id, NULL::VARCHAR)) AS copies,
  file, doi AS raw_id
FROM (
  SELECT *,
    array_to_string(list_transform(oa_locations,
      lambda l: concat_ws(' ', l.pmh_id, l.url_for_landing_page, l.url_for_pdf, l.url)), ' ') AS places,
    list_filter(
      list_filter(coalesce(oa_locations, []), lambda l: l.is_best)
        || list_filter(coalesce(oa_locations, []), lambda l: l.is_best IS DISTINCT FROM true),
      lambda l: coalesce(l.url_for_pdf, l.url_for_landing_page, l.url) IS NOT NULL) AS open
  FROM {parts}
)
