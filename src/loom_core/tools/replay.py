"""`loomc replay`: recorded launches run again, and their results compared with the recorded ones (docs/replay.md)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import click

from loom_core.base.diagnostics import InternalError, LoomError, render
from loom_core.base.knobs import knobs
from loom_core.base.location import Location
from loom_core.base.progress import Progress
from loom_core.tools.comparison import Comparison, compare_launch
from loom_core.tools.diagnostics import BadRecording, NoRecordings
from loom_core.tools.error_bounds import bounds_of_launch
from loom_core.tools.recording import Argument, Memory, Recording, read_recording
from loom_core.tools.refusals import judged, read_refusals, too_many_refused

Loader = Callable[[Recording], tuple[Any, Sequence[Argument]]]
Verdict = Literal["passed", "failed", "refused"]


@dataclass(frozen=True)
class Result:
    """What became of one folder. `code` is that of a refusal or error; `comparison` where the launch ran."""

    folder: Path
    verdict: Verdict
    text: str
    code: str = ""
    details: str = ""
    comparison: Comparison | None = None
    seconds: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """For --json."""
        worst = None if self.comparison is None else self.comparison.worst_ulp
        return {
            "folder": str(self.folder),
            "verdict": self.verdict,
            "text": self.text,
            "code": self.code,
            "max_ulp": worst,
            "seconds": round(self.seconds, 3),
        }


def find_folders(roots: Sequence[Path]) -> list[Path]:
    """Folders that hold a recording: each root itself, or those directly inside it."""
    found: list[Path] = []
    for root in roots:
        if (root / "meta.json").is_file():
            found.append(root)
        elif root.is_dir():
            found += sorted(path.parent for path in root.glob("*/meta.json"))
    return found


def replay(folder: Path, *, form: str = "source", interpret: bool = False) -> Result:
    """Replay one folder from one of FORMS. Never raises for what the kernel or the recording does."""
    start = time.perf_counter()
    try:
        recording = read_recording(folder)
        result = _run(recording, FORMS[form], interpret)
    except InternalError as error:
        result = _stopped(folder, "failed", error)
    except LoomError as error:
        result = _stopped(folder, "refused", error)
    except Exception as error:  # noqa: BLE001
        # A defect in one replay must not hide the others; it counts as a failure and is shown whole.
        details = f"{type(error).__name__}: {error}"
        result = Result(folder, "failed", f"internal error: {details}", InternalError.code, details)
    return Result(**{**vars(result), "seconds": time.perf_counter() - start})


def _stopped(folder: Path, verdict: Verdict, error: LoomError) -> Result:
    first = error.diagnostics[0]
    place = f" (line {first.location.line})" if first.location.known else ""
    text = f"{first.code} {first.message}{place}"
    return Result(folder, verdict, text, first.code, "\n".join(render(d) for d in error.diagnostics))


def _run(recording: Recording, load: Loader, interpret: bool) -> Result:
    kernel, taken = load(recording)
    memory = Memory(recording)
    with knobs.override(interpret=interpret):
        kernel[recording.grid](*(memory.argument(argument) for argument in taken))
    comparison = compare_launch(recording, memory, lambda: bounds_of_launch(recording, kernel, taken))
    return _judged(recording, comparison)


def _from_source(recording: Recording) -> tuple[Any, Sequence[Argument]]:
    """The kernel of `kernel.py`, which takes every argument."""
    from ltl.jit import JitFunction
    from ltl.source import load_source

    namespace = load_source(recording.source.read_text(encoding="utf-8"), str(recording.source), every=True)
    kernel = namespace.get(recording.name)
    if not isinstance(kernel, JitFunction):
        where = Location(str(recording.source))
        raise BadRecording(where, reason=f"kernel.py has no function {recording.name}")
    _add_known_helpers(kernel, namespace)
    return kernel, recording.arguments


def _from_text(suffix: str) -> Loader:
    """The kernel of one of Triton's IR texts, which takes the arguments known at run time."""

    def load(recording: Recording) -> tuple[Any, Sequence[Argument]]:
        from ltl.imported import ImportedKernel

        path = recording.folder / f"kernel.{suffix}"
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise BadRecording(Location(str(path)), reason=error.strerror or str(error)) from error
        return ImportedKernel(text, str(path)), recording.run_time

    return load


FORMS: Final[dict[str, Loader]] = {
    "source": _from_source,
    "ttir": _from_text("ttir"),
    "ttgir": _from_text("ttgir"),
}
"""What a recording can be replayed from: gives the kernel and the arguments that it takes."""


def _judged(recording: Recording, comparison: Comparison) -> Result:
    verdict: Verdict = "passed" if comparison.right else "failed"
    return Result(recording.folder, verdict, comparison.text, comparison=comparison)


# Inductor names the combine function of a scan or reduction after the operation; recordings do not hold its source.
_HELPER_PREFIX: Final = "_triton_helper_fn_"


def _add_known_helpers(kernel: Any, namespace: dict[str, Any]) -> None:
    """Give functions that Inductor generates by a fixed pattern, `_triton_helper_fn_add0(a, b)` and its kin, a body."""
    import ltl

    known = {"add": ltl.add, "mul": ltl.mul, "maximum": ltl.maximum, "minimum": ltl.minimum}
    for name in kernel.traced.rewritten.free_names:
        if name.startswith(_HELPER_PREFIX) and name not in namespace:
            operation = name.removeprefix(_HELPER_PREFIX).rstrip("0123456789")
            if operation in known:
                namespace[name] = known[operation]


def replay_all(folders: Sequence[Path], *, form: str, interpret: bool) -> Iterator[Result]:
    """Replay folders one after another."""
    for folder in folders:
        yield replay(folder, form=form, interpret=interpret)


@click.command(name="replay")
@click.argument("roots", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True), metavar="DIR...")
@click.option(
    "--from", "form", type=click.Choice(list(FORMS)), default="source", show_default=True,
    help="What to replay: the Triton source, or Triton's IR.",
)  # fmt: skip
@click.option("--interpret", is_flag=True, help="Run by the reference meaning of the IR instead of compiling.")
@click.option(
    "--refusals", type=click.Path(path_type=Path, exists=True, dir_okay=False), metavar="FILE",
    help="Launches that are refused, and why; other refusals fail, and more than 5% of all.",
)  # fmt: skip
@click.option("--verbose", "-v", is_flag=True, help="Show whole diagnostics.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def replay_command(
    roots: tuple[Path, ...], form: str, interpret: bool, refusals: Path | None, verbose: bool, as_json: bool
) -> None:
    """Run recorded launches again and compare the results with the recorded ones.

    DIR is a recorded launch, or a folder of such. Leaves with 1 if any launch gives wrong results.
    """
    folders = find_folders(roots)
    if not folders:
        raise NoRecordings(folders=", ".join(map(str, roots)))
    listed = None if refusals is None else read_refusals(refusals)
    results: list[Result] = []
    width = max(len(folder.name) for folder in folders)
    with Progress() as progress:
        for number, result in enumerate(replay_all(folders, form=form, interpret=interpret), 1):
            if listed is not None:
                result = judged(result, listed)
            results.append(result)
            progress.show("")
            if not as_json:
                click.echo(f"{result.verdict:7}  {result.folder.name.ljust(width)}  {result.text}")
                if verbose and result.details:
                    click.echo(result.details)
            progress.show(f"{number}/{len(folders)}")
    counts = {
        verdict: sum(result.verdict == verdict for result in results) for verdict in ("passed", "failed", "refused")
    }
    if as_json:
        click.echo(json.dumps({"results": [result.as_dict() for result in results], **counts}, indent=2))
    else:
        click.echo(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    if counts["failed"] or (listed is not None and too_many_refused(results)):
        raise SystemExit(1)
