"""What `identify` says about real files of each kind."""

from __future__ import annotations

import io
import json
import struct
from pathlib import Path

import numpy as np
import pytest

from loom_core.tools.file_kinds import identify


def npz() -> bytes:
    file = io.BytesIO()
    np.savez(file, x=np.zeros(3))
    return file.getvalue()


def npy() -> bytes:
    file = io.BytesIO()
    np.save(file, np.zeros(3))
    return file.getvalue()


def safetensors() -> bytes:
    header = json.dumps({"x": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    return struct.pack("<Q", len(header)) + header + bytes(4)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"", "an empty file"),
        (b"LOOMOBJ\0" + bytes(100), "a Loom object"),
        (b"LOOMOB", "a Loom module in bytecode"),
        (b"LOO", "the beginning of a Loom object, cut off"),
        (b"LOOM\x01\x00", "a Loom module in bytecode"),
        (npz(), "a zip archive (.npz arrays, a .pt checkpoint or a wheel)"),
        (npy(), "a NumPy array (.npy)"),
        (safetensors(), "a safetensors checkpoint"),
        (b"module {\n  tt.func public @k(%arg0: !tt.ptr<f32>) {\n", "Triton IR text (TTIR or TTGIR)"),
        (b'module @m {\n  func.func @f() {\n    "x.y"() : () -> ()', "MLIR text"),
        (b"%0 = stablehlo.add %a, %b : tensor<f32>", "StableHLO text"),
        (b"// a file\n\ntarget.generic<reference> @reference\n", "a Loom module in text"),
        (b"func.def public @f() {\n}\n", "a Loom module in text"),
        (Path(__file__).read_bytes(), "Python source"),
        (b'{"a": 1}', "JSON or a text like it"),
        (b"hello\n", "a text file"),
        (("a" * 4095 + "ż").encode(), "a text file"),
        (b"\x01\x02\x03\xff\xfe", "binary data of an unknown kind (it begins with 01 02 03 ff fe)"),
    ],
    ids=lambda value: None if isinstance(value, bytes) else value[:20],
)
def test_identify(data: bytes, kind: str) -> None:
    assert identify(data) == kind
