"""Reading tokens, types and attribute values."""

from __future__ import annotations

import re
from typing import Any, Final, NoReturn

from loom_core.interchange.attributes import (
    ATTR_AGGREGATE_MAX_NESTING_DEPTH,
    PREDICATE_KINDS,
    CanonicalAttrDict,
    Encoding,
    EncodingAttr,
    EnumArrayAttr,
    ParameterizedAttr,
    ParameterizedAttrArray,
    Predicate,
    PredicateArg,
    SignedEnumSetAttr,
    SymbolName,
    SymbolNameArray,
)
from loom_core.interchange.declaration import TypedAttribute
from loom_core.interchange.model import Module
from loom_core.interchange.text.tokenizer import ParseError, Token, Tokenizer, TokenKind, decode_string
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
I64_MIN: Final = -(2**63)
I64_MAX: Final = 2**63 - 1
_SHAPED: Final = {name: kind for kind, name in SHAPED_KINDS.items()}
_STATIC_DIM: Final = re.compile(r"(\d+)x")
_ELEMENT: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_SPACES: Final = {space.name.lower(): space for space in StorageSpace}
_ROLES: Final = {role.name.lower(): role for role in EncodingRole}


class AttributeParser:
    """A position in the tokens of a text, and what can be read there."""

    def __init__(self, tokenizer: Tokenizer, module: Module) -> None:
        self.tokenizer = tokenizer
        self.tokens = tokenizer.tokens
        self.module = module
        self.i = 0
        self.unresolved_code = "PARSE/001"
        self._label_uses: dict[str, int] = {}
        self._type_depth = 0

    # ---- tokens ----

    def kind(self) -> TokenKind:
        return self.tokens[self.i].kind

    def text(self) -> str:
        return self.tokens[self.i].text

    def take(self) -> Token:
        token = self.tokens[self.i]
        if token.kind is not TokenKind.END:
            self.i += 1
        return token

    def next_is(self, text: str) -> bool:
        token = self.tokens[self.i]
        return token.text == text and (token.kind is TokenKind.PUNCTUATION or token.kind is TokenKind.IDENTIFIER)

    def accept(self, text: str) -> bool:
        token = self.tokens[self.i]
        if token.text == text and (token.kind is TokenKind.PUNCTUATION or token.kind is TokenKind.IDENTIFIER):
            self.i += 1
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.accept(text):
            self.refuse(f"{text!r} is expected here, not {self.describe(self.i)}")

    def describe(self, at: int) -> str:
        token = self.tokens[at]
        if token.kind is TokenKind.END:
            return "the end of the text"
        sigil = {TokenKind.SSA: "%", TokenKind.SYMBOL: "@", TokenKind.LABEL: "^", TokenKind.HASH: "#"}
        return repr(sigil.get(token.kind, "") + token.text)

    def refuse(self, message: str, code: str = "PARSE/003", hint: str = "", *, back: int = 0) -> NoReturn:
        """ParseError at the next token, or `back` tokens before it."""
        self.refuse_at(max(self.i - back, 0), message, code, hint)

    def refuse_at(self, at: int, message: str, code: str = "PARSE/003", hint: str = "") -> NoReturn:
        location = self.tokenizer.location(self.tokens[at].offset)
        raise ParseError(message, location, self.tokenizer.filename, code, hint)

    def word(self) -> str:
        """An identifier, dotted or not."""
        if self.kind() not in (TokenKind.IDENTIFIER, TokenKind.OP_NAME):
            self.refuse(f"a name is expected here, not {self.describe(self.i)}")
        return self.take().text

    def integer(self) -> int:
        token = self.tokens[self.i]
        if token.kind is not TokenKind.INTEGER:
            self.refuse(f"an integer is expected here, not {self.describe(self.i)}", "PARSE/015")
        if len(token.text) > 24:
            self.refuse("this integer does not fit 64 bits", "PARSE/015")
        number = int(token.text, 0) if "0x" in token.text else int(token.text)
        if not I64_MIN <= number <= I64_MAX:
            self.refuse("this integer does not fit 64 bits", "PARSE/015")
        self.i += 1
        return number

    def integers(self) -> list[int]:
        """`[1, 2]`."""
        self.expect("[")
        found: list[int] = []
        while not self.next_is("]"):
            found.append(self.integer())
            if not self.accept(","):
                break
        self.expect("]")
        return found

    def string(self) -> str:
        if self.kind() is not TokenKind.STRING:
            self.refuse(f"a string is expected here, not {self.describe(self.i)}")
        decoded = decode_string(self.text())
        if decoded is None:
            self.refuse("this string has an escape that is none", "PARSE/023")
        self.i += 1
        return decoded

    def lookup(self, name: str) -> int | None:
        raise NotImplementedError

    def use_value(self) -> int:
        """The value that a name stands for."""
        token = self.tokens[self.i]
        if token.kind is not TokenKind.SSA:
            self.refuse(f"a value is expected here, not {self.describe(self.i)}")
        found = self.lookup(token.text)
        if found is None:
            self.refuse(f"%{token.text} is not defined here", self.unresolved_code, "values are defined before use")
        self.i += 1
        return found

    def spell(self, type: Type) -> str:
        return print_type(type, self.module)

    # ---- types ----

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
            if text in _SHAPED:
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
            params = self._entries(">", 0)
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
        kind = _SHAPED[self.take().text]
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
            params = self._entries(">", 0)
            self.expect(">")
        return family, params

    # ---- attributes ----

    def attribute(self, field: TypedAttribute, name: str) -> Any:
        """The value of a declared attribute."""
        reader = _KINDS.get(field.attribute_kind)
        if reader is not None:
            return reader(self, field, name)
        return self.value(0)

    def _keyword(self, field: TypedAttribute, name: str, code: str = "PARSE/017") -> str:
        text = self.text()
        if self.kind() not in (TokenKind.IDENTIFIER, TokenKind.OP_NAME) or text not in field.keywords:
            known = ", ".join(keyword for keyword in field.keywords if keyword)
            self.refuse(f"{name} is one of {known}, not {self.describe(self.i)}", code)
        self.i += 1
        return text

    def _flags(self, field: TypedAttribute, name: str) -> str:
        found = [self._keyword(field, name, "PARSE/018")]
        while self.accept("|"):
            found.append(self._keyword(field, name, "PARSE/018"))
        return "|".join(keyword for keyword in field.keywords if keyword in found)

    def _word(self, field: TypedAttribute, name: str) -> str:
        return self.word()

    def _symbol(self, field: TypedAttribute, name: str) -> SymbolName:
        if self.kind() is not TokenKind.SYMBOL:
            self.refuse(f"a symbol is expected here, not {self.describe(self.i)}")
        return SymbolName(self.take().text)

    def _symbols(self, field: TypedAttribute, name: str) -> SymbolNameArray:
        self.expect("[")
        found: list[str] = []
        while self.kind() is TokenKind.SYMBOL:
            found.append(self.take().text)
            if not self.accept(","):
                break
        self.expect("]")
        return SymbolNameArray(found)

    def _i64(self, field: TypedAttribute, name: str) -> int:
        if self.kind() is not TokenKind.INTEGER:
            self.refuse(f"{name} is an integer, not {self.describe(self.i)}", "TYPE/005")
        return self.integer()

    def _string(self, field: TypedAttribute, name: str) -> str:
        return self.string()

    def _bool(self, field: TypedAttribute, name: str) -> bool:
        if self.text() not in ("true", "false"):
            self.refuse(f"{name} is true or false, not {self.describe(self.i)}", "TYPE/005")
        return self.take().text == "true"

    def _float(self, field: TypedAttribute, name: str) -> float:
        found = self._number()
        if found is None:
            self.refuse(f"{name} is a float, not {self.describe(self.i)}", "TYPE/005")
        return float(found)

    def _integer_array(self, field: TypedAttribute, name: str) -> list[int]:
        return self.integers()

    def _type(self, field: TypedAttribute, name: str) -> Type:
        return self.type()

    def _dict(self, field: TypedAttribute, name: str) -> CanonicalAttrDict:
        if not self.next_is("{"):
            self.refuse(f"{name} is a dictionary, not {self.describe(self.i)}", "TYPE/005")
        found: CanonicalAttrDict = self.value(0)
        return found

    def _literal(self, field: TypedAttribute, name: str) -> int | float | bool:
        if self.kind() is TokenKind.IDENTIFIER and self.text() in ("true", "false"):
            return self.take().text == "true"
        found = self._number()
        if found is None:
            self.refuse(f"a number is expected here, not {self.describe(self.i)}", "PARSE/015")
        return found

    def _enums(self, field: TypedAttribute, name: str) -> EnumArrayAttr:
        self.expect("[")
        found: list[str] = []
        while not self.next_is("]"):
            found.append(self._keyword(field, name))
            if not self.accept(","):
                break
        self.expect("]")
        return EnumArrayAttr(found)

    def _signed(self, field: TypedAttribute, name: str) -> SignedEnumSetAttr:
        self.expect("[")
        chosen: tuple[list[str], list[str]] = ([], [])
        while not self.next_is("]"):
            negative = self.accept("-")
            chosen[negative].append(self._keyword(field, name))
            if not self.accept(","):
                break
        self.expect("]")
        try:
            return SignedEnumSetAttr(tuple(chosen[0]), tuple(chosen[1]))
        except ValueError as error:
            self.refuse(str(error), back=1)

    def _parameterized(self, field: TypedAttribute, name: str) -> ParameterizedAttr:
        family = self.word()
        params = CanonicalAttrDict()
        if self.accept("<"):
            params = self._entries(">", 0)
            self.expect(">")
        return ParameterizedAttr(family, params)

    def _parameterizeds(self, field: TypedAttribute, name: str) -> ParameterizedAttrArray:
        self.expect("[")
        found: list[ParameterizedAttr] = []
        while not self.next_is("]"):
            found.append(self._parameterized(field, name))
            if not self.accept(","):
                break
        self.expect("]")
        return ParameterizedAttrArray(found)

    def _encoding(self, field: TypedAttribute, name: str) -> EncodingAttr:
        if self.kind() is not TokenKind.HASH:
            self.refuse(f"{name} is an encoding, not {self.describe(self.i)}", "PARSE/008")
        return EncodingAttr(self.encoding_reference())

    def _predicates(self, field: TypedAttribute, name: str) -> tuple[Predicate, ...]:
        return self.predicates()

    def predicates(self) -> tuple[Predicate, ...]:
        """`[kind(%a, 4), ...]`."""
        self.expect("[")
        found: list[Predicate] = []
        while not self.next_is("]"):
            kind = self.text()
            if kind not in PREDICATE_KINDS:
                self.refuse(f"there is no predicate {kind!r}: {', '.join(PREDICATE_KINDS)}", "PARSE/013")
            at = self.i
            self.i += 1
            self.expect("(")
            args: list[PredicateArg] = []
            while not self.next_is(")"):
                if self.kind() is TokenKind.SSA:
                    args.append(PredicateArg("value", self.use_value()))
                else:
                    args.append(PredicateArg("const", self.integer()))
                if not self.accept(","):
                    break
            self.expect(")")
            if len(args) != PREDICATE_KINDS[kind]:
                self.refuse_at(at, f"{kind} takes {PREDICATE_KINDS[kind]} arguments, {len(args)} given", "PARSE/031")
            found.append(Predicate(kind, tuple(args)))
            if not self.accept(","):
                break
        self.expect("]")
        return tuple(found)

    def _number(self) -> int | float | None:
        token = self.tokens[self.i]
        negative = token.text == "-" and token.kind is TokenKind.PUNCTUATION
        word = self.tokens[self.i + 1] if negative else token
        if word.kind is TokenKind.IDENTIFIER and word.text in ("nan", "inf"):
            self.i += 2 if negative else 1
            return -float(word.text) if negative else float(word.text)
        if token.kind is TokenKind.INTEGER:
            return self.integer()
        if token.kind is TokenKind.FLOAT:
            self.i += 1
            return float(token.text)
        return None

    def value(self, depth: int) -> Any:
        """An attribute value that says by itself what it is."""
        if depth > ATTR_AGGREGATE_MAX_NESTING_DEPTH:
            self.refuse(f"values nest more than {ATTR_AGGREGATE_MAX_NESTING_DEPTH} deep", "PARSE/021")
        number = self._number()
        if number is not None:
            return number
        kind, text = self.kind(), self.text()
        if kind is TokenKind.STRING:
            return self.string()
        if kind is TokenKind.SYMBOL:
            return SymbolName(self.take().text)
        if kind is TokenKind.HASH:
            return EncodingAttr(self.encoding_reference())
        if text in ("true", "false") and kind is TokenKind.IDENTIFIER:
            return self.take().text == "true"
        if text == "bytes" and kind is TokenKind.IDENTIFIER:
            return self.hex_bytes()
        if self.accept("{"):
            found = self._entries("}", depth + 1)
            self.expect("}")
            return found
        if self.next_is("["):
            return self._array()
        if kind in (TokenKind.IDENTIFIER, TokenKind.OP_NAME) and (
            text in SCALARS or text in _SHAPED or text == "buffer"
        ):
            return self.type()
        return self.refuse(f"a value is expected here, not {self.describe(self.i)}", "PARSE/017")

    def _array(self) -> Any:
        following = self.tokens[self.i + 1]
        if following.kind is TokenKind.SYMBOL:
            return self._symbols(TypedAttribute(None, "symbols"), "")
        if following.kind is TokenKind.IDENTIFIER and following.text in PREDICATE_KINDS:
            return self.predicates()
        return self.integers()

    def hex_bytes(self) -> bytes:
        self.expect("bytes")
        self.expect("(")
        at = self.i
        text = self.string()
        try:
            found = bytes.fromhex(text)
        except ValueError:
            self.refuse_at(at, "these are no hexadecimal digits", "PARSE/015")
        self.expect(")")
        return found

    def _entries(self, closing: str, depth: int) -> CanonicalAttrDict:
        found: dict[str, Any] = {}
        while not self.next_is(closing):
            at = self.i
            key = self.word()
            if key in found:
                self.refuse_at(at, f"the key {key!r} occurs twice", "PARSE/020")
            self.expect("=")
            found[key] = self.value(depth)
            if not self.accept(","):
                break
        return CanonicalAttrDict(found)


_KINDS: Final[dict[str, Any]] = {
    "enum": AttributeParser._keyword,
    "flags": AttributeParser._flags,
    "symbol": AttributeParser._symbol,
    "symbols": AttributeParser._symbols,
    "i64": AttributeParser._i64,
    "string": AttributeParser._string,
    "bool": AttributeParser._bool,
    "f64": AttributeParser._float,
    "i64s": AttributeParser._integer_array,
    "type": AttributeParser._type,
    "predicates": AttributeParser._predicates,
    "dict": AttributeParser._dict,
    "literal": AttributeParser._literal,
    "enums": AttributeParser._enums,
    "signed": AttributeParser._signed,
    "parameterized": AttributeParser._parameterized,
    "parameterizeds": AttributeParser._parameterizeds,
    "encoding": AttributeParser._encoding,
    "word": AttributeParser._word,
}
