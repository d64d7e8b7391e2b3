"""Functions of Triton that LTL does not have, the reason, and what to do without them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ltl.errors import Refused, fail

REFUSED: Final[dict[str, tuple[str, str]]] = {
    "inline_asm_elementwise": (
        "there is no GPU to run its assembly",
        "write it with the language's functions; map_elementwise applies a function to single elements",
    ),
}


def refused_function(name: str) -> Callable[..., Any]:
    """A function that says why `ltl.<name>` cannot be used."""
    reason, instead = REFUSED[name]

    def refused(*args: Any, **kwargs: Any) -> Any:
        fail(Refused, what=f"ltl.{name}", reason=reason, instead=instead)

    refused.__name__ = refused.__qualname__ = name
    refused.__doc__ = f"Refused: {reason}. Instead: {instead}."
    return refused
