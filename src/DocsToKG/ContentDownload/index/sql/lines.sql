-- One identifier in a line; a comment begins at the start of a line or after a blank.
INSERT INTO given
SELECT text, name_of(text)
FROM (
  SELECT trim(regexp_replace(line, '(?:^|\s)#.*$', '')) AS text
  FROM read_csv({file}, columns={'line': 'VARCHAR'}, header=false, delim='\x01', quote='', escape='', ignore_errors=true)
)
WHERE text <> ''
