-- The DOI that was asked for and that of the version that is stored, and files beside the paper.

ALTER TABLE record.manifests ADD COLUMN doi text COLLATE "C";
ALTER TABLE record.manifests ADD COLUMN version_doi text COLLATE "C";
ALTER TABLE record.manifests ADD COLUMN supplements text COLLATE "C";
ALTER TABLE record.downloads ADD COLUMN version_doi text COLLATE "C";
