"""References: what every numeric operation of the machine means, in plain NumPy, written from `docs/numerics.md`.

Nothing here knows an engine: the two share the published coefficient tables and nothing else, and tests require equal
bits.
"""
