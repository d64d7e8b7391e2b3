"""`ltl.aggregate`: classes of several values that kernels hand on as one."""

from __future__ import annotations

import functools
import inspect
from collections import namedtuple
from collections.abc import Callable
from typing import Any, Final

from ltl.constant import constexpr

_KEPT: Final = ("__module__", "__qualname__", "__doc__")
_OWN: Final = frozenset({"__init__", "__dict__", "__weakref__", "__annotations__", "__slots__", *_KEPT})


class Method:
    """A @jit function as a method of an aggregate: the instance is its first argument."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self.function
        bound = functools.partial(self.function, instance)
        # Frontends take callables of this package as they are.
        bound.__module__ = __name__
        return bound


def aggregate(cls: type) -> Any:
    """A class decorator: instances hold the annotated fields, of run-time and static values, and do not change.

        @ltl.aggregate
        class Range:
            start: ltl.tensor
            size: ltl.constexpr

            def __init__(self, start, size):
                self.start = start
                self.size = size

            @ltl.jit
            def middle(self):
                return self.start + self.size // 2

    Instances are made and used in kernels; `aggregate_replace` gives a copy with other fields.
    """
    annotations: dict[str, Any] = {}
    for base in reversed(cls.__mro__[:-1]):
        annotations |= inspect.get_annotations(base)
    fields = list(annotations)
    static = {name for name, annotation in annotations.items() if _is_constexpr(annotation)}
    return type(
        cls.__name__,
        (namedtuple(cls.__name__, fields),),
        {
            **{name: _attribute(value) for name, value in vars(cls).items() if name not in _OWN and name not in fields},
            **{name: _static_field(fields.index(name)) for name in static},
            **{name: getattr(cls, name) for name in _KEPT},
            "__slots__": (),
            "__new__": _constructor(cls, fields, static),
            "static_fields": frozenset(static),
        },
    )


def _is_constexpr(annotation: Any) -> bool:
    if isinstance(annotation, str):
        return annotation.rsplit(".", 1)[-1].strip() == "constexpr"
    return getattr(annotation, "__name__", "") == "constexpr"


def _static_field(index: int) -> property:
    """Static fields are held as constexprs, which loops and branches leave as they are."""
    return property(lambda self: tuple.__getitem__(self, index).value)


def _attribute(value: Any) -> Any:
    return Method(value) if getattr(value, "traceable", False) else value


def _constructor(cls: type, fields: list[str], static: set[str]) -> Callable[..., Any]:
    """`__new__`: the user's `__init__` fills a plain object, whose fields then make the instance."""

    def __new__(made: Any, *args: Any, **kwargs: Any) -> Any:
        draft = _Draft()
        for name in fields:
            if name in vars(cls):
                setattr(draft, name, vars(cls)[name])
        initialise = getattr(vars(cls).get("__init__"), "function", None) or vars(cls).get("__init__")
        if initialise is not None:
            initialise(draft, *args, **kwargs)
        else:
            for name, value in (*zip(fields, args, strict=False), *kwargs.items()):
                setattr(draft, name, value)
        missing = [name for name in fields if not hasattr(draft, name)]
        if missing:
            raise TypeError(f"{cls.__name__} has no value for {', '.join(missing)}")
        return made._make(_held(getattr(draft, name), name in static) for name in fields)

    return __new__


def _held(value: Any, static: bool) -> Any:
    """A field's value as the instance holds it."""
    if static:
        return constexpr(getattr(value, "known", value))
    return value.value if isinstance(value, constexpr) else value


class _Draft:
    """What `__init__` of an aggregate fills."""


def aggregate_replace(instance: Any, **fields: Any) -> Any:
    """A copy of an aggregate with other values of some fields."""
    return instance._replace(**{name: _held(value, name in instance.static_fields) for name, value in fields.items()})


__all__ = ["aggregate", "aggregate_replace"]
