-- The names of deleted records: the first column of a list or table. A bare number of OpenAlex's has its W.
INSERT INTO deleted
SELECT name
FROM (
  SELECT coalesce(name_of(id), 'openalex:' || openalex_of(id)) AS name
  FROM (
    SELECT trim(regexp_extract(line, '^"?([^",\t]+)', 1)) AS id
    FROM read_csv({file}, columns={'line': 'VARCHAR'}, header=false, delim='\x01', quote='', escape='', ignore_errors=true)
  )
)
WHERE name IS NOT NULL
