"""What tenants, workers and operators can ask of a ledger, one service each; and who of its workers is alive."""
