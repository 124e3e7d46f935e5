-- Of the works of one hash: what is known of their access, and where the first of their copies lies.
INSERT INTO planned
SELECT access, source, host_of(url), kind, coalesce(replace(lower(license), ' ', '-'), 'unknown'), coalesce(version, 'unknown'), count(*), sum(copies)
FROM (
  SELECT
    CASE WHEN len(copies) > 0 THEN 'open' WHEN is_told THEN 'closed' ELSE 'unknown' END AS access,
    copies[1].source AS source, copies[1].url AS url, copies[1].kind AS kind, copies[1].license AS license,
    copies[1].version AS version, len(copies) AS copies
  FROM ({answers})
)
GROUP BY ALL
