"""Foreign programs into Loom: building interchange modules, and interchange kernels and Triton IR into Tile IR."""
