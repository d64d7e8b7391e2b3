"""Rewrites of Tile IR, one pass a file; `pipeline.py` is the order."""
