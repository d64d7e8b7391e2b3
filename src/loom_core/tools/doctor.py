"""`loomc doctor`: whether Loom works here, and with what; every line is looked up or tried when it is asked for."""

from __future__ import annotations

import difflib
import importlib.metadata
import json
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Literal

import click
import numpy as np

from loom_core import __version__
from loom_core.base.diagnostics import LoomError
from loom_core.base.knobs import all_knobs, knobs
from loom_core.base.units import byte_count

Status = Literal["ok", "note", "wrong"]

NEEDED: Final = ("numpy", "numba", "llvmlite", "ml_dtypes", "blake3", "msgspec", "click", "rich", "platformdirs")
OPTIONAL: Final = {
    "torch": "PyTorch arrays, TensorLoom's training",
    "jax": "jax arrays, and comparing with Pallas",
    "triton": "running installed Triton libraries (loom.triton.install)",
    "onnx": "ONNX models",
    "pytest": "loom.testing",
    "ipykernel": "notebooks",
    "pygls": "TensorLoom in editors",
}
FREE_BYTES: Final = 200 << 20  # what engines and objects of ordinary use take


@dataclass(frozen=True)
class Finding:
    """One line of the report: about what, what was found, and what to do where something is wrong."""

    subject: str
    found: str
    status: Status = "ok"
    hint: str = ""


# ---- checks ----------------------------------------------------------------------------------------------------------


def host() -> Iterator[Finding]:
    """Python and the processor."""
    yield Finding("loom", __version__)
    yield Finding("python", f"{platform.python_implementation()} {platform.python_version()} on {platform.platform()}")
    from llvmlite import binding

    from loom_sim.sharing import usable_cpus

    features = binding.get_host_cpu_features()
    vectors = next((name for name in ("avx512f", "avx2", "avx", "neon", "sse2") if features.get(name)), "unknown")
    yield Finding(
        "processor", f"{binding.get_host_cpu_name()}, vectors {vectors}, {usable_cpus()} CPUs for this process"
    )
    if platform.machine() in ("x86_64", "AMD64") and not features.get("fma"):
        yield Finding("processor", "no fused multiply-add", "note", "results are the same; products are much slower")


def packages() -> Iterator[Finding]:
    """Versions of what Loom needs, and of what it can work with."""
    for name in NEEDED:
        version = _version(name)
        if version is None:
            yield Finding(name, "not installed", "wrong", f"pip install {name}")
        else:
            yield Finding(name, version)
    for name, purpose in OPTIONAL.items():
        version = _version(name)
        yield Finding(name, version or f"not installed; it is for {purpose}", "ok" if version else "note")


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def environment() -> Iterator[Finding]:
    """LOOM_ variables: unknown ones, and values that cannot be read."""
    known = {knob.variable: knob for knob in all_knobs()}
    for variable, text in sorted(os.environ.items()):
        if not variable.startswith("LOOM_"):
            continue
        knob = known.get(variable)
        if knob is None:
            near = difflib.get_close_matches(variable, known, 1)
            advice = f"did you mean {near[0]}?" if near else "docs/knobs.md has those that there are"
            yield Finding(variable, f"{text!r}, which nothing reads", "note", advice)
            continue
        try:
            knob.parse(text)
        except LoomError as error:
            diagnostic = error.diagnostics[0]
            yield Finding(variable, diagnostic.message, "wrong", diagnostic.hint or "")
        else:
            yield Finding(variable, repr(text))


def cache() -> Iterator[Finding]:
    """The folder of engines and objects: what is in it, whether it can be written, what is free."""
    try:
        folder = knobs.cache_dir
    except LoomError:
        return  # `environment` tells
    files = [path.stat().st_size for path in folder.rglob("*") if path.is_file()] if folder.is_dir() else []
    yield Finding("cache", f"{folder}: {len(files)} files, {byte_count(sum(files))}")
    problem = _unwritable(folder)
    if problem:
        hint = "set LOOM_CACHE_DIR to a folder that can be written; until then every process compiles its engines anew"
        yield Finding("cache", f"cannot be written: {problem}", "wrong", hint)
        return
    free = shutil.disk_usage(folder).free
    if free < FREE_BYTES:
        hint = "make room, or set LOOM_CACHE_DIR to a folder on another disk"
        yield Finding("cache", f"{byte_count(free)} free on its disk", "wrong", hint)


def _unwritable(folder: Path) -> str:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(4096))
    except OSError as error:
        return error.strerror or str(error)
    return ""


def trial() -> Iterator[Finding]:
    """A kernel compiled and run, its bits compared with NumPy's meaning of its operations."""
    from loom_sim.jit import stats
    from ltl.source import load_source

    kernel = load_source(_TRIAL, "<trial>")["trial"]
    x = np.random.default_rng(0).standard_normal((64, 64), dtype=np.float32)
    results = []
    stats.clear()
    start = time.perf_counter()
    for interpret in (False, True):
        with knobs.override(interpret=interpret, check=False, debug=0):
            out = np.empty_like(x)
            kernel[(1,)](x, out, 64)
            results.append(out)
        if not interpret:
            seconds = time.perf_counter() - start
    if results[0].tobytes() != results[1].tobytes():
        count = int((results[0].view(np.uint32) != results[1].view(np.uint32)).sum())
        hint = "this must never happen: please report it with this page"
        yield Finding("trial", f"{count} of {x.size} elements differ from the reference", "wrong", hint)
    made = f"{len(stats.compiled)} engines compiled, {len(stats.loaded)} from the cache"
    yield Finding("trial", f"product and softmax, bits as the reference has them; {seconds:.2f} s, {made}")


_TRIAL: Final = """\
import loom.triton.language as ltl


@ltl.jit
def trial(x, out, n: ltl.constexpr):
    row, column = ltl.arange(0, n), ltl.arange(0, n)
    at = row[:, None] * n + column[None, :]
    tile = ltl.load(x + at)
    scores = ltl.dot(tile, tile)
    weights = ltl.exp(scores - ltl.max(scores, axis=1, keep_dims=True))
    ltl.store(out + at, weights / ltl.sum(weights, axis=1, keep_dims=True))
"""

FULL_TRACEBACK: Final = "LOOM_FULL_TRACEBACK"
CHECKS: Final[tuple[Callable[[], Iterator[Finding]], ...]] = (host, packages, environment, cache, trial)


def examine() -> Iterator[Finding]:
    """All findings, as they come. A check that breaks is itself a finding."""
    for check in CHECKS:
        try:
            yield from check()
        except Exception as error:
            if os.environ.get(FULL_TRACEBACK) == "1":
                raise
            yield Finding(
                check.__name__, f"{type(error).__name__}: {error}", "wrong", f"{FULL_TRACEBACK}=1 shows where"
            )


_MARKS: Final = {"ok": ("ok", "green"), "note": ("note", "yellow"), "wrong": ("wrong", "red")}


@click.command(name="doctor")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def doctor_command(as_json: bool) -> None:
    """Look at this installation: versions, processor, environment, caches, and a kernel that is run; leave with 1 if
    something is wrong.
    """
    findings = []
    for finding in examine():
        findings.append(finding)
        if not as_json:
            _show(finding)
    if as_json:
        click.echo(json.dumps([asdict(finding) for finding in findings], indent=2))
    if any(finding.status == "wrong" for finding in findings):
        raise SystemExit(1)


def _show(finding: Finding) -> None:
    mark, colour = _MARKS[finding.status]
    click.echo(f"{click.style(f'{mark:<6}', fg=colour)}{finding.subject:<14}{finding.found}")
    if finding.hint:
        click.echo(f"{'':<20}{finding.hint}")
