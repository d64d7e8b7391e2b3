"""Keywords that several dialects share; their order is their number in bytecode."""

from typing import Final

INTEGER_PREDICATES: Final = "eq|ne|slt|sle|sgt|sge|ult|ule|ugt|uge"
FLOAT_PREDICATES: Final = "oeq|ogt|oge|olt|ole|one|ord|ueq|ugt|uge|ult|ule|une|uno"
OVERFLOW: Final = "flags(nsw|nuw)"
FASTMATH: Final = "flags(reassoc|nnan|ninf|nsz|arcp|contract|afn|fast)"
COMBINING: Final = (
    "addi|muli|minsi|maxsi|minui|maxui|andi|ori|xori|addf|mulf|minimumf|maximumf|minnumf|maxnumf|xchgi|xchgf|subi"
)
SCOPE: Final = "workitem|subgroup|workgroup|cluster|device|system"
ORDERING: Final = "relaxed|acquire|release|acq_rel|seq_cst"
FENCE_ORDERING: Final = "acquire|release|acq_rel|seq_cst"
MEMORY_SPACE: Final = "unknown|global|workgroup|private|constant|host|descriptor|generic"
DIMENSION: Final = "x|y|z"
LINKAGE: Final = "default|dso_local"
