"""Python functions to Tile IR: the one tracer of all frontends.

The syntax tree of a kernel is rewritten once (`rewrite`), so that its control flow calls hooks (`hooks`); the rewritten
function then runs once per signature, in a `Trace` (`context`), and what it does becomes operations.
"""
