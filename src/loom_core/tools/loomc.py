"""`loomc`: run, read, check and explain `.loom` objects.

Exit codes: 0 fine; 1 findings (a damaged object, a fault of the program); 2 bad usage (wrong options, files or kinds
of file).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from loom_core import __version__
from loom_core.base.diagnostics import Diagnostic, LoomError, render
from loom_core.base.progress import elapsed
from loom_core.base.units import byte_count
from loom_core.isa.describe import disassemble
from loom_core.objfile import LoomObject, validate
from loom_core.objfile.errors import NotAnObject
from loom_core.tools.bisect.command import bisect_command
from loom_core.tools.compile_source import compile_command
from loom_core.tools.console import show_table
from loom_core.tools.diagnostics import BadGrid, BadUsage
from loom_core.tools.diff import diff_command
from loom_core.tools.doctor import doctor_command
from loom_core.tools.file_kinds import is_module
from loom_core.tools.files import (
    STANDARD_INPUT,
    checked_object,
    file_bytes,
    in_file,
    load_object,
    parse_object,
    read_bytes,
    shown_name,
    write_file,
)
from loom_core.tools.import_ttir import import_ttir_command
from loom_core.tools.migrate import migrate_command
from loom_core.tools.migrate_pallas import migrate_pallas_command
from loom_core.tools.opt import opt_command
from loom_core.tools.replay import replay_command

if TYPE_CHECKING:
    from loom_core.tools.arguments import Launch
    from loom_sim.profile import Profile

FINDINGS: Final = 1
BAD_USAGE: Final = 2
Command = TypeVar("Command", bound=Callable[..., Any])


class _Tool(click.Group):
    """Turns Loom's errors into their rendering on standard error and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except LoomError as error:
            show_diagnostics(error.diagnostics)
            ctx.exit(BAD_USAGE if isinstance(error, BadUsage | NotAnObject) else FINDINGS)


def show_diagnostics(diagnostics: Sequence[Diagnostic]) -> None:
    """Print diagnostics to standard error, in colour on a terminal."""
    for diagnostic in diagnostics:
        click.echo(render(diagnostic, color=sys.stderr.isatty()), err=True, color=True)


@click.group(cls=_Tool, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="loomc")
def main() -> None:
    """Run, read, check and explain .loom objects."""


# ---- reading objects ----


def _object_file(command: Command) -> Command:
    """The object as `FILE` or, as in `loomc explain --object-file FILE`, as an option; `-` is standard input."""

    def choose(ctx: click.Context, parameter: click.Parameter, option: Path | None) -> Path:
        positional: Path | None = ctx.params.pop("positional_file", None)
        if (option is None) == (positional is None):
            raise click.UsageError("name one object: FILE, or --object-file FILE", ctx)
        chosen = option or positional
        assert chosen is not None
        return chosen

    path = click.Path(path_type=Path)
    option = click.option(
        "--object-file",
        "file",
        type=path,
        callback=choose,
        metavar="FILE",
        help="The object; - reads it from standard input.",
    )
    argument = click.argument("positional_file", type=path, required=False, metavar="[FILE]", is_eager=True)
    return option(argument(command))


_JSON: Final = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def _print_json(value: Any) -> None:
    click.echo(json.dumps(value, indent=2, sort_keys=True))


# ---- commands ----


@main.command()
@_object_file
def disasm(file: Path) -> None:
    """Print the command stream and the SCE programs as text."""
    click.echo(disassemble(load_object(file)), nl=False)


@main.command()
@_object_file
@_JSON
def manifest(file: Path, as_json: bool) -> None:
    """Show what is in an object: its machine, arguments, sections and what the compiler wrote into it."""
    data = read_bytes(file)
    found = parse_object(data, file)
    described = describe_manifest(found, len(data))
    if as_json:
        _print_json(described)
        return
    click.echo(f"{shown_name(file)}: {byte_count(described['file_bytes'])}, for machine {found.machine.name}")
    show_table(("section", "bytes"), list(described["sections"].items()))
    show_arguments(found)
    for key, value in sorted(found.manifest.items()):
        show_entry(key, value)


def show_entry(key: str, value: Any) -> None:
    """Print one entry of a manifest: a list of records as a table, all else on one line."""
    records = value if isinstance(value, list) and all(isinstance(row, dict) for row in value) else []
    columns = dict.fromkeys(column for row in records for column in row)
    if columns:
        show_table(tuple(columns), [[row.get(column, "") for column in columns] for row in records], title=f"{key}:")
    else:
        click.echo(f"{key}: {value if isinstance(value, str | int | float) else json.dumps(value, sort_keys=True)}")


def describe_manifest(found: LoomObject, file_bytes: int) -> dict[str, Any]:
    """The manifest command's JSON form."""
    return {
        "file_bytes": file_bytes,
        "machine": {"digest": found.machine.digest(), **found.machine.as_dict()},
        "sections": {
            "commands": int(found.commands.nbytes),
            "programs": int(found.programs.nbytes),
            "constants": len(found.constants),
        },
        "arguments": [
            {"name": a.name, "kind": a.kind, "dtype": a.dtype, "slot": a.slot, "read": a.read, "written": a.written}
            for a in found.abi.args
        ],
        "sram_bytes_used": found.abi.sram_bytes_used,
        "noalias": [list(pair) for pair in found.abi.noalias],
        "manifest": found.manifest,
    }


def show_arguments(found: LoomObject) -> None:
    """Print the table of an object's arguments."""
    uses = {(True, True): "read and written", (True, False): "read", (False, True): "written", (False, False): "unused"}
    rows = [
        (a.name, a.kind, a.dtype, uses[a.read, a.written] if a.kind == "buffer" else f"in register {a.slot}")
        for a in found.abi.args
    ]
    show_table(("argument", "kind", "type", "use"), rows)


@main.command(name="validate")
@_object_file
@click.option("--strict", is_flag=True, help="Also check what running would never touch, and that bytes are canonical.")
def validate_command(file: Path, strict: bool) -> None:
    """Check an object; leave with 1 if something is wrong with it."""
    found = in_file(validate(read_bytes(file), strict=strict), file)
    show_diagnostics(found)
    if any(diagnostic.severity == "error" for diagnostic in found):
        raise SystemExit(FINDINGS)
    click.echo(f"{shown_name(file)}: sound")


@main.command(name="explain")
@_object_file
@_JSON
def explain_command(file: Path, as_json: bool) -> None:
    """Say in words what an object does."""
    from loom_core.tools.explain import explain, lines_of

    found = load_object(file)
    explanation = explain(found)
    if as_json:
        _print_json(explanation.as_dict())
        return
    name = found.manifest.get("kernel", shown_name(Path(file.name)))
    click.echo(f"{name}, for machine {found.machine.name} ({found.machine.digest()})")
    show_arguments(found)
    used = [f"{queue} {count}" for queue, count in explanation.commands_per_queue.items() if count]
    click.echo(f"commands: {', '.join(used) or 'none'}; {explanation.scalar_commands} of scalar arithmetic and control")
    click.echo(f"SRAM used: {byte_count(found.abi.sram_bytes_used)} of {byte_count(found.machine.sram_bytes)} a core")
    click.echo(f"cores: {explanation.cores}")
    click.echo()
    for line in lines_of(explanation.body):
        click.echo(line)


# ---- running ----


def _launch_options(command: Command) -> Command:
    options = (
        click.option("--inputs", type=click.Path(path_type=Path), help="An .npz file: arrays by argument name."),
        click.option("--arg", "typed", multiple=True, metavar="NAME=VALUE", help="x=f32[1024,64] (zeros) or n=1024."),
        click.option("--grid", help="Programs in x, y, z: 8 or 4,2,1.  [default: 1, with a note]"),
    )
    for option in reversed(options):
        command = option(command)
    return command


def _launch(found: LoomObject, inputs: Path | None, typed: Sequence[str], grid: str | None) -> Launch:
    from loom_core.tools.arguments import parse_grid, prepare, read_arrays

    sizes = parse_grid(grid or "1")
    launch = prepare(found.abi, read_arrays(inputs) if inputs else {}, typed, sizes)
    if grid is None:
        click.echo("note: without --grid, 1 program runs", err=True)
    return launch


@main.command()
@_object_file
@_launch_options
@click.option("--outputs", type=click.Path(path_type=Path), help="Write the buffers that were written as an .npz file.")
@click.option("--check", is_flag=True, help="Look at every access, and leave with 1 where something is wrong.")
@click.option("--replay", type=int, default=0, metavar="N", help="With --check: also N runs with other engine speeds.")
@click.option("--kernel", help="The kernel of a module to run, where it has several.")
@click.option("--config", multiple=True, metavar="NAME=NUMBER", help="A configuration argument of a module's kernel.")
def run(
    file: Path, inputs: Path | None, typed: tuple[str, ...], grid: str | None, outputs: Path | None, check: bool,
    replay: int, kernel: str | None, config: tuple[str, ...],
) -> None:  # fmt: skip
    """Run an object, or a kernel of a module (text or bytecode) over the grid that it configures."""
    data = file_bytes(file)
    if is_module(data):
        from loom_core.base.knobs import knobs
        from loom_core.tools.arguments import read_arrays
        from loom_core.tools.module_run import run_module

        if grid is not None:
            raise BadGrid(
                text=grid, reason="a module's kernel configures its own grid", hint="say --config NAME=NUMBER"
            )
        with knobs.override(check=check or knobs.check, check_replay=replay or knobs.check_replay):
            arrays = read_arrays(inputs) if inputs else {}
            show_written(run_module(data, shown_name(file), arrays, typed, kernel, config), outputs)
        return
    found = parse_object(checked_object(data, file), file)
    launch = _launch(found, inputs, typed, grid)
    from loom_sim import load  # only now: it brings the JIT compiler

    program = load(found)
    with elapsed("running"):
        findings = program.check(launch.bindings, launch.registers, replays=replay) if check else []
        if not check:
            program.run(launch.bindings, launch.registers)
    show_written({a.name: launch.buffers[a.name] for a in found.abi.buffers if a.written}, outputs)
    if findings:
        show_diagnostics(findings)
        sys.exit(1)


def show_written(written: dict[str, Any], outputs: Path | None) -> None:
    """Write the arrays that a run has written to a file, or print them."""
    from loom_core.tools.arguments import write_arrays

    if outputs:
        write_arrays(outputs, written)
        click.echo(f"wrote {', '.join(written) or 'no arrays'} to {outputs}")
        return
    for name, array in written.items():
        click.echo(f"{name} {array.dtype}{list(array.shape)}\n{array}")


@main.command()
@_object_file
@_launch_options
@click.option("--events", default=100_000, show_default=True, help="Queued commands that the table of lines covers.")
@click.option("--lines", "shown", default=12, show_default=True, help="Rows of the table of lines.")
@_JSON
def profile(
    file: Path, inputs: Path | None, typed: tuple[str, ...], grid: str | None, events: int, shown: int, as_json: bool
) -> None:
    """Run an object under the cycle model: cycles of each engine, roofline, stalls."""
    from loom_sim.profile import profile_of

    found = load_object(file)
    launch = _launch(found, inputs, typed, grid)
    from loom_sim import load  # only now: it brings the JIT compiler

    program = load(found)
    with elapsed("running under the cycle model"):
        trace = program.trace(launch.bindings, launch.registers, max_events=events)
    result = profile_of(program, trace)
    if as_json:
        _print_json(result.as_dict())
    else:
        show_profile(result, shown)


def show_profile(result: Profile, shown: int) -> None:
    """Print a profile: totals, queues, roofline, and the `shown` lines that cost the most."""
    trace = result.trace
    cores = f"{trace.cores} cores" if trace.parts else "one core"
    time = f"{trace.cycles} cycles ({result.microseconds:,.1f} us)"
    click.echo(f"{time} on {cores} of {trace.machine} ({trace.machine_digest})")
    click.echo(trace.division)
    whole = max(trace.cycles * trace.cores, 1)
    rows = [
        (name, use.commands, use.busy, *(f"{part / whole:.1%}" for part in (use.busy, use.waiting, use.empty)))
        for name, use in trace.queues.items()
        if use.commands
    ]
    show_table(("queue", "commands", "busy cycles", "busy", "waits for a token", "empty"), rows)
    if trace.parts:
        used = [name for name, use in trace.queues.items() if use.commands]
        parts = [
            (number, part.cycles, *(f"{part.queues[name].busy / max(trace.cycles, 1):.1%}" for name in used))
            for number, part in enumerate(trace.parts)
        ]
        click.echo()
        show_table(("core", "cycles", *(f"{name} busy" for name in used)), parts)
    click.echo()
    roofs = [
        (limit.name, limit.amount, f"{limit.unit} at {limit.rate:g} a cycle", round(limit.cycles))
        for limit in result.limits
    ]
    show_table(("limit", "amount", "rate", "cycles at least"), roofs)
    if result.intensity is not None:
        click.echo(f"{result.intensity:.3g} matrix flops a byte of HBM traffic")
    click.echo()
    click.echo(result.verdict.text)
    for advice in result.verdict.advice:
        click.echo(f"  {advice}")
    click.echo()
    covered = "" if trace.events_total <= len(trace.events) else f" (first {len(trace.events)} of {trace.events_total})"
    lines = [(use.source, use.queue, use.what, use.commands, use.busy, use.waiting) for use in result.lines[:shown]]
    show_table(
        ("line", "queue", "command", "commands", "busy", "waiting"), lines, title=f"where the queues are{covered}:"
    )


@main.command()
@_object_file
@_launch_options
@click.option("--out", "-o", type=click.Path(path_type=Path), help="The page.  [default: beside the object, as .html]")
@click.option("--dot", is_flag=True, help="Print the graph of commands and tokens for graphviz instead.")
def visualize(
    file: Path, inputs: Path | None, typed: tuple[str, ...], grid: str | None, out: Path | None, dot: bool
) -> None:
    """Write a page with pictures of an object, and of a run of it if arguments are given."""
    from loom_core.tools.visualize import dot_graph, visual_page

    found = load_object(file)
    if dot:
        click.echo(dot_graph(found), nl=False)
        return
    result = None
    if inputs or typed or grid:
        from loom_sim import load  # only now: it brings the JIT compiler

        launch = _launch(found, inputs, typed, grid)
        with elapsed("running under the cycle model"):
            result = load(found).trace(launch.bindings, launch.registers).profile
    target = out or (Path("object.html") if file == STANDARD_INPUT else file.with_suffix(".html"))
    write_file(target, visual_page(found, result).encode())
    click.echo(f"wrote {target}")


main.add_command(compile_command)
main.add_command(diff_command)
main.add_command(doctor_command)
main.add_command(import_ttir_command)
main.add_command(migrate_command)
main.add_command(migrate_pallas_command)
main.add_command(opt_command)
main.add_command(replay_command)
main.add_command(bisect_command)

if __name__ == "__main__":
    main()
