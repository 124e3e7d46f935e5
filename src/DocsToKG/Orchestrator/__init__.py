"""The job ledger and its services: knows jobs, their owners and their history; does not know papers."""
