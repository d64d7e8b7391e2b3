"""Launch arguments from the command line."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from loom_core.objfile import Abi, AbiArg
from loom_core.tools.arguments import parse_argument, parse_grid, prepare, read_arrays
from loom_core.tools.diagnostics import (
    BadArgument,
    BadGrid,
    MissingArgument,
    UnknownArgument,
    UnreadableFile,
    WrongArgument,
)

ABI = Abi(
    (
        AbiArg("x", "buffer", "f32", 1),
        AbiArg("h", "buffer", "bf16", 2, read=False, written=True),
        AbiArg("n", "scalar", "i32", 3),
        AbiArg("eps", "scalar", "f32", 4),
    )
)
GOOD = ("x=f32[2,3]", "h=bf16[4]", "n=-5", "eps=0.5")


def test_grid() -> None:
    assert parse_grid("8") == (8, 1, 1)
    assert parse_grid("4,2") == (4, 2, 1)
    assert parse_grid("4x2x3") == (4, 2, 3)


@pytest.mark.parametrize("text", ["", "a", "1,2,3,4", "-1", "0", "1,,2", "99999999999", "\u00b2", "9" * 5000])
def test_bad_grid(text: str) -> None:
    with pytest.raises(BadGrid):
        parse_grid(text)


def test_prepare_from_texts() -> None:
    launch = prepare(ABI, {}, GOOD, (4, 2, 1))
    assert {name: (a.shape, a.dtype) for name, a in launch.buffers.items()} == {
        "x": ((2, 3), np.float32),
        "h": ((4,), ml_dtypes.bfloat16),
    }
    assert launch.registers == {0: 4, 1: 2, 2: 1, 3: -5, 4: 0x3F000000}
    assert [high for _, _, high in launch.bindings] == [24, 8]
    assert launch.bindings[0][0] == launch.buffers["x"].ctypes.data


def test_arrays_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "in.npz"
    x = np.arange(6, dtype=np.float32).reshape(3, 2).T
    h = np.array([1, 2], ml_dtypes.bfloat16)
    np.savez(path, x=x, h=h, n=np.int64(7), eps=np.float32(1))
    launch = prepare(ABI, read_arrays(path), ["n=8"], (1, 1, 1))
    assert np.array_equal(launch.buffers["x"], x)
    assert launch.buffers["x"].flags.c_contiguous
    assert np.array_equal(launch.buffers["h"], h)
    assert launch.registers[3] == 8


@pytest.mark.parametrize("content", [b"", b"not arrays", b"\x93NUMPY", b"PK\x03\x04 cut"])
def test_file_that_holds_no_arrays(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "in.npz"
    path.write_bytes(content)
    with pytest.raises(UnreadableFile, match=r"in\.npz"):
        read_arrays(path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"import numpy\n", "this is not an .npz file but Python source"),
        (b"\x00\x01", "binary data of an unknown kind"),
        (b"PK\x03\x04 cut", "cut off"),
    ],
)
def test_other_files_are_named_in_our_own_words(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "in.npz"
    path.write_bytes(content)
    with pytest.raises(UnreadableFile, match=words) as refused:
        read_arrays(path)
    assert "pickle" not in str(refused.value)


def test_objects_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", allow_pickle=True, x=np.array([{}], object))
    with pytest.raises(UnreadableFile, match="its member x holds Python objects") as refused:
        read_arrays(tmp_path / "in.npz")
    assert "pickle" not in str(refused.value)


def test_npy_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "in.npy", np.zeros(2))
    with pytest.raises(UnreadableFile, match="without a name"):
        read_arrays(tmp_path / "in.npy")


@pytest.mark.parametrize(
    "text",
    ["x", "=1", "x=q32[4]", "x=f32[a]", "n=abc", "n=", "x=f32[1 2]", "x=f32[2,,3]", "x=f32[-1]", "x=f32[\u0663]"],
)
def test_bad_argument(text: str) -> None:
    with pytest.raises(BadArgument):
        parse_argument(text)


@pytest.mark.parametrize(
    "text",
    [
        "x=f32[99999999999999]",
        "x=f32[99999999999999999999999]",
        f"x=f32[{'9' * 5000}]",
        "x=f32[4294967296,4294967296]",
        "x=f32[0,99999999999999999999]",
        f"x=f32[{','.join(['1'] * 65)}]",
        f"n={'9' * 5000}",
        "n=18446744073709551616",
    ],
)
def test_sizes_that_no_computer_has(text: str) -> None:
    with pytest.raises(BadArgument):
        parse_argument(text)


def test_an_allocation_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def zeros(*arguments: object) -> None:
        raise MemoryError

    monkeypatch.setattr(np, "zeros", zeros)
    with pytest.raises(BadArgument, match=r"this computer has no 4 KiB for it"):
        parse_argument("x=f32[1024]")


def test_empty_and_scalar_shapes() -> None:
    assert parse_argument("x=f32[]")[1].shape == ()
    assert parse_argument("x=f32[4,]")[1].shape == (4,)
    assert parse_argument("x=f32[0, 3]")[1].shape == (0, 3)
    assert parse_argument("n=0x10")[1] == 16


def test_missing_unknown_wrong() -> None:
    with pytest.raises(MissingArgument, match=r"no value for argument eps \(scalar of f32\)"):
        prepare(ABI, {}, GOOD[:-1], (1, 1, 1))
    with pytest.raises(UnknownArgument, match="no argument called y"):
        prepare(ABI, {}, [*GOOD, "y=1"], (1, 1, 1))
    with pytest.raises(WrongArgument, match="argument x is a buffer of f32, but was given float64"):
        prepare(ABI, {"x": np.zeros(3)}, GOOD[1:], (1, 1, 1))
    with pytest.raises(WrongArgument, match="outside -2147483648"):
        prepare(ABI, {}, [*GOOD, "n=2147483648"], (1, 1, 1))
    with pytest.raises(WrongArgument, match=r"argument n is a scalar of i32, but was given 1\.5") as fraction:
        prepare(ABI, {}, [*GOOD, "n=1.5"], (1, 1, 1))
    assert fraction.value.diagnostics[0].hint == "write a whole number, as in --arg n=1024"
    with pytest.raises(WrongArgument, match=r"argument x is a buffer of f32, but was given the number 5") as number:
        prepare(ABI, {}, [*GOOD, "x=5"], (1, 1, 1))
    assert "--arg x=f32[...]" in number.value.diagnostics[0].hint
    with pytest.raises(WrongArgument, match=r"an array of shape \(2,\)"):
        prepare(ABI, {"n": np.zeros(2, np.int32)}, [t for t in GOOD if t[0] != "n"], (1, 1, 1))


def test_buffers_are_copies() -> None:
    x = np.zeros(3, np.float32)
    launch = prepare(ABI, {"x": x}, GOOD[1:], (1, 1, 1))
    launch.buffers["x"][:] = 1
    assert not x.any()
