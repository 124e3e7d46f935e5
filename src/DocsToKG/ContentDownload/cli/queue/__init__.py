"""`content queue`: the persistent work queue and its jobs."""
