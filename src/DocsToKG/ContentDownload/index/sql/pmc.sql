-- Metadata of PMC's cloud bucket, one object for each version of an article. Files carry their MD5.
SELECT
  'pmcid:' || pmcid_of(pmcid) || coalesce('.' || version, '') AS record,
  NULL::VARCHAR AS updated,
  doi_of(doi) AS doi,
  NULL::VARCHAR AS arxiv_id,
  pmcid_of(pmcid) AS pmcid,
  pmid_of(pmid) AS pmid,
  NULL::VARCHAR AS openalex_id,
  title,
  NULL::INTEGER AS year,
  NULL::VARCHAR[] AS authors, NULL::VARCHAR AS pages,
  NULL::VARCHAR AS type,
  is_retracted,
  NULL::VARCHAR AS oa_status,
  list_filter([
    copy_of(pmc_file(pdf_url), 'pdf', NULL::VARCHAR, 'repository', license_code, pmc_version(is_manuscript), 'pmc_metadata',
      'oai:pubmedcentral.nih.gov:' || substr(pmcid_of(pmcid), 4), 'md5:' || nullif(regexp_extract(pdf_url, 'md5=([0-9a-f]{32})', 1), '')),
    copy_of(pmc_file(xml_url), 'xml', NULL::VARCHAR, 'repository', license_code, pmc_version(is_manuscript), 'pmc_metadata',
      'oai:pubmedcentral.nih.gov:' || substr(pmcid_of(pmcid), 4), 'md5:' || nullif(regexp_extract(xml_url, 'md5=([0-9a-f]{32})', 1), ''))
  ], lambda c: c.url IS NOT NULL) AS copies,
  file, pmcid AS raw_id
FROM {parts}
WHERE {listed}
