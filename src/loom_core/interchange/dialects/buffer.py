"""buffer: untyped bytes, what is known of them, and access to them."""

from typing import Final

from loom_core.interchange.dialects.enums import FENCE_ORDERING, MEMORY_SPACE, SCOPE
from loom_core.interchange.form import op

OPS: Final = (
    op("buffer.load.i8.u", "%source[%byte_offset]", operands="source:buffer byte_offset:offset", results="result:i32",
       traits="read", builder_name="load_i8_u", doc="One byte, zero extended."),
    op("buffer.store.i8", "%value, %target[%byte_offset]", operands="value:i32 target:buffer byte_offset:offset",
       traits="write", builder_name="store_i8", doc="The low byte of a value."),
    op("buffer.copy", "%source[%source_offset], %target[%target_offset], %length",
       operands="source:buffer source_offset:offset target:buffer target_offset:offset length:offset",
       traits="read write", doc="Copy bytes; the ranges do not overlap."),
    op("buffer.fill", "%pattern, %target[%target_offset], %length : T(pattern)",
       operands="pattern:pattern target:buffer target_offset:offset length:offset", traits="write",
       doc="Repeat a pattern."),
    op("buffer.compare", "%lhs[%lhs_offset], %rhs[%rhs_offset], %length",
       operands="lhs:buffer lhs_offset:offset rhs:buffer rhs_offset:offset length:offset", results="result:i32",
       traits="read", doc="Negative, 0 or positive as the bytes compare."),
    op("buffer.length", "%buffer", operands="buffer:buffer", results="result:offset", traits="pure",
       doc="Bytes of a buffer."),
    op("buffer.view", "%buffer[%byte_offset] : T(buffer) -> T(result)", operands="buffer:buffer byte_offset:offset",
       results="result:view", traits="pure", doc="A typed view of the bytes from an offset on."),
    op("buffer.alloca", "<$memory_space> align($base_alignment) %byte_length : T(result)",
       older=("%byte_length{attrs} : T(result)",), operands="byte_length:offset",
       attributes=f"memory_space:{MEMORY_SPACE} base_alignment:i64", results="result:buffer",
       doc="Bytes that live as long as the region."),
    op("buffer.pack", "!ranges(byte_lengths,minimum_alignments) : T(results*)", operands="byte_lengths*:offset",
       attributes="minimum_alignments:i64s", results="results*:offset", traits="pure",
       doc="Total length and the offset of each of several aligned ranges."),
    op("buffer.assume.alignment", "%buffers*{attrs} : T(results*)", operands="buffers*:buffer",
       attributes="minimum_alignment:i64", results="results*:buffer", traits="pure", builder_name="alignment",
       doc="The same buffers, known to be aligned."),
    op("buffer.assume.memory_space", "<$memory_space> %buffer : T(result)", operands="buffer:buffer",
       attributes=f"memory_space:{MEMORY_SPACE}", results="result:buffer", traits="pure", builder_name="memory_space",
       doc="The same buffer, known to be in a memory space."),
    op("buffer.assume.noalias", "%buffers* : T(results*)", operands="buffers*:buffer", results="results*:buffer",
       traits="pure", builder_name="noalias", doc="The same buffers, known not to overlap."),
    op("buffer.assume.same_root", "%buffer, %root : T(result)", operands="buffer:buffer root:buffer",
       results="result:buffer", traits="pure", builder_name="same_root",
       doc="The same buffer, known to be part of another."),
    op("buffer.fence", "scope($scope) ordering($ordering)", attributes=f"scope:{SCOPE} ordering:{FENCE_ORDERING}",
       traits="read write", doc="Order this workitem's accesses."),
)  # fmt: skip
