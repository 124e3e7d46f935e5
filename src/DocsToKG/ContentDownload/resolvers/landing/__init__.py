"""Pages of publishers and repositories: what they are, and the links to full text on them."""
