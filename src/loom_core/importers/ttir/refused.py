"""Operations that are known and refused, with the reason that the user reads."""

from __future__ import annotations

from typing import Final

_MASKED = "it stands in modules only while Triton's pipeliner works"
_WARPS = "it is for warps that run different code at once, which has no sequential meaning"
_SCALES = "scales lie in the tensor memory of NVIDIA's Blackwell GPUs in an order of their own"
_CLUSTER = "it is for several thread blocks that work together"
_PARALLEL = "Triton makes no loops whose iterations have no order"

REASONS: Final[dict[str, str]] = {
    "arith.scaling_extf": "Triton makes no conversions with scales of MLIR's own, but tt.dot_scaled",
    "arith.scaling_truncf": "Triton makes no conversions with scales of MLIR's own",
    "math.clampf": "MLIR leaves open what it gives for NaN; Triton makes tt.clampf",
    "math.fpowi": "Loom has no powers with integer exponents; Triton calls math.powf or the library",
    "math.ipowi": "Loom has no powers of integers; Triton makes none",
    "scf.forall": _PARALLEL,
    "scf.forall.in_parallel": _PARALLEL,
    "scf.parallel": _PARALLEL,
    "scf.reduce": _PARALLEL,
    "scf.reduce.return": _PARALLEL,
    "ttg.inline_asm": "inline assembly is code of a GPU",
    "ttg.local_atomic_scatter_rmw": "of what is done atomically in shared memory Loom does not know the order",
    "ttg.mask": _MASKED,
    "ttg.mask.return": _MASKED,
    "ttg.predicate_stage": _MASKED,
    "ttg.warp_id": "there are no warps here",
    "ttg.warp_return": _WARPS,
    "ttg.warp_specialize": "warps that run different code are not supported",
    "ttg.warp_specialize.partitions": _WARPS,
    "ttg.warp_yield": _WARPS,
    "ttng.arrive_barrier": _WARPS,
    "ttng.async_copy_mbarrier_arrive": _WARPS,
    "ttng.async_shared_store": _CLUSTER,
    "ttng.clc_get_program_id": "programs are started one after another, none is taken over or cancelled",
    "ttng.clc_is_canceled": "programs are started one after another, none is taken over or cancelled",
    "ttng.clc_load_result": "programs are started one after another, none is taken over or cancelled",
    "ttng.clc_try_cancel": "programs are started one after another, none is taken over or cancelled",
    "ttng.clc_try_cancel_sync": "programs are started one after another, none is taken over or cancelled",
    "ttng.cluster_arrive": _CLUSTER,
    "ttng.cluster_barrier": _CLUSTER,
    "ttng.cluster_wait": _CLUSTER,
    "ttng.fence_mbarrier_init_release_cluster": _CLUSTER,
    "ttng.packed_arith": "it is an instruction of NVIDIA's Blackwell GPUs",
    "ttng.tc_gen5_mma_scaled": _SCALES,
    "ttng.tmem_copy": _SCALES,
    # What stands elsewhere than where it belongs; in its place it is imported with what it is part of.
    **dict.fromkeys(
        ("tt.return", "func.return", "cf.br", "cf.cond_br", "cf.switch", "scf.condition", "scf.yield", "ub.unreachable",
         "llvm.unreachable", "tt.reduce.return", "tt.scan.return", "tt.map_elementwise.return"),
        "it ends a block, and others follow it",
    ),
    "tt.func": "a function does not stand in another one",
    # All of a dialect.
    "ttg.": "of Triton's GPU passes only copies and layouts have a meaning here",
    "ttng.": "it is an instruction of NVIDIA GPUs without a sequential meaning here",
    "nvgpu.": "it is an instruction of NVIDIA GPUs",
    "nvws.": _WARPS,
    "amdg.": "it is an instruction of AMD GPUs",
    "triton_gpu.": "this spelling is older than Triton 3.3",
    "gluon.": "it is a step in compiling Gluon; import the module after it",
}  # fmt: skip
"""By operation; a name that ends in a dot stands for all others of a dialect."""

PARTS: Final = frozenset(
    {"tt.return", "cf.br", "cf.cond_br", "cf.switch", "scf.condition", "scf.yield", "ub.unreachable", "tt.func",
     "tt.reduce.return", "tt.scan.return", "tt.map_elementwise.return"}
)  # fmt: skip
"""Of these, those that are imported in their place."""
