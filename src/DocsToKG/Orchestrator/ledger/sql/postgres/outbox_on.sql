-- The schema looks by itself whether there are targets.
SELECT switch_outbox_v1();
