"""The command line `docstokg-orchestrator`: a file per noun. A command parses, calls, prints."""
