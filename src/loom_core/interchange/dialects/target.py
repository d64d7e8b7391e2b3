"""target: records of what kernels are compiled for."""

from typing import Final

from loom_core.interchange.declaration import SymbolDefinition
from loom_core.interchange.dialects.enums import LINKAGE
from loom_core.interchange.form import op
from loom_core.interchange.model import SymbolKind

_LIMITS: Final = (
    "default_pointer_bitwidth index_bitwidth offset_bitwidth max_workgroup_size_x max_workgroup_size_y "
    "max_workgroup_size_z max_flat_workgroup_size max_workgroup_storage_bytes subgroup_size max_grid_size_x "
    "max_grid_size_y max_grid_size_z max_flat_grid_size max_workgroup_count_x max_workgroup_count_y "
    "max_workgroup_count_z memory_space_generic memory_space_global memory_space_workgroup memory_space_constant "
    "memory_space_private memory_space_host memory_space_descriptor contract_feature_bits"
)
RECORD_ATTRIBUTES: Final = (
    "symbol:symbol codegen_format?:word artifact_format?:word "
    + " ".join(f"{name}?:i64" for name in _LIMITS.split())
    + f" abi?:word export_symbol?:string linkage?:{LINKAGE} contract_set_key?:string"
)
RECORD: Final = SymbolDefinition(SymbolKind.RECORD, interfaces=frozenset(("target", "record")))

OPS: Final = (
    op("target.generic", "<$kind> $symbol{attrs}", attributes=f"kind:reference {RECORD_ATTRIBUTES}", symbol=RECORD,
       doc="A target that any machine can stand for."),
    op("target.decl", "$symbol", attributes="symbol:symbol",
       symbol=SymbolDefinition(SymbolKind.RECORD, interfaces=RECORD.interfaces, declaration=True),
       doc="A target that another module records."),
    op("target.subgroup.size", ": T(result)", results="result:index", traits="pure", builder_name="subgroup_size",
       doc="Workitems of a subgroup of the target."),
)  # fmt: skip
