"""`python -m exhaustive [check ...]`: hold the engines to their references, all of them or over all operands.

    formats      every value of the 8- and 16-bit types: functions and casts, also against ml_dtypes   about 2 min
    properties   every opcode: special values in pairs, strides, lengths, results over operands        about 5 min
    hashes       all 2**32 float32 operands of 64 opcodes against `hashes.json`; resumes                about 8 min
    references   2**24 stratified operands of the f32 functions, with their errors                     about 25 min
    hostile      1,000,000 random commands of any operands and lengths, on memory between closed pages about 10 min
    targets      every opcode and product in processes without FMA, and with AVX2 and FMA              about 10 min
    kernels      5,000 random kernels in LTL: references, simulator, sanitizer, strict validation      about 10 min

Times are for two cores. `--only TEXT` takes the opcodes whose mnemonic contains the text; `--write` keeps hashes and
scores, for docs/scores.md.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from exhaustive import formats, hashes, hostile, kernels, properties, references, scores, targets
from loom_core.isa.sce import ALL_SCE_OPS, SceOp

Say = Callable[[str], None]

_TARGET_BATCH: Final = 100


def _check_formats(only: str, options: argparse.Namespace, say: Say) -> Iterator[str]:
    yield from formats.conversion_faults()
    for op in _counted([op for op in formats.covered_ops() if only in op.mnemonic], say):
        yield from formats.faults(op)


def _check_properties(only: str, options: argparse.Namespace, say: Say) -> Iterator[str]:
    for op in _counted([op for op in ALL_SCE_OPS if only in op.mnemonic], say):
        yield from properties.faults(op)


def _check_hashes(only: str, options: argparse.Namespace, say: Say) -> Iterator[str]:
    ops = [op for op in hashes.hashed_ops() if only in op.mnemonic]
    yield from hashes.run(ops, say, write=options.write, threads=options.threads)


def _check_references(only: str, options: argparse.Namespace, say: Say) -> Iterator[str]:
    for op in [op for op in references.measured_ops() if only in op.mnemonic]:
        start = time.monotonic()
        found = references.measure(op, options.operands)
        error = "" if found.ulp is None else f"{found.ulp:7.3f} ulp, subnormal {found.subnormal_ulp:5.3f}"
        say(f"{op.mnemonic:24} {found.operands:9} operands {time.monotonic() - start:7.1f} s  {error}")
        yield from found.faults(op)
        if options.write:
            scores.record("references", op.mnemonic, found.score())


def _check_hostile(only: str, options: argparse.Namespace, say: Say) -> Iterator[str]:
    try:
        found = hostile.endings(hostile.SEED, hostile.COMMANDS)
    except RuntimeError as error:
        yield str(error)
        return
    say(", ".join(f"{ending} {number}" for ending, number in found.items()))
    if options.write:
        scores.record("hostile", str(hostile.SEED), found)


def _check_targets(only: str, options: argparse.Namespace, say: Say) -> Iterator[str]:
    ops = [op for op in ALL_SCE_OPS if only in op.mnemonic]
    for target in targets.TARGETS:
        yield from targets.faults(target, [], targets.UNIT_TYPES)
        for first in range(0, len(ops), _TARGET_BATCH):
            yield from targets.faults(target, ops[first : first + _TARGET_BATCH])
            say(f"{target}: {min(first + _TARGET_BATCH, len(ops)):5} of {len(ops)}")


def _check_kernels(only: str, options: argparse.Namespace, say: Say) -> Iterator[str]:
    shown = 0
    for found in kernels.runs(kernels.KERNELS):
        say(f"{len(found.kernels):5} of {kernels.KERNELS} kernels")
        yield from found.wrong[shown:]
        shown = len(found.wrong)
    if options.write:
        scores.record("kernels", "ltl", found.score())


CHECKS: Final[dict[str, Callable[[str, argparse.Namespace, Say], Iterator[str]]]] = {
    "formats": _check_formats,
    "properties": _check_properties,
    "hashes": _check_hashes,
    "references": _check_references,
    "hostile": _check_hostile,
    "targets": _check_targets,
    "kernels": _check_kernels,
}


def _counted(ops: Sequence[SceOp], say: Say) -> Iterator[SceOp]:
    """The opcodes; says now and then how far it is."""
    last = time.monotonic()
    for number, op in enumerate(ops):
        yield op
        if time.monotonic() - last > 10 or number + 1 == len(ops):
            last = time.monotonic()
            say(f"{number + 1:5} of {len(ops)}  {op.mnemonic}")


def main() -> int:
    """Exit code 1 where anything is wrong."""
    parser = argparse.ArgumentParser(
        prog="exhaustive", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checks", nargs="*", metavar="check", help=f"{', '.join(CHECKS)}; all where none is given")
    parser.add_argument("--only", default="", metavar="TEXT", help="opcodes whose mnemonic contains this")
    parser.add_argument("--write", action="store_true", help="replace the published hashes and scores by what is found")
    parser.add_argument("--threads", type=int, default=2, help="threads of the hash pass [default: 2]")
    parser.add_argument("--operands", type=int, default=1 << 24, help="operands of `references` [default: 2**24]")
    options = parser.parse_args()
    unknown = [name for name in options.checks if name not in CHECKS]
    if unknown:
        parser.error(f"there is no check called {unknown[0]!r}; there are {', '.join(CHECKS)}")
    warnings.simplefilter("ignore", RuntimeWarning)  # overflow and invalid operations are results here
    count = 0
    for name in options.checks or CHECKS:
        print(f"== {name}", flush=True)
        for fault in CHECKS[name](options.only, options, lambda line: print("  " + line, flush=True)):
            count += 1
            print(f"  WRONG  {fault}", flush=True)
    print("all is well" if count == 0 else f"{count} faults")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
