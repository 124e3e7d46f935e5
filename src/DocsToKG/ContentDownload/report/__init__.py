"""How a run went, in a form for people: the words and rows of a report, and the page that shows them."""
