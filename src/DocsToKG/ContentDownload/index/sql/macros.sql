-- Identifiers in their normal form, as resolvers/id_forms.py has them; NULL for what is none. Escapes, and brackets and
-- punctuation around an identifier, are taken off as far as snapshots and lists have them.
CREATE OR REPLACE MACRO bare_doi(x) AS
  CASE WHEN starts_with(x, 'https://doi.org/10.') THEN substr(x, 17)
       ELSE regexp_replace(trim(x), '^(?:(?:https?://)?(?:www\.|dx\.)?doi\.org/|info:doi/|urn:doi:|doi\s*[:=]?\s*)', '', 'i') END;
CREATE OR REPLACE MACRO decoded(x) AS CASE WHEN contains(x, '%') THEN url_decode(x) ELSE x END;
CREATE OR REPLACE MACRO closed_brackets(x) AS
  CASE WHEN suffix(x, ')') AND len(replace(x, ')', '')) < len(replace(x, '(', ''))
       THEN regexp_replace(x, '\)+$', '') ELSE x END;
CREATE OR REPLACE MACRO trimmed_doi(x) AS
  CASE WHEN regexp_matches(x, '[A-Za-z0-9]$') THEN x
       ELSE closed_brackets(regexp_replace(decoded(x), '[.,;:"''/]+$', '')) END;
CREATE OR REPLACE MACRO lower_doi(x) AS
  CASE WHEN regexp_full_match(x, '10\.[0-9]{1,9}(?:\.[0-9]{1,9})*/[!-~]{1,1000}')
       THEN replace(lower(x), '10.1037//', '10.1037/') END;
CREATE OR REPLACE MACRO doi_of(x) AS lower_doi(trimmed_doi(decoded(bare_doi(x))));
CREATE OR REPLACE MACRO arxiv_of(x) AS
  regexp_replace(nullif(regexp_extract(x, '^(?:(?i)arxiv\s*:?\s*|https?://(?:[a-z]+\.)?arxiv\.org/(?:abs|pdf|html)/)?'
    || '([0-9]{4}\.[0-9]{4,5}|[a-z-]+(?:\.[A-Z]{2})?/[0-9]{7})(?:v[0-9]+)?(?:\.pdf)?$', 1), ''), '\.[A-Z]{2}/', '/');
CREATE OR REPLACE MACRO arxiv_of_doi(doi) AS
  CASE WHEN starts_with(doi, '10.48550/arxiv.') THEN arxiv_of(substr(doi, 16)) END;
CREATE OR REPLACE MACRO pmcid_of(x) AS
  'PMC' || nullif(regexp_extract(x, '^(?:.*/)?(?:PMC)?0*([1-9][0-9]{0,9})(?:\.[0-9]{1,3})?/?$', 1, 'i'), '');
CREATE OR REPLACE MACRO pmid_of(x) AS nullif(regexp_extract(x, '^(?:.*/)?0*([1-9][0-9]{0,8})/?$', 1), '');
CREATE OR REPLACE MACRO openalex_of(x) AS
  'W' || nullif(regexp_extract(x, '^(?:(?:https?://)?(?:api\.)?openalex\.org/(?:works/)?)?[Ww]0*([1-9][0-9]{0,12})$', 1), '');

-- What the ids and addresses of copies, joined into one text, tell of arXiv and PubMed Central.
CREATE OR REPLACE MACRO arxiv_in(names) AS
  CASE WHEN contains(names, 'rXiv.org') OR contains(names, 'arxiv.org/')
       THEN arxiv_of(regexp_extract(names, '(?:oai:arXiv\.org:|arxiv\.org/(?:abs|pdf|html)/)([^\s?#]+)', 1)) END;
CREATE OR REPLACE MACRO pmcid_in(names) AS
  CASE WHEN contains(names, 'pubmedcentral') OR contains(names, 'pmc') OR contains(names, 'PMC')
       THEN 'PMC' || nullif(regexp_extract(names, '(?:oai:pubmedcentral\.nih\.gov:(?:PMC)?|ncbi\.nlm\.nih\.gov/(?:pmc/)?'
         || 'articles/(?:PMC)?|europepmc\.org/(?:articles?|abstract)/(?:PMC/|pmc/)?PMC)0*([1-9][0-9]{0,9})', 1), '') END;

-- The names of a work, strongest first; the first is its key.
CREATE OR REPLACE MACRO named(scheme, x) AS scheme || ':' || x;
CREATE OR REPLACE MACRO names_of(doi, arxiv, pmcid, pmid, openalex) AS list_filter(
  [CASE WHEN NOT starts_with(doi, '10.48550/arxiv.') THEN 'doi:' || doi END,
   'arxiv:' || coalesce(arxiv, arxiv_of_doi(doi)), 'pmcid:' || pmcid, 'pmid:' || pmid, 'openalex:' || openalex],
  lambda name: name IS NOT NULL);

-- The name that a text of a list stands for; NULL where only the reader of identifiers (resolvers/ids.py) can tell.
CREATE OR REPLACE MACRO name_of_doi(doi) AS
  CASE WHEN starts_with(doi, '10.48550/arxiv.') THEN 'arxiv:' || arxiv_of_doi(doi) ELSE 'doi:' || doi END;
CREATE OR REPLACE MACRO name_of(x) AS
  CASE WHEN regexp_full_match(x, '(?i)(?:doi:\s?|https?://(?:dx\.)?doi\.org/)?10\.[0-9.]+/[!"$''->@-~]*[a-z0-9]')
       THEN name_of_doi(lower_doi(bare_doi(x)))
       WHEN regexp_full_match(x, '(?i:arxiv:)?(?:0[7-9]|1[0-4])[01][0-9]\.[0-9]{4}|(?i:arxiv:)?(?:1[5-9]|2[0-9])[01][0-9]\.[0-9]{5}')
       THEN 'arxiv:' || arxiv_of(x)
       WHEN regexp_full_match(x, '(?:pmcid:)?PMC[1-9][0-9]{0,8}') THEN 'pmcid:' || pmcid_of(replace(x, 'pmcid:', ''))
       WHEN regexp_full_match(x, 'pmid:[1-9][0-9]{0,8}') THEN x
       WHEN regexp_full_match(x, '(?:openalex:|https://openalex\.org/)?W[1-9][0-9]{0,12}')
       THEN 'openalex:' || openalex_of(replace(x, 'openalex:', '')) END;

CREATE OR REPLACE MACRO bucket_of(name, buckets) AS (md5_number_lower(name) % buckets)::INTEGER;
CREATE OR REPLACE MACRO host_of(url) AS lower(regexp_extract(url, '^[a-zA-Z]+://([^/:?#]+)', 1));
CREATE OR REPLACE MACRO copy_of(url, kind, page, host_type, license, version, evidence, location, checksum) AS
  {'url': url, 'kind': kind, 'page': page, 'host_type': host_type, 'license': license, 'version': version,
   'evidence': evidence, 'location': location, 'checksum': checksum};
CREATE OR REPLACE MACRO pmc_file(url) AS
  regexp_replace(split_part(url, '?', 1), '^s3://pmc-oa-opendata/', 'https://pmc-oa-opendata.s3.amazonaws.com/');
CREATE OR REPLACE MACRO pmc_version(is_manuscript) AS CASE WHEN is_manuscript THEN 'acceptedVersion' ELSE 'publishedVersion' END;
