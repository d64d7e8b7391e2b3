"""What `loom.check()` finds about a launch by looking at the kernel's IR and at further runs on copies of its arrays.

`run.check_launch` does all of it; what the run itself shows is found by `loom_sim.check`.
"""
