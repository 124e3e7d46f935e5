-- Of the lines that were read: all of them, the different works they name, and those that name none.
SELECT count(*), count(DISTINCT name), count(*) FILTER (name IS NULL) FROM given
