"""What the elements of a form see of an operation that is being read."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from loom_core.interchange.declaration import OpDeclaration, RegionField, TypedAttribute
from loom_core.interchange.model import VALUE_BLOCK_ARGUMENT, Block, Region, Value
from loom_core.interchange.text.tokenizer import TokenKind
from loom_core.interchange.types import NONE_TYPE, Type

if TYPE_CHECKING:
    from loom_core.interchange.text.parser import ModuleParser

_PLAIN: Final = (TokenKind.IDENTIFIER, TokenKind.PUNCTUATION)
Result = TypeVar("Result")
Scope = dict[str, int]
Argument = tuple[str, int, Type | None]
"""Name (empty: none), position of its token, and type of a region argument."""


class OpReader:
    """What the elements of a form see of the operation that is being read."""

    __slots__ = (
        "accept", "attributes", "decl", "expect", "integer", "integers", "label", "next_is", "operands", "p",
        "predicates", "refuse", "region_arguments", "regions", "result_names", "result_types", "scopes", "successors",
        "take", "tied", "type", "use_value", "word",
    )  # fmt: skip

    def __init__(self, parser: ModuleParser, decl: OpDeclaration) -> None:
        self.p = parser
        self.decl = decl
        self.operands: dict[str, list[int]] = {}
        self.attributes: dict[str, Any] = {}
        self.result_types: dict[str, list[Type]] = {}
        self.result_names: dict[int, str] = {}
        self.regions: dict[str, list[Region]] = {}
        self.successors: dict[str, list[Block]] = {}
        self.tied: list[tuple[int, int]] = []
        self.region_arguments: dict[str, list[Argument]] = {}
        self.scopes: dict[str, tuple[Scope, list[int]]] = {}
        self.accept = parser.accept
        self.expect = parser.expect
        self.integer = parser.integer
        self.integers = parser.integers
        self.label = parser.label
        self.next_is = parser.next_is
        self.predicates = parser.predicates
        self.refuse = parser.refuse
        self.take = parser.take
        self.type = parser.type
        self.use_value = parser.use_value
        self.word = parser.word

    def next_kind(self) -> TokenKind:
        return self.p.kind()

    def next_text(self) -> str:
        return self.p.text()

    def next_are(self, texts: list[str]) -> bool:
        """Whether words and punctuation follow in this order."""
        following = self.p.tokens[self.p.i : self.p.i + len(texts)]
        return [token.text for token in following if token.kind in _PLAIN] == texts

    def position(self) -> int:
        return self.p.i

    def name_follows_colon(self) -> bool:
        token = self.p.tokens[self.p.i + 1] if self.p.i + 1 < len(self.p.tokens) else None
        return token is not None and token.text == ":" and token.kind is TokenKind.PUNCTUATION

    def new_name(self) -> Argument:
        """A value name that is about to be defined, and where it stands."""
        if self.next_kind() is not TokenKind.SSA:
            self.refuse(f"a value name is expected here, not {self.p.describe(self.p.i)}")
        name = self.take().text
        return name, self.p.i - 1, None

    def attribute(self, field: TypedAttribute, name: str) -> Any:
        return self.p.attribute(field, name)

    def check_types(self, values: list[int], spelled: list[tuple[int, Type]]) -> None:
        """That spelled types are those which the operands have."""
        if len(values) != len(spelled):
            message = f"{counted(len(values), 'operand')}, {counted(len(spelled), 'type')}"
            self.refuse(message, "PARSE/010", back=1)
        for value, (at, type) in zip(values, spelled, strict=True):
            actual = self.p.module.values[value].type
            if actual != type:
                name = self.p.module.values[value].name
                message = f"%{name} is {self.p.spell(actual)}, not {self.p.spell(type)}"
                self.p.refuse_at(at, message, "TYPE/003")

    # ---- regions and signatures ----

    def signature(self, region: str) -> None:
        """`(%a: T, ...)`: types may refer to any of the arguments."""
        p = self.p
        p.expect("(")
        start = p.i
        scope: Scope = {}
        values: list[int] = []
        outer = p.scopes
        p.scopes = [scope] if self.decl.isolated or self.decl.symbol else [*outer, scope]
        for at in self._argument_names(start):
            values.append(p.define(p.tokens[at].text, NONE_TYPE, at, VALUE_BLOCK_ARGUMENT))
        for value in values:
            p.take()
            p.expect(":")
            p.unresolved_code = "PARSE/022"
            p.module.values[value].type = p.type()
            p.unresolved_code = "PARSE/001"
            if not p.accept(","):
                break
        p.expect(")")
        p.scopes = outer
        self.scopes[region] = (scope, values)

    def _argument_names(self, start: int) -> list[int]:
        """Positions of the names before a colon, up to the parenthesis that closes the signature."""
        tokens = self.p.tokens
        found = []
        depth = 0
        at = start
        while at < len(tokens):
            token = tokens[at]
            if token.kind is TokenKind.PUNCTUATION:
                if token.text in "([<":
                    depth += 1
                elif token.text in ")]>":
                    if depth == 0 and token.text == ")":
                        break
                    depth -= 1
            elif token.kind is TokenKind.SSA and depth == 0 and tokens[at + 1].text == ":":
                found.append(at)
            at += 1
        if tokens[start].text != ")" and (not found or found[0] != start):
            self.refuse(f"an argument is expected here, not {self.p.describe(start)}")
        return found

    def within(self, region: str, read: Callable[[], Result]) -> Result:
        """Read something that speaks of the arguments of a region."""
        p = self.p
        outer = p.scopes
        p.scopes = [*outer, self.scopes[region][0]] if region in self.scopes else outer
        found = read()
        p.scopes = outer
        return found

    def region(self, field: RegionField, name: str) -> Region:
        p = self.p
        if name in self.scopes:
            scope, values = self.scopes[name]
            return p.region(self.decl, field, values, scope)
        pending = self.region_arguments.get(name)
        if pending is None:
            return p.region(self.decl, field, None, {})
        scope = {}
        outer = p.scopes
        p.scopes = [*outer, scope]
        values = p.define_arguments([self._typed(argument) for argument in pending])
        p.scopes = outer
        return p.region(self.decl, field, values, scope)

    def _typed(self, argument: Argument) -> Argument:
        """The induction variable, whose type the text leaves out, has that of the lower bound."""
        name, at, type = argument
        if type is None:
            (bound,) = self.operands["lower_bound"]
            type = self.p.module.values[bound].type
        return name, at, type

    def regions_of(self, name: str) -> list[Region]:
        """The regions of a field; a signature without a body is one too."""
        found = self.regions.get(name)
        if found is None and name in self.scopes:
            return [Region([Block("", self.scopes[name][1])])]
        return found or []

    def signature_values(self) -> list[int]:
        return [value for _, values in self.scopes.values() for value in values]

    def signature_results(self, types: list[Type]) -> list[int]:
        """Values for the results of a signature."""
        found = []
        for index, type in enumerate(types):
            name = self.result_names.get(index, "")
            found.append(self.p.module.add_value(Value(name, type)))
        return found


def counted(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")
