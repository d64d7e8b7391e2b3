"""No operation lacks its meaning, its lowering or its documentation."""

from __future__ import annotations

import pytest

import loom_core.codegen.control
import loom_core.codegen.kernel
import loom_core.ops  # noqa: F401
from loom_core.codegen.groups import VIRTUAL
from loom_core.codegen.registry import LOWERINGS
from loom_core.interp.run import INTERPRETED
from loom_core.ir.op import REGISTRY, Op

OPERATIONS = sorted(REGISTRY.values(), key=lambda kind: kind.name)


@pytest.mark.parametrize("kind", OPERATIONS, ids=lambda kind: kind.name)
def test_declares_everything(kind: type[Op]) -> None:
    assert kind.__doc__ and kind.__doc__.strip(), "no documentation"
    if not kind.terminator:
        assert (kind.ref is not None or kind in INTERPRETED) != bool(kind.no_reference), "no reference, or one too many"
        assert (kind in LOWERINGS) != bool(kind.no_lowering), "no lowering, or one too many"


def test_every_lowering_belongs_to_an_operation() -> None:
    assert set(LOWERINGS) <= set(REGISTRY.values())


def test_virtual_operations_are_no_stream_operations() -> None:
    assert not [kind.name for kind in VIRTUAL if kind.elementwise]
