"""Tile IR: types, operations, blocks, builder, text form, verifier, rewriter."""
