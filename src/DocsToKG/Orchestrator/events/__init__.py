"""What happens on the ledger, told to others: the envelope of an event, the outbox, and who carries it away."""
