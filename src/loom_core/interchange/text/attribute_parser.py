"""Reading attribute values."""

from __future__ import annotations

from typing import Any, Final

from loom_core.interchange.attributes import (
    ATTR_AGGREGATE_MAX_NESTING_DEPTH,
    PREDICATE_KINDS,
    CanonicalAttrDict,
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
from loom_core.interchange.text.tokenizer import TokenKind
from loom_core.interchange.text.type_parser import SHAPED_NAMES, TypeParser
from loom_core.interchange.types import (
    SCALARS,
    Type,
)


class AttributeParser(TypeParser):
    """Reads attribute values."""

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
            params = self.entries(">", 0)
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
            found = self.entries("}", depth + 1)
            self.expect("}")
            return found
        if self.next_is("["):
            return self._array()
        if kind in (TokenKind.IDENTIFIER, TokenKind.OP_NAME) and (
            text in SCALARS or text in SHAPED_NAMES or text == "buffer"
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

    def entries(self, closing: str, depth: int) -> CanonicalAttrDict:
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
