"""Is a file the paper, all of it, and undamaged? The engine that reads PDFs, and the rules that judge what it read."""
