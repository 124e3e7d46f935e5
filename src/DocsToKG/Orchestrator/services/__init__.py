"""What keeps the ledger healthy beside the plain calls: who is alive, and whose leases are free."""
