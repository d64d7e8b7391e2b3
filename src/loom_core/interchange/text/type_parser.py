"""Reading types and encodings."""

from __future__ import annotations

import re
from typing import Any, Final

from loom_core.interchange.attributes import CanonicalAttrDict, Encoding
from loom_core.interchange.text.token_reader import TokenReader
from loom_core.interchange.text.tokenizer import TokenKind
from loom_core.interchange.text.types import print_type
from loom_core.interchange.types import (
    BUFFER_TYPE,
    NONE_TYPE,
    SCALARS,
    SHAPED_KINDS,
    DialectType,
    Dim,
    DynamicDim,
    DynamicEncoding,
    EncodingRole,
    EncodingType,
    FunctionType,
    ParameterizedType,
    PoolType,
    RegisterType,
    ShapedType,
    StaticDim,
    StaticEncoding,
    StorageSpace,
    StorageType,
    Type,
)

MAX_TYPE_DEPTH: Final = 32
SHAPED_NAMES: Final = {name: kind for kind, name in SHAPED_KINDS.items()}
_STATIC_DIM: Final = re.compile(r"(\d+)x")
_ELEMENT: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_SPACES: Final = {space.name.lower(): space for space in StorageSpace}
_ROLES: Final = {role.name.lower(): role for role in EncodingRole}


class TypeParser(TokenReader):
    """Reads types."""

    def spell(self, type: Type) -> str:
        return print_type(type, self.module)

    def entries(self, closing: str, depth: int) -> CanonicalAttrDict:
        """`key = value, ...`, given by the reader of attributes."""
        raise NotImplementedError

    def type(self) -> Type:
        """A type; PARSE/004 where none begins, PARSE/007 where one goes wrong."""
        token = self.tokens[self.i]
        if token.kind is TokenKind.IDENTIFIER:
            scalar = SCALARS.get(token.text)
            if scalar is not None:
                self.i += 1
                return scalar
        self._type_depth += 1
        if self._type_depth > MAX_TYPE_DEPTH:
            self.refuse(f"types nest more than {MAX_TYPE_DEPTH} deep", "PARSE/021")
        found = self._other_type()
        self._type_depth -= 1
        return found

    def _other_type(self) -> Type:
        text = self.text()
        if self.kind() is TokenKind.OP_NAME:
            return self._dialect_type()
        if self.next_is("("):
            return self._function_type()
        if self.kind() is TokenKind.IDENTIFIER:
            if text in SHAPED_NAMES:
                return self._shaped_type()
            if text == "buffer":
                self.i += 1
                return BUFFER_TYPE
            if text == "none":
                self.i += 1
                return NONE_TYPE
            if text == "encoding":
                self.i += 1
                return EncodingType(self._keyword_in_angles(_ROLES)) if self.next_is("<") else EncodingType()
            if text == "storage":
                self.i += 1
                return StorageType(self._keyword_in_angles(_SPACES))
            if text == "pool":
                return self._pool_type()
            if text == "reg":
                return self._register_type()
        return self.refuse(f"a type is expected here, not {self.describe(self.i)}", "PARSE/004")

    def _keyword_in_angles(self, table: dict[str, Any]) -> Any:
        self.expect("<")
        if self.text() not in table:
            self.refuse(f"one of {', '.join(table)} is expected here", "PARSE/017")
        found = table[self.take().text]
        self.expect(">")
        return found

    def _dialect_type(self) -> Type:
        name = self.take().text
        if not self.accept("<"):
            return DialectType(name)
        if self.kind() is TokenKind.IDENTIFIER and self.tokens[self.i + 1].text == "=":
            params = self.entries(">", 0)
            self.expect(">")
            return ParameterizedType(name, tuple(params.items()))
        types = [self.type()]
        while self.accept(","):
            types.append(self.type())
        self.expect(">")
        return DialectType(name, tuple(types))

    def _types(self) -> tuple[Type, ...]:
        self.expect("(")
        found: list[Type] = []
        while not self.next_is(")"):
            found.append(self.type())
            if not self.accept(","):
                break
        self.expect(")")
        return tuple(found)

    def _function_type(self) -> Type:
        arguments = self._types()
        self.expect("->")
        return FunctionType(arguments, self._types())

    def _pool_type(self) -> Type:
        self.i += 1
        self.expect("<")
        size: Dim
        if self.accept("["):
            size = DynamicDim(self.use_value())
            self.expect("]")
        else:
            size = StaticDim(self.integer())
        self.expect(">")
        return PoolType(size)

    def _register_type(self) -> Type:
        self.i += 1
        self.expect("<")
        numbers = [self.integer()]
        while self.accept(","):
            numbers.append(self.integer())
        if len(numbers) not in (2, 3) or min(numbers) < 0:
            self.refuse("a register type has a set, a class and a count", "PARSE/007", back=1)
        value = self.type() if self.accept(":") else None
        self.expect(">")
        return RegisterType(numbers[0], numbers[1], numbers[2] if len(numbers) == 3 else 1, None, value)

    def _shaped_type(self) -> Type:
        """Dimensions are read from the characters: `4x8xf32` is no sequence of tokens."""
        start = self.i
        kind = SHAPED_NAMES[self.take().text]
        source = self.tokenizer.source
        if not self.next_is("<"):
            self.refuse(f"'<' is expected here, not {self.describe(self.i)}", "PARSE/007")
        at = self.tokens[self.i].offset + 1
        dims: list[Dim] = []
        while True:
            while source[at : at + 1].isspace():
                at += 1
            if source.startswith("[", at):
                self._move_to(at)
                self.i += 1
                dims.append(DynamicDim(self.use_value()))
                closing = self.tokens[self.i]
                if not self.next_is("]") or not source.startswith("x", closing.offset + 1):
                    self.refuse("']x' is expected here", "PARSE/007")
                at = closing.offset + 2
                continue
            match = _STATIC_DIM.match(source, at)
            if match is None:
                break
            if len(match[1]) > 18:
                self.refuse_at(start, "this dimension does not fit 64 bits", "PARSE/015")
            dims.append(StaticDim(int(match[1])))
            at = match.end()
        match = _ELEMENT.match(source, at)
        element = SCALARS.get(match[0]) if match else None
        if match is None or element is None:
            self.refuse_at(start, "this type has no element that is a scalar", "PARSE/007")
        self._move_to(match.end())
        encoding: StaticEncoding | DynamicEncoding | None = None
        if self.accept(","):
            encoding = self._attachment()
        if not self.accept(">"):
            self.refuse(f"'>' is expected here, not {self.describe(self.i)}", "PARSE/007")
        try:
            return ShapedType(kind, element, tuple(dims), encoding)
        except ValueError as error:
            self.refuse_at(start, str(error), "PARSE/007")

    def _move_to(self, offset: int) -> None:
        while self.tokens[self.i].offset < offset and self.kind() is not TokenKind.END:
            self.i += 1

    def _attachment(self) -> StaticEncoding | DynamicEncoding:
        if self.kind() is TokenKind.SSA:
            return DynamicEncoding(self.use_value())
        if self.kind() is not TokenKind.HASH:
            self.refuse(f"an encoding is expected here, not {self.describe(self.i)}", "PARSE/008")
        return StaticEncoding(self.encoding_reference())

    def encoding_reference(self) -> int:
        """`#alias`, or an encoding without one."""
        name = self.text()
        for index, encoding in enumerate(self.module.encodings):
            if encoding.alias == name:
                self.i += 1
                return index
        at = self.i
        family, params = self.encoding_body()
        if not params and not self._known_family(family):
            self.refuse_at(at, f"there is no encoding #{name}", "PARSE/008", "aliases are defined first in the file")
        return self.module.add_encoding(Encoding(family, params))

    def _known_family(self, family: str) -> bool:
        return "." in family or any(encoding.family == family for encoding in self.module.encodings)

    def encoding_body(self) -> tuple[str, CanonicalAttrDict]:
        family = self.take().text
        params: CanonicalAttrDict = CanonicalAttrDict()
        if self.accept("<"):
            params = self.entries(">", 0)
            self.expect(">")
        return family, params
