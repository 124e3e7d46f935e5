"""The network, politely: client, limits, robots, URL policy and cache."""
