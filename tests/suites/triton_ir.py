"""The importer of Triton's IR at length; docs/triton-ir.md shows what was found last.

    python tests/suites/triton_ir.py operations            all operations that the installed Triton has registered
    python tests/suites/triton_ir.py identity FOLDER...    recorded kernels: source, TTIR and TTGIR against each other
    python tests/suites/triton_ir.py blocks                random functions of blocks against jumps from block to block
    python tests/suites/triton_ir.py mutations FOLDER...   damaged texts of recorded kernels

FOLDERs hold recorded launches (docs/replay.md). `--count N` sets how many random programs or texts, `--write` keeps the
result. Leaves with 1 where anything is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parents[1] / "src")]

SCORES = HERE / "triton_ir.json"
OPERATIONS = HERE / "triton_operations.json"
DIALECTS = ("tt", "ttg", "ttng", "amdg", "scf", "arith", "math", "cf", "ub")


def record(name: str, cases: int, found: str) -> None:
    """Keep what a check found."""
    scores = json.loads(SCORES.read_text(encoding="utf-8")) if SCORES.exists() else {}
    scores[name] = {"cases": cases, "found": found}
    rows = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in sorted(scores.items()))
    SCORES.write_text("{\n" + rows + "\n}\n", encoding="utf-8")


# ---- operations ------------------------------------------------------------------------------------------------------


def registered() -> tuple[str, list[str]]:
    """The version of the installed Triton, and the operations of `DIALECTS` that it has.

    Names are looked for in its library, and given to its parser, which says of which of them it knows nothing.
    """
    import triton
    from triton._C import libtriton
    from triton.backends.compiler import GPUTarget
    from triton.compiler.compiler import make_backend

    pattern = rb"(?<![A-Za-z0-9_.])(?:%s)\.[a-z0-9_.]*[a-z0-9_]" % "|".join(DIALECTS).encode()
    names = sorted({match.decode() for match in re.findall(pattern, Path(libtriton.__file__).read_bytes())})
    context = libtriton.ir.context()
    libtriton.ir.load_dialects(context)
    for target in (GPUTarget("cuda", 90, 32), GPUTarget("hip", "gfx942", 64)):
        make_backend(target).load_dialects(context)
    return triton.__version__, [name for name in names if _is_registered(libtriton.ir, context, name)]


def _is_registered(ir: Any, context: Any, name: str) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "module.mlir"
        path.write_text(f'module {{\n"{name}"() : () -> ()\n}}\n', encoding="utf-8")
        said = Path(folder) / "said"
        saved = os.dup(2)
        with said.open("wb") as sink:
            os.dup2(sink.fileno(), 2)
            try:
                ir.parse_mlir_module(str(path), context)
            except RuntimeError:
                pass  # what it says is read below
            finally:
                os.dup2(saved, 2)
                os.close(saved)
        text = said.read_text(encoding="utf-8", errors="replace")
    return not any(phrase in text for phrase in ("unregistered", "does not allow unknown", "not found for custom op"))


def operations(options: argparse.Namespace) -> Iterator[str]:
    from loom_core.tools.triton_page import treatment

    version, names = registered()
    print(f"Triton {version}: {len(names)} operations")
    if options.write:
        known = json.loads(OPERATIONS.read_text(encoding="utf-8")) | {version: names}
        parts = [
            json.dumps(key) + ": [\n" + ",\n".join(map(json.dumps, found)) + "\n]"
            for key, found in sorted(known.items())
        ]
        OPERATIONS.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")
    for name in names:
        if treatment(name) is None:
            yield f"{name} is neither imported nor refused with a reason"


# ---- identity --------------------------------------------------------------------------------------------------------


def identity(options: argparse.Namespace) -> Iterator[str]:
    from loom_core.tools.replay import find_folders
    from tests.importers.ttir.agreement import agreement

    folders = find_folders(options.folders)
    found: Counter[str] = Counter()
    for number, folder in enumerate(folders, 1):
        with tempfile.TemporaryDirectory() as scratch:
            for form, result in agreement(folder, Path(scratch)).items():
                found[f"{form}: {result.kind}"] += 1
                if not result.right:
                    yield f"{folder.name} from {form}: {result}"
        if number % 25 == 0:
            print(f"{number} of {len(folders)}", flush=True)
    print(dict(found))
    if options.write:
        for form in ("unoptimised TTIR", "TTIR", "TTGIR"):
            kinds = {
                key.partition(": ")[2]: count for key, count in sorted(found.items()) if key.startswith(form + ":")
            }
            text = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
            record(f"source and {form}", sum(kinds.values()), text)


# ---- blocks ----------------------------------------------------------------------------------------------------------


def blocks(options: argparse.Namespace) -> Iterator[str]:
    from tests.importers.blocks.test_random import check

    ended = 0
    for seed in range(options.count):
        try:
            ended += check(seed, interpret=seed % 20 != 0)
        except AssertionError as error:
            yield f"seed {seed}: {error}"
    if options.write:
        found = f"{ended} ran and gave the same; the others are irreducible and refused, or do not end"
        record("random functions of blocks", options.count, found)


# ---- mutations -------------------------------------------------------------------------------------------------------

SECONDS = 20
MEGABYTES = 1500


def mutations(options: argparse.Namespace) -> Iterator[str]:
    from loom_core.base.diagnostics import InternalError, LoomError
    from ltl.imported import ImportedKernel
    from tests.importers.ttir.mutation import mutated, words_of

    texts = [path.read_text("utf-8") for root in options.folders for path in sorted(root.rglob("kernel.tt*ir"))]
    texts = [text for text in texts if len(text) < 12000]
    words, rng = words_of(texts), random.Random(options.seed)
    found: Counter[str] = Counter()
    limit = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss + MEGABYTES * 1024

    def late(*_: Any) -> None:
        raise TimeoutError(f"more than {SECONDS} s")

    signal.signal(signal.SIGALRM, late)
    start = time.monotonic()
    for number in range(options.count):
        text = mutated(rng.choice(texts), rng, words)
        signal.alarm(SECONDS)
        try:
            kernel = ImportedKernel(text, "kernel.ttir")
            found["imported"] += 1
            if number % 4 == 0:
                kernel.compile()
        except InternalError as error:
            yield from _kept(number, text, str(error))
        except LoomError as error:
            found["refused"] += 1
            if not error.location.known or not error.diagnostics[0].hint:
                yield from _kept(number, text, f"no line or hint: {error}")
        except Exception as error:  # noqa: BLE001
            yield from _kept(number, text, f"{type(error).__name__}: {error}")
        finally:
            signal.alarm(0)
        if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > limit:
            yield from _kept(number, text, f"more than {MEGABYTES} MB")
            limit *= 2
        if number % 1000 == 999:
            print(f"{number + 1} of {options.count}, {time.monotonic() - start:.0f} s, {dict(found)}", flush=True)
    if options.write:
        others = options.count - found["refused"] - found["imported"]
        text = (
            f"{found['refused']} refused with line and hint, {found['imported']} with a meaning, {others} other errors"
        )
        record("damaged texts", options.count, text)


def _kept(number: int, text: str, problem: str) -> Iterable[str]:
    """The report of a text that did what it should not, which is written to a file."""
    path = Path(tempfile.gettempdir()) / f"mutation_{number}.ttir"
    path.write_text(text, encoding="utf-8")
    yield f"{path}: {problem[:300]}"


CHECKS: dict[str, Callable[[argparse.Namespace], Iterator[str]]] = {
    "operations": operations, "identity": identity, "blocks": blocks, "mutations": mutations,
}  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 1 where anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("check", choices=CHECKS)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    faults = 0
    for fault in CHECKS[options.check](options):
        faults += 1
        print("WRONG", fault, flush=True)
    print("all is well" if not faults else f"{faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
