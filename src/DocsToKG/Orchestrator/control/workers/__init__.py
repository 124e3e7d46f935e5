"""Workers: their leases over HTTP, who reports, who is alive, and what they know of hosts."""
