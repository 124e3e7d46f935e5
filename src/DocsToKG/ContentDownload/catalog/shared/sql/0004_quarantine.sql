-- Works whose files wait in quarantine.

CREATE INDEX manifests_quarantined ON record.manifests (id) WHERE proof = 'unproved' AND status = 'error';
