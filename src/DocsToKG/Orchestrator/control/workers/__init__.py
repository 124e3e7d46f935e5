"""Workers: leases over HTTP, the registry, liveness, and reports about hosts."""
