"""Bytes in and out: varints, strings, bounds."""

from __future__ import annotations

import struct
from typing import Final

_VARINT_BITS: Final = 64


class BytecodeError(Exception):
    """Bytes that are no bytecode module, or a module that bytecode cannot hold. `code` is its name in the table."""

    def __init__(self, message: str, code: str = "BYTECODE/006") -> None:
        super().__init__(message)
        self.code = code


class ByteWriter(bytearray):
    """Bytes being written."""

    def varint(self, number: int) -> None:
        if number < 0x80:
            if number < 0:
                raise ValueError(f"{number} is negative")
            self.append(number)
            return
        if number >> _VARINT_BITS:
            raise ValueError(f"{number} does not fit {_VARINT_BITS} bits")
        while number >= 0x80:
            self.append(number & 0x7F | 0x80)
            number >>= 7
        self.append(number)

    def signed(self, number: int) -> None:
        if not -(1 << 63) <= number < 1 << 63:
            raise ValueError(f"{number} does not fit 64 bits")
        self.varint(number << 1 if number >= 0 else (-number << 1) - 1)

    def fixed(self, layout: str, *numbers: int | float) -> None:
        self += struct.pack("<" + layout, *numbers)

    def blob(self, data: bytes) -> None:
        self.varint(len(data))
        self += data

    def align(self) -> None:
        """Zeros up to a multiple of 8."""
        self += bytes(-len(self) % 8)


class ByteReader:
    """Bytes being read; BytecodeError at whatever is malformed. Positions are within `data`, up to `end`."""

    __slots__ = ("at", "data", "end")

    def __init__(self, data: bytes, at: int = 0, end: int | None = None) -> None:
        self.data = data
        self.at = at
        self.end = len(data) if end is None else end

    def remaining(self) -> int:
        return self.end - self.at

    def need(self, count: int) -> int:
        """Position of `count` bytes, which are then behind."""
        start = self.at
        if count > self.end - start:
            raise BytecodeError(f"unexpected end of data at byte {self.end}", "BYTECODE/003")
        self.at = start + count
        return start

    def byte(self) -> int:
        at = self.at
        if at >= self.end:
            raise BytecodeError(f"unexpected end of data at byte {self.end}", "BYTECODE/003")
        self.at = at + 1
        return self.data[at]

    def varint(self) -> int:
        at = self.at
        if at >= self.end:
            raise BytecodeError(f"unexpected end of data at byte {self.end}", "BYTECODE/003")
        byte = self.data[at]
        if byte < 0x80:
            self.at = at + 1
            return byte
        number, shift = byte & 0x7F, 7
        while True:
            at += 1
            if at >= self.end:
                raise BytecodeError(f"unexpected end of data at byte {self.end}", "BYTECODE/003")
            byte = self.data[at]
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
            if shift >= 70:
                raise BytecodeError(f"non-canonical varint at byte {self.at}: too long", "BYTECODE/008")
        if byte == 0 or number >> _VARINT_BITS:
            raise BytecodeError(f"non-canonical varint at byte {self.at}", "BYTECODE/008")
        self.at = at + 1
        return number

    def signed(self) -> int:
        number = self.varint()
        return number >> 1 if not number & 1 else -((number + 1) >> 1)

    def count(self, what: str, limit: int | None = None) -> int:
        """A number of things, each of at least one byte."""
        number = self.varint()
        if limit is not None and number > limit:
            raise BytecodeError(f"{number} {what}, at most {limit} are allowed", "BYTECODE/009")
        if number > self.end - self.at:
            raise BytecodeError(f"{number} {what} do not fit the {self.end - self.at} bytes left", "BYTECODE/003")
        return number

    def fixed(self, layout: str) -> tuple[int, ...]:
        size = struct.calcsize("<" + layout)
        return struct.unpack_from("<" + layout, self.data, self.need(size))

    def double(self) -> float:
        (number,) = struct.unpack_from("<d", self.data, self.need(8))
        return float(number)

    def blob(self, limit: int | None = None) -> bytes:
        length = self.count("bytes", limit)
        start = self.need(length)
        return self.data[start : start + length]

    def index(self, size: int, what: str, code: str = "BYTECODE/012") -> int:
        """A position in a table of `size` entries."""
        number = self.varint()
        if number >= size:
            raise BytecodeError(f"{what} {number} is out of range: there are {size}", code)
        return number

    def choice(self, size: int, what: str, code: str = "BYTECODE/011") -> int:
        """A byte below `size`."""
        number = self.byte()
        if number >= size:
            raise BytecodeError(f"{what} {number} is out of range: there are {size}", code)
        return number

    def padding(self) -> None:
        """Zeros up to a multiple of 8."""
        count = -self.at % 8
        start = self.need(count)
        if any(self.data[start : start + count]):
            raise BytecodeError(f"padding at byte {start} is not zero", "BYTECODE/006")

    def finish(self, what: str) -> None:
        if self.at != self.end:
            raise BytecodeError(f"{what} ends at byte {self.at}, not at byte {self.end}", "BYTECODE/007")
