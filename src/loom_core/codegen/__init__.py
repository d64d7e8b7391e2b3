"""Tile IR to commands.

`kernel.generate` drives: operations are ordered and grouped (`schedule`), values get windows (`storage`), each
operation is lowered by the one function registered for it with `@lowers` (one file an op family), its loads one
iteration ahead (`prefetch`), then windows get addresses, registers get numbers (`allocate`), and commands get the waits
that their accesses need (`tokens`).
"""
