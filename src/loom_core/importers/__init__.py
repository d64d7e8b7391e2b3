"""Foreign programs into Loom: building interchange modules, and interchange kernels into Tile IR."""
