"""view: typed access to memory."""

from typing import Final

from loom_core.interchange.dialects.enums import COMBINING, ORDERING, SCOPE
from loom_core.interchange.form import op

CACHE: Final = "flags?:flags(volatile) cache_scope?:word cache_temporal?:word"
ATOMIC: Final = f"ordering:{ORDERING} scope:{SCOPE} cache_scope?:word cache_temporal?:word"
_AT: Final = "static_indices:i64s"

OPS: Final = (
    op("view.subview", "%source[#offsets] : T(source) -> T(result)", operands="source:view offsets*:index",
       attributes="static_offsets:i64s", results="result:view", same="element(source result)", traits="pure",
       doc="A part of a view."),
    op("view.refine", "%source : T(source) -> T(result)", operands="source:view", results="result:view",
       same="element(source result)", traits="pure", doc="The same view, with more known of its type."),
    op("view.load", "[[<$flags>]] %view[#indices]{attrs} : T(view) -> T(result)", operands="view:view indices*:index",
       attributes=f"{_AT} {CACHE}", results="result:scalar", same="element(view result)", traits="read",
       doc="One element."),
    op("view.store", "[[<$flags>]] %value, %view[#indices]{attrs} : T(value), T(view)",
       operands="value:scalar view:view indices*:index", attributes=f"{_AT} {CACHE}", same="element(value view)",
       traits="write", doc="Write one element."),
    op("view.atomic.reduce", "<$kind> %value, %view[#indices]{attrs} : T(value), T(view)",
       operands="value:scalar view:view indices*:index", attributes=f"kind:{COMBINING} {_AT} {ATOMIC}",
       same="element(value view)", traits="read write", builder_name="reduce", doc="Combine into one element."),
    op("view.atomic.rmw", "<$kind> %value, %view[#indices]{attrs} : T(value), T(view) -> T(result)",
       operands="value:scalar view:view indices*:index", attributes=f"kind:{COMBINING} {_AT} {ATOMIC}",
       results="result:scalar", same="value result; element(value view)", traits="read write", builder_name="rmw",
       doc="Combine into one element; its old value."),
    op("view.atomic.cmpxchg",
       "%expected, %replacement, %view[#indices]{attrs} : T(expected), T(view) -> T(result)",
       operands="expected:scalar replacement:scalar view:view indices*:index",
       attributes=f"{_AT} success_ordering:{ORDERING} failure_ordering:{ORDERING} scope:{SCOPE} cache_scope?:word "
       "cache_temporal?:word", results="result:scalar",
       same="expected replacement result; element(expected view)", traits="read write", builder_name="cmpxchg",
       doc="Replace one element if it is as expected; its old value."),
    op("view.prefetch", "%view[#indices]{attrs} : T(view)", operands="view:view indices*:index",
       attributes=f"{_AT} intent:read|write locality:none|low|moderate|high", doc="A hint of a coming access."),
)  # fmt: skip
