"""The Triton-like surface: `import loom.triton.language as ltl`."""
