"""The command-line tools and the generators of the documents: the top layer."""
