"""Checks of the numerics that are too long for the test suite: `./run exhaustive`. The suite runs samples of them."""
