"""One runner, one file a claim: `./run bench [name ...]`."""
