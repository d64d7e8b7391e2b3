"""Where masks hold, as boxes.

Comparisons of affine indices with scalars become bounds of dimensions, scalar bools conditions on the whole:
    (%i < n) & (%j >= 2)      rows below n, columns from 2
    splat %c                  everywhere, if %c holds
"""

from __future__ import annotations

from dataclasses import dataclass, field

from loom_core.ir.op import Op
from loom_core.ir.value import Value
from loom_core.ops import control, elementwise, shape
from loom_core.passes.affine import ONE, ZERO, Form, Polynomial, subtract_forms
from loom_core.passes.forms import Forms


@dataclass
class Bounds:
    """Valid indices of one dimension: i < ceil(p / d) for (p, d) in `upper`, i > floor(p / d) for (p, d) in `lower`."""

    lower: list[tuple[Polynomial, int]] = field(default_factory=list)
    upper: list[tuple[Polynomial, int]] = field(default_factory=list)


@dataclass(frozen=True)
class Comparison:
    """A condition that no index takes part in."""

    lhs: Polynomial
    predicate: str
    rhs: Polynomial


Condition = Value | Comparison | bool


@dataclass
class Region:
    """A box of indices, all of it only where every one of `conditions` holds (scalar values of the function)."""

    dims: list[Bounds]
    conditions: list[Condition] = field(default_factory=list)

    @staticmethod
    def everything(rank: int) -> Region:
        return Region([Bounds() for _ in range(rank)])

    def intersect(self, other: Region) -> Region:
        dims = [Bounds(a.lower + b.lower, a.upper + b.upper) for a, b in zip(self.dims, other.dims, strict=True)]
        return Region(dims, self.conditions + other.conditions)


def region_of(mask: Value, forms: Forms) -> Region | None:
    """Where the bool tile holds, as a box; None where it is none."""
    rank = len(mask.type.shape)
    op = mask.defining_op
    if mask.type.is_scalar:
        return Region([], [mask])
    if isinstance(op, elementwise.And):
        left, right = region_of(op.lhs, forms), region_of(op.rhs, forms)
        return left.intersect(right) if left is not None and right is not None else None
    if isinstance(op, elementwise.Compare):
        return _comparison(op, forms)
    if isinstance(op, shape.Constant):
        return Region(Region.everything(rank).dims, [] if op.value else [False])
    if isinstance(op, shape.Splat):
        return Region(Region.everything(rank).dims, [op.operand])
    if isinstance(op, shape.Broadcast | shape.ExpandDims | shape.Transpose | shape.Reshape):
        inner = region_of(op.operand, forms)
        dims = _viewed(op, inner.dims) if inner is not None else None
        return Region(dims, inner.conditions) if inner is not None and dims is not None else None
    return None


def _viewed(op: Op, dims: list[Bounds]) -> list[Bounds] | None:
    """The bounds as a view shows them. Dimensions of size 1 have none: `forms` gives them no stride."""
    old, new = op.operands[0].type.shape, op.results[0].type.shape
    if isinstance(op, shape.Transpose):
        return [dims[d] for d in op.permutation]
    if isinstance(op, shape.ExpandDims):
        return [*dims[: op.axis], Bounds(), *dims[op.axis :]]
    if isinstance(op, shape.Reshape):
        if not any(bounds.lower or bounds.upper for bounds in dims):
            return [Bounds() for _ in new]
        if [size for size in old if size != 1] != [size for size in new if size != 1]:
            return None
        kept = iter([bounds for bounds, size in zip(dims, old, strict=True) if size != 1])
        return [next(kept) if size != 1 else Bounds() for size in new]
    return dims


def _comparison(op: elementwise.Compare, forms: Forms) -> Region | None:
    left, right = forms.get(op.lhs), forms.get(op.rhs)
    if left is None or right is None or left.base is not None or right.base is not None:
        return None
    if op.lhs.type.dtype.kind == "uint" and not (_never_negative(left) and _never_negative(right)):
        return None  # the type wraps where the forms go below zero
    less, more = subtract_forms(right, left), subtract_forms(left, right)
    assert less is not None and more is not None
    everything = Region.everything(len(left.strides))
    if less.is_uniform:
        return Region(everything.dims, [Comparison(left.offset, op.predicate, right.offset)])
    at_most, at_least = _plus_one(less), _plus_one(more)
    positive = {"lt": [less], "le": [at_most], "gt": [more], "ge": [at_least], "eq": [at_most, at_least]}
    if op.predicate not in positive:
        return None
    region: Region | None = everything
    for difference in positive[op.predicate]:
        part = _positive_region(difference)
        region = region.intersect(part) if region is not None and part is not None else None
    return region


def _plus_one(form: Form) -> Form:
    return Form(form.base, form.offset + ONE, form.strides)


def _positive_region(difference: Form) -> Region | None:
    """The indices where `difference` > 0, or None where they are no box.

    The difference may vary along one dimension, by a constant step s: with offset o the condition o + s i > 0 is
    i < ceil(o / -s) for s < 0 and i > floor(-o / s) for s > 0.
    """
    varying = [d for d, stride in enumerate(difference.strides) if stride != ZERO]
    if len(varying) != 1:
        return None
    (dim,) = varying
    step = difference.strides[dim].as_constant
    if step is None:
        return None
    region = Region.everything(len(difference.strides))
    if step < 0:
        region.dims[dim].upper.append((difference.offset, -step))
    else:
        region.dims[dim].lower.append((difference.offset.scaled(-1), step))
    return region


def _never_negative(form: Form) -> bool:
    """Whether no term of the form can be below zero."""
    return all(
        coefficient >= 0 and all(_is_natural(value) for value in monomial)
        for polynomial in (form.offset, *form.strides)
        for monomial, coefficient in polynomial
    )


def _is_natural(value: Value) -> bool:
    dtype = value.type.dtype
    unsigned = dtype.kind == "uint" and dtype.bits < 64
    return unsigned or isinstance(value.defining_op, control.ProgramId | control.NumPrograms)
