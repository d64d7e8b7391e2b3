"""The command `tlc`. Exit codes: 0, 1 if the program has errors, 2 for wrong use; `run` gives the program's own."""

from __future__ import annotations

import argparse
import json
import linecache
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from loom_core import __version__
from loom_core.base.diagnostics import Diagnostic, render
from loom_core.base.location import Location
from tensorloom.diagnostics import CannotWrite, NeedsPackage, NoSuchTarget, TensorLoomError
from tensorloom.dims import shape_text
from tensorloom.driver import Checked, check_file

_BANNER: Final = f"TensorLoom {__version__}: models, training and kernels, compiled to PyTorch"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `tlc` with these arguments, by default those of the process. Gives the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # Names may hold letters that the terminal lacks.
            stream.reconfigure(errors="backslashreplace")
    parser = _parser()
    given = parser.parse_args(arguments)
    if given.command is None:
        print(_BANNER)
        parser.print_help()
        return 0
    command: Callable[[argparse.Namespace], int] = given.function
    try:
        return command(given)
    except TensorLoomError as error:
        _show(error.diagnostics, given)
        return 2 if isinstance(error, NoSuchTarget | NeedsPackage) else 1
    except BrokenPipeError:
        # The reader, such as `head`, has gone. Python would complain once more while it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tlc", description=_BANNER, epilog="docs/tensorloom.md has the language.")
    parser.add_argument("--version", action="version", version=f"tlc {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, (function, text, options) in _COMMANDS.items():
        command = commands.add_parser(name, help=text, description=text)
        command.set_defaults(function=function)
        for flags, settings in options:
            command.add_argument(*flags, **settings)
    return parser


# ---- diagnostics -----------------------------------------------------------------------------------------------------


def _show(diagnostics: Sequence[Diagnostic], given: argparse.Namespace) -> None:
    """On stderr, or with --json as the answer on stdout."""
    if getattr(given, "json", False):
        _answer({"ok": False, "diagnostics": [diagnostic_data(diagnostic) for diagnostic in diagnostics]})
        return
    for diagnostic in diagnostics:
        print(render(diagnostic, color=sys.stderr.isatty()), file=sys.stderr)


def diagnostic_data(diagnostic: Diagnostic) -> dict[str, Any]:
    """A diagnostic as data. Columns count characters from 1; `end_column` is behind the last."""
    where = diagnostic.location
    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity,
        "message": diagnostic.message,
        "hint": diagnostic.hint,
        "notes": list(diagnostic.notes),
        **_place(where),
        "via": [_place(parent) for parent in list(where.chain())[1:]],
    }


def _place(where: Location) -> dict[str, Any]:
    line = linecache.getline(where.file, where.line).rstrip("\n") if where.known else ""
    data = line.encode()
    start = len(data[: max(where.column, 0)].decode(errors="ignore")) + 1
    end = len(data[: max(where.end_column, 0)].decode(errors="ignore")) + 1
    known = where.known and where.column >= 0
    return {
        "file": where.file,
        "line": where.line,
        "column": start if known else 0,
        "end_column": max(end, start + 1) if known else 0,
    }


def _answer(data: Any) -> None:
    print(json.dumps(data, indent=2, default=str))


# ---- commands --------------------------------------------------------------------------------------------------------


def _load(given: argparse.Namespace) -> Checked:
    return check_file(Path(given.file))


def _sound(given: argparse.Namespace) -> Checked:
    """The checked program; its warnings are shown."""
    checked = _load(given).require()
    if not given.json:
        _show(checked.diagnostics, given)
    return checked


def _check(given: argparse.Namespace) -> int:
    started = time.perf_counter()
    checked = _load(given)
    spent = 1000 * (time.perf_counter() - started)
    flows = {
        name: [
            {"layer": step.name, "input": shape_text(step.given), "output": shape_text(step.result)}
            for step in made.flow
        ]
        for name, made in checked.instances().items()
    }
    if given.json:
        diagnostics = [diagnostic_data(diagnostic) for diagnostic in checked.diagnostics]
        _answer({"ok": checked.ok, "diagnostics": diagnostics, "flow": flows, "milliseconds": round(spent, 3)})
        return 0 if checked.ok else 1
    _show(checked.diagnostics, given)
    for name, steps in flows.items():
        print(name)
        width = max((len(step["layer"]) for step in steps), default=0)
        for step in steps:
            print(f"  {step['layer']:<{width}}  {step['input']} -> {step['output']}")
    print(f"{'OK' if checked.ok else 'FAIL'} {given.file} ({spent:.1f} ms)")
    return 0 if checked.ok else 1


def default_output(path: Path) -> Path:
    """Where `compile` writes: x.tl -> x_compiled.py, x.nml -> x_nml_compiled.py."""
    kind = "" if path.suffix == ".tl" else "_nml"
    return path.with_name(f"{path.stem}{kind}_compiled.py")


def _compile(given: argparse.Namespace) -> int:
    from tensorloom.emit import generator

    generate = generator(given.target)
    started = time.perf_counter()
    path = Path(given.file)
    checked = _sound(given)
    emitted = generate(checked, not given.plain)
    spent = 1000 * (time.perf_counter() - started)
    output = default_output(path) if given.output is None else Path(given.output)
    if given.output == "-":
        print(emitted.text, end="")
        return 0
    try:
        output.write_text(emitted.text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise CannotWrite(Location(str(output)), reason=error.strerror or str(error)) from None
    lines = len(emitted.origins)
    if given.json:
        diagnostics = [diagnostic_data(diagnostic) for diagnostic in checked.diagnostics]
        _answer({"ok": True, "output": str(output), "lines": lines, "diagnostics": diagnostics})
    else:
        print(f"{output} ({lines} lines, {spent:.1f} ms)")
    return 0


def _run(given: argparse.Namespace) -> int:
    from tensorloom.emit import generator
    from tensorloom.execution import run, run_processes

    generate = generator(given.target)
    path = Path(given.file)
    checked = _sound(given)
    if given.processes > 1 and "RANK" not in os.environ:
        return run_processes(given.processes, [sys.executable, "-m", "tensorloom", "run", given.file])
    name = str(default_output(path.absolute()))
    return run(generate(checked, True), name, path.absolute().parent)


def _info(given: argparse.Namespace) -> int:
    from tensorloom.info import ModelInfo, model_infos

    checked = _sound(given)
    infos = model_infos(checked, given.batch)

    def memory(info: ModelInfo) -> dict[str, int | None]:
        weights = info.weights
        training = None if weights is None else 4 * weights * (2 + info.states)
        return {
            "weights": None if weights is None else 4 * weights,
            "weights_half": None if weights is None else 2 * weights,
            "training": training,
            "activations": None if info.activations is None else 4 * info.activations,
        }

    if given.json:
        rows = [
            {
                "name": info.name,
                "model": info.model,
                "config": info.config,
                "layers": [
                    {"name": layer.name, "kind": layer.kind, "parameters": layer.weights} for layer in info.layers
                ],
                "parameters": info.weights,
                "batch": info.batch,
                "inputs": info.shapes,
                "bytes": memory(info),
            }
            for info in infos
        ]
        _answer({"models": rows})
        return 0
    for info in infos:
        config = ", ".join(f"{name}={value}" for name, value in info.config.items())
        print(f"{info.name}: {info.model}({config})")
        for layer in info.layers:
            count = "?" if layer.weights is None else f"{layer.weights:,}"
            size = "?" if layer.weights is None else megabytes(4 * layer.weights)
            print(f"  {layer.name:<16} {layer.kind:<20} {count:>14}  {size:>12}")
        bytes_ = memory(info)
        total = "?" if info.weights is None else f"{info.weights:,}"
        print(f"  parameters: {total}")
        print(f"  weights: {megabytes(bytes_['weights'])} in fp32, {megabytes(bytes_['weights_half'])} in 16 bits")
        print(f"  weights, gradients and {info.optimizer}: {megabytes(bytes_['training'])}")
        given_shapes = ", ".join(map(shape_text, info.shapes)) or "?"
        print(f"  outputs of layers for {given_shapes}: {megabytes(bytes_['activations'])}")
    return 0


def megabytes(count: int | None) -> str:
    return "?" if count is None else f"{count / 1e6:.3f} MB"


def _tokens(given: argparse.Namespace) -> int:
    from tensorloom.dump import token_rows
    from tensorloom.lexer import lex
    from tensorloom.source import read_source

    source = read_source(Path(given.file))
    lexed = lex(source)
    if lexed.diagnostics:
        raise TensorLoomError.of(lexed.diagnostics)
    rows = token_rows(source, lexed.tokens)
    if given.json:
        _answer(rows)
        return 0
    print(f"{len(rows)} tokens")
    for row in rows:
        place = f"{row['line']}:{row['column']}"
        print(f"{place:>8}  {row['kind']:<8}  {row['text']}".rstrip())
    return 0


def _ast(given: argparse.Namespace) -> int:
    from tensorloom.dump import tree_data, tree_lines
    from tensorloom.parser import parse
    from tensorloom.source import read_source

    source = read_source(Path(given.file))
    parsed = parse(source)
    if parsed.diagnostics:
        raise TensorLoomError.of(parsed.diagnostics)
    if given.json:
        _answer(tree_data(source, parsed.program))
    else:
        print("\n".join(tree_lines(source, parsed.program)))
    return 0


def _fmt(given: argparse.Namespace) -> int:
    from tensorloom.formatting import format_source
    from tensorloom.source import read_source

    changed = []
    for file in given.files:
        source = read_source(Path(file))
        text = format_source(source)
        if given.check:
            changed += [file] * (text != source.text)
        elif given.stdout:
            print(text, end="")
        elif text != source.text:
            changed.append(file)
            try:
                Path(file).write_text(text, encoding="utf-8", newline="\n")
            except OSError as error:
                raise CannotWrite(Location(file), reason=error.strerror or str(error)) from None
    if given.json:
        _answer({"ok": not (given.check and changed), "changed": changed})
    elif not given.stdout:
        for file in changed:
            print(f"{'would change' if given.check else 'changed'}: {file}")
    return 1 if given.check and changed else 0


def _lsp(given: argparse.Namespace) -> int:
    from importlib.util import find_spec

    if find_spec("pygls") is None:
        raise NeedsPackage(command="tlc lsp", package="pygls", extra="lsp")
    from tensorloom.language_server import serve

    serve()
    return 0


Option = tuple[tuple[str, ...], dict[str, Any]]


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("a positive number is needed")
    return number


_FILE: Final[Option] = (("file",), {"metavar": "FILE", "help": "a .tl or .nml file"})
_JSON: Final[Option] = (("--json",), {"action": "store_true", "help": "answer with JSON"})
_TARGET: Final[Option] = (
    ("--target",),
    {"choices": ("torch", "loom"), "default": "torch", "help": "what to compile for [torch]"},
)
_COMMANDS: Final[dict[str, tuple[Callable[[argparse.Namespace], int], str, tuple[Option, ...]]]] = {
    "run": (
        _run,
        "compile a program and run it in its folder",
        (
            _FILE,
            _JSON,
            _TARGET,
            (("--processes",), {"type": _positive, "default": 1, "metavar": "N", "help": "for distributed training"}),
        ),
    ),
    "compile": (
        _compile,
        "write a program as Python",
        (
            _FILE,
            _JSON,
            _TARGET,
            (("-o", "--output"), {"metavar": "OUT", "help": "the file to write, or - for stdout"}),
            (("--plain",), {"action": "store_true", "help": "without comments that name the source lines"}),
        ),
    ),
    "check": (_check, "check names, types and shapes", (_FILE, _JSON)),
    "info": (
        _info,
        "count parameters and memory",
        (
            _FILE,
            _JSON,
            (("--batch",), {"type": _positive, "default": 32, "metavar": "N", "help": "the batch size [32]"}),
        ),
    ),
    "tokens": (_tokens, "show the tokens of a file", (_FILE, _JSON)),
    "fmt": (
        _fmt,
        "give files the common layout",
        (
            (("files",), {"metavar": "FILE", "nargs": "+", "help": ".tl and .nml files"}),
            _JSON,
            (("--check",), {"action": "store_true", "help": "change nothing; exit with 1 if a file would change"}),
            (("--stdout",), {"action": "store_true", "help": "write the text to stdout, not to the file"}),
        ),
    ),
    "lsp": (_lsp, "serve an editor over stdin and stdout", ()),
    "ast": (_ast, "show the syntax tree of a file", (_FILE, _JSON)),
}
