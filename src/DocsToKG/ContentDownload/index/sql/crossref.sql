-- Crossref's public file. A link is no statement of open access: copies are listed under a Creative Commons licence
-- that is in force, and not where a member's key is needed. Retractions stand in `updated-by`, and in `update-to` of
-- a record that is about itself.
SELECT
  'doi:' || doi_of("DOI") AS record,
  indexed."date-time" AS updated,
  doi_of("DOI") AS doi,
  NULL::VARCHAR AS arxiv_id, NULL::VARCHAR AS pmcid, NULL::VARCHAR AS pmid, NULL::VARCHAR AS openalex_id,
  title[1] AS title,
  CASE WHEN issued."date-parts"[1][1] BETWEEN 1000 AND 3000 THEN issued."date-parts"[1][1] END AS year,
  list_filter(list_transform(author[:5], lambda a: concat_ws(', ', a.family, a.given)), lambda a: a <> '') AS authors,
  page AS pages,
  type,
  CASE WHEN len(list_filter(coalesce("updated-by", []) || list_filter(coalesce("update-to", []),
      lambda u: doi_of(u."DOI") = doi_of("DOI")), lambda u: u.type IN ('retraction', 'withdrawal', 'removal'))) > 0
    THEN true END AS is_retracted,
  NULL::VARCHAR AS oa_status,
  CASE WHEN len(open) = 0 THEN [] ELSE
    list_transform(list_filter(coalesce(link, []), lambda l: l."URL" IS NOT NULL
        AND NOT regexp_matches(l."URL", '^https?://api\.(?:elsevier|wiley)\.com/')
        AND (l."content-type" = 'application/pdf'
          OR (l."content-type" = 'unspecified' AND contains(lower(l."URL"), 'pdf')))),
      lambda l: copy_of(l."URL", 'pdf', NULL::VARCHAR, 'publisher', open[1]."URL",
        CASE l."content-version" WHEN 'vor' THEN 'publishedVersion' WHEN 'am' THEN 'acceptedVersion' END,
        'link', NULL::VARCHAR, NULL::VARCHAR))
    || CASE WHEN resource."primary"."URL" IS NULL THEN [] ELSE [copy_of(resource."primary"."URL", 'page', NULL::VARCHAR,
        'publisher', open[1]."URL", NULL::VARCHAR, 'resource', NULL::VARCHAR, NULL::VARCHAR)] END
  END AS copies,
  file, "DOI" AS raw_id
FROM (
  SELECT *,
    list_filter(coalesce(license, []), lambda l: l."content-version" IN ('vor', 'am', 'unspecified')
      AND regexp_matches(l."URL", 'creativecommons\.org/(?:licenses|publicdomain)/')
      AND coalesce(l.start."date-time", '') <= '{today}T24') AS open
  FROM {parts}
)
