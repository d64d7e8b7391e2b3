"""TensorLoom: a small language for models, training and kernels, compiled to plain PyTorch and Triton.

`tensorloom.driver` goes from files to checked programs and to Python text; `tensorloom.cli` is the command `tlc`.
"""
