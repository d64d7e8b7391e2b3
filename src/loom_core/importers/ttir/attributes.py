"""Attributes in Triton IR text: numbers, strings, lists, dense constants, dictionaries."""

from __future__ import annotations

import re
from typing import Any, Final

from loom_core.importers.ttir.scanner import Scanner
from loom_core.importers.ttir.syntax import Raw, Typed
from loom_core.importers.ttir.types import TypeReader

_MOST_DIGITS: Final = 100  # of a whole number; more are no integer of any type
_NUMBER: Final = re.compile(r"0x[0-9A-Fa-f]+|-?\d+(?:\.\d*(?:[eE][+-]?\d+)?)?")
_KEY: Final = re.compile(r"[A-Za-z_][\w$.]*")
_WORD: Final = re.compile(r"[A-Za-z_][\w$.|]*")
_ALIAS: Final = re.compile(r"#[\w.$]+")
_SYMBOL: Final = re.compile(r"@[\w$.-]+")
_TYPE_AHEAD: Final = re.compile(r"!|tensor<|(?:[su]?i\d+|bf16|f\d+(?:E\w+)?|index|none)\b")
_DENSE: Final = re.compile(r"dense(?=<)")
_ARRAY: Final = re.compile(r"array(?=<)")


class AttributeReader:
    """Parses attribute values; `aliases` are the module's names for attributes."""

    def __init__(self, scanner: Scanner, types: TypeReader) -> None:
        self._scanner = scanner
        self._types = types
        self.aliases: dict[str, Any] = {}

    def dictionary(self) -> dict[str, Any]:
        """`{name = value, unit}`."""
        self._scanner.expect("{")
        return self.entries("}")

    def entries(self, end: str) -> dict[str, Any]:
        """Entries up to `end`, which is consumed; a name without value is True."""
        scanner = self._scanner
        found: dict[str, Any] = {}
        while not scanner.accept(end):
            if found:
                scanner.expect(",")
            key = scanner.string() if scanner.looking_at('"') else scanner.need(_KEY, "an attribute's name")
            if key in found:
                scanner.fail(f"{key} is given twice")
            found[key] = self.value() if scanner.accept("=") else True
        return found

    def value(self, *, typed: bool = True) -> Any:
        """An attribute value: a number, text, list, dictionary, `Typed` constant, or `Raw` text."""
        with self._scanner.nested():
            return self._value(typed)

    def _value(self, typed: bool) -> Any:
        scanner = self._scanner
        if scanner.looking_at('"'):
            return scanner.string()
        if scanner.looking_at("{"):
            return self.dictionary()
        if scanner.accept("["):
            return self._items("]")
        if (number := scanner.match(_NUMBER)) is not None:
            return self._with_type(_number(number.group()), typed)
        if scanner.match(_DENSE):
            return self._with_type(self._dense(), typed)
        if scanner.match(_ARRAY):
            return self._array()
        if (alias := scanner.match(_ALIAS)) is not None:
            text = alias.group()
            if scanner.adjacent("<"):
                return Raw(text + scanner.balanced())
            return self.aliases.get(text, Raw(text))
        if (symbol := scanner.match(_SYMBOL)) is not None:
            return Raw(symbol.group())
        if scanner.ahead(_TYPE_AHEAD):
            return self._types.read()
        word = scanner.need(_WORD, "a value")
        if word in ("true", "false"):
            return word == "true"
        return Raw(word + (scanner.balanced() if scanner.adjacent("<") else ""))

    def _with_type(self, value: Any, typed: bool) -> Any:
        """`value : type`. Values of integer attributes are plain numbers; a constant keeps its type."""
        if not typed or not self._scanner.accept(":"):
            return value
        return Typed(value, self._types.read())

    def _items(self, end: str) -> list[Any]:
        found: list[Any] = []
        while not self._scanner.accept(end):
            if found:
                self._scanner.expect(",")
            found.append(self.value())
        return found

    def _dense(self) -> Any:
        """`<1.0>`, `<[1, 2]>`, `<"0x0102">` (bytes as text)."""
        scanner = self._scanner
        scanner.expect("<")
        if scanner.accept(">"):
            return []
        value = self.value(typed=False)
        scanner.expect(">")
        return value

    def _array(self) -> list[Any]:
        """`<i32: 1, 0>`."""
        scanner = self._scanner
        scanner.expect("<")
        self._types.read()
        if scanner.accept(">"):
            return []
        scanner.expect(":")
        return self._items(">")


def _number(text: str) -> int | float | str:
    """A number; a hexadecimal one stays text, because the type decides whether it is a float's bits."""
    if text.startswith("0x"):
        return text
    return float(text) if "." in text or "e" in text or "E" in text or len(text) > _MOST_DIGITS else int(text)


def plain(value: Any) -> Any:
    """The number, text or list of an attribute without its type."""
    if isinstance(value, Typed):
        return value.value
    if isinstance(value, Raw):
        return value.text
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value
