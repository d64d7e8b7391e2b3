"""What a program's expressions stand for while it is checked: tensors by shape, layers and models by their arguments.

Numbers, strings, booleans, none, lists and tuples stand for themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tensorloom.dims import Shape
    from tensorloom.functions import FunctionSpec
    from tensorloom.layers import LayerSpec
    from tensorloom.program import Unit
    from tensorloom.tree import Function, Kernel, Model


class Unknown:
    """A value about which nothing is known."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = Unknown()


@dataclass(slots=True, eq=False)
class Tensor:
    """`shape` None: rank unknown. `dtype`: float, int, bool or empty for unknown.

    A tensor whose shape is unknown is refined by the first layer that says what it must be (`layers.refine`); the
    tensor it was flattened from, `flattened`, is refined with it. `last` names the operation that made it.
    """

    shape: Shape | None = None
    dtype: str = ""
    flattened: Tensor | None = None
    last: str = ""


@dataclass(slots=True, eq=False)
class LayerValue:
    """An instance of a layer of torch.nn. `parts`: the members of a Sequential."""

    spec: LayerSpec
    arguments: dict[str, Any]
    parts: tuple[Any, ...] = ()


@dataclass(slots=True, eq=False)
class ModelValue:
    """An instance of a model. `flow`: the layer calls of its forward; `outcome`: forward's result on `inputs`."""

    model: Model
    unit: Unit
    config: dict[str, Any]
    layers: dict[str, Any] = field(default_factory=dict)
    inputs: list[Tensor] = field(default_factory=list)
    outcome: Any = UNKNOWN
    flow: list[Step] = field(default_factory=list)
    results: dict[Any, Any] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Step:
    """One call of a layer in a model's forward."""

    name: str
    given: Shape | None
    result: Shape | None
    conv: bool = False


@dataclass(slots=True, eq=False)
class ModelClass:
    model: Model
    unit: Unit


@dataclass(slots=True, eq=False)
class FunctionValue:
    """A function of the program; `owner`: the model instance of a method."""

    function: Function
    unit: Unit
    owner: ModelValue | None = None


@dataclass(slots=True, eq=False)
class LayerClass:
    spec: LayerSpec


@dataclass(slots=True, eq=False)
class Builtin:
    spec: FunctionSpec


@dataclass(slots=True, eq=False)
class PythonFunction:
    name: str


@dataclass(slots=True, eq=False)
class Launcher:
    kernel: Kernel
    unit: Unit


@dataclass(slots=True, eq=False)
class Method:
    """`tensor.name`, about to be called."""

    tensor: Tensor
    name: str


@dataclass(slots=True, eq=False)
class Namespace:
    """A built-in module: nn, data, data.mnist."""

    name: str


@dataclass(frozen=True, slots=True)
class Metrics:
    """What a callback is given; `names`: its attributes, all numbers."""

    names: tuple[str, ...]


@dataclass(slots=True, eq=False)
class Dataset:
    """What load_dataset gives. `name` None: synthetic data, of the shapes of the model that is trained on it."""

    name: str | None
