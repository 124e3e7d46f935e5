-- How sure it is that a file is the work, what was read of it, and whether a damaged one was kept on request.

ALTER TABLE record.manifests ADD COLUMN proof text COLLATE "C";
ALTER TABLE record.manifests ADD COLUMN damaged bigint;
ALTER TABLE record.manifests ADD COLUMN validation text COLLATE "C";
ALTER TABLE record.downloads ADD COLUMN proof text COLLATE "C";
ALTER TABLE record.downloads ADD COLUMN damaged bigint;
CREATE INDEX downloads_unproved ON record.downloads (doc_id) WHERE proof = 'unproved';
