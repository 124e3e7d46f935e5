-- The rows of one hash: those read now, and those of the older index whose record was not read anew. What was deleted
-- is left out of both.
CREATE OR REPLACE TEMP TABLE collected AS
SELECT {columns} FROM {rows} WHERE NOT EXISTS (FROM deleted d WHERE d.name = record)
UNION ALL
SELECT {columns} FROM {old} o
WHERE NOT EXISTS (FROM changed c WHERE c.source = o.source AND c.record = o.record)
  AND NOT EXISTS (FROM deleted d WHERE d.name = o.record)
