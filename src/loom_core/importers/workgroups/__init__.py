"""Interchange kernels over workitems as Tile IR kernels over workgroups.

One program of the grid is one workgroup. A value that is the same for all workitems of a workgroup is a scalar, any
other a tile with an element for each workitem, x fastest. Control flow that all workitems take alike stays control
flow; where they part, both ways run under masks. Each operation ends for all workitems before the next begins, so that
barriers need nothing more. What has no counterpart is refused.
"""
