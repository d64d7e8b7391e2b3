"""The interchange model behind `loom.ir` and `loom.importers`: what programs outside Loom build, print and serialise.

No pass imports it. `loom_core.importers.workgroups` turns its kernels into Tile IR.
"""
