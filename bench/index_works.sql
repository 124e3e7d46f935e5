-- Works in OpenAlex's shape: a third open, one in fifteen with a copy in PMC, two thirds with a PMID.
SELECT 'https://openalex.org/W' || (4000000000 + i) AS id, 'https://doi.org/10.' || (1000 + i % 4000) || '/bench.' || i AS doi,
  title, title AS display_name, 1980 + (i % 46) AS publication_year, 'article' AS type, false AS is_retracted,
  '2026-06-' || lpad((1 + i % 28)::VARCHAR, 2, '0') AS updated_date,
  {'openalex': 'https://openalex.org/W' || (4000000000 + i), 'doi': 'https://doi.org/10.' || (1000 + i % 4000) || '/bench.' || i,
   'pmid': CASE WHEN i % 3 > 0 THEN 'https://pubmed.ncbi.nlm.nih.gov/' || (1000000 + i) END} AS ids,
  {'is_oa': i % 3 = 0, 'oa_status': CASE WHEN i % 3 = 0 THEN 'gold' ELSE 'closed' END,
   'oa_url': CASE WHEN i % 3 = 0 THEN pdf END, 'any_repository_has_fulltext': false} AS open_access,
  [{'author_position': 'first', 'author': {'id': 'https://openalex.org/A' || i % 90000, 'display_name': 'Ada ' || i % 5000}},
   {'author_position': 'last', 'author': {'id': 'https://openalex.org/A' || i % 70000, 'display_name': 'Bo ' || i % 7000}}] AS authorships,
  CASE WHEN i % 3 = 0 THEN place END AS best_oa_location,
  CASE WHEN i % 15 = 0 THEN [place, archive] ELSE [place] END AS locations,
  {'volume': i % 90, 'issue': i % 12, 'first_page': i % 900, 'last_page': i % 900 + 9} AS biblio,
  map {'of': [1, 5], 'the': [2, 9, 14], 'work': [0]} AS abstract_inverted_index, i % 400 AS cited_by_count
FROM (SELECT *, {'id': 'doi:10.' || (1000 + i % 4000) || '/bench.' || i, 'is_oa': i % 3 = 0,
    'landing_page_url': 'https://doi.org/10.' || (1000 + i % 4000) || '/bench.' || i, 'pdf_url': CASE WHEN i % 3 = 0 THEN pdf END,
    'license': CASE WHEN i % 3 = 0 THEN 'cc-by' END, 'version': 'publishedVersion',
    'source': {'id': 'https://openalex.org/S' || i % 3000, 'display_name': 'Journal ' || i % 3000, 'type': 'journal'}} AS place,
  {'id': 'pmh:oai:pubmedcentral.nih.gov:' || (100000 + i), 'is_oa': true,
    'landing_page_url': 'https://www.ncbi.nlm.nih.gov/pmc/articles/' || (100000 + i), 'pdf_url': NULL, 'license': NULL,
    'version': 'publishedVersion', 'source': {'id': 'https://openalex.org/S9', 'display_name': 'PMC', 'type': 'repository'}} AS archive
  FROM (SELECT range AS i, 'On the ' || md5(range::VARCHAR) || ' of synthetic works and their copies' AS title,
    'https://host' || (range % 5000) || '.example.org/articles/' || range || '.pdf' AS pdf FROM range({first}, {last})))
