"""`loom-format`: checks, formats and converts modules.

Exit codes: 0 all is well, 1 otherwise, also where the command line asks for what cannot be.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import click

from loom_core import __version__
from loom_core.importers.kernel_module import print_loom_module
from loom_core.interchange.bytecode.writer import BytecodeWriter
from loom_core.interchange.model import Module
from loom_core.tools.module_files import Format, ModuleFaults, decode_text, detect_format, load_module

FAILED: Final = 1
STANDARD_INPUT: Final = "-"
PRODUCER: Final = b"loom-format"
_FORMATS: Final[dict[str, Format | None]] = {"auto": None, "text": "text", "bc": "bytecode", "bytecode": "bytecode"}

GUIDE: Final = """\
# loom-format

Formats, checks and converts Loom modules. Text has one canonical form; a module is verified before anything is written.

| to | run |
|---|---|
| see whether files are sound and canonical | `loom-format --check FILE...` |
| rewrite files canonically | `loom-format --in-place FILE...` |
| print the canonical text | `loom-format FILE` |
| write bytecode | `loom-format --to=bc --output=FILE.loombc FILE` |
| read bytecode | `loom-format FILE.loombc` |

`-` or no file is standard input. Findings go to standard error as `FILE:LINE:COLUMN: error [DOMAIN/NNN]: message`;
the exit code is 0 or 1. `--no-hooks` checks only what the dialect tables declare.
"""


class Refusal(click.ClickException):
    """The command line asks for what cannot be, or a file could not be handled."""

    exit_code = FAILED

    def show(self, file: Any = None) -> None:
        click.echo(f"loom-format: {self.message}", err=True)


class _Command(click.Command):
    """Leaves with 1 for misuse too."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().main(*args, **{**kwargs, "standalone_mode": False})
        except click.ClickException as error:
            if isinstance(error, Refusal):
                error.show()
            else:
                click.echo(f"loom-format: {error.format_message()}", err=True)
            sys.exit(FAILED)
        except click.Abort:
            sys.exit(FAILED)


@click.command(cls=_Command, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("files", nargs=-1)
@click.option("--from", "source", type=click.Choice(list(_FORMATS)), default="auto", help="What the input is.")
@click.option("--to", "target", type=click.Choice(["text", "bc", "bytecode"]), default="text", help="What to write.")
@click.option("--output", metavar="PATH", help="Where to write; - is standard output.")
@click.option("--check", is_flag=True, help="Only compare files with their canonical text.")
@click.option("--in-place", is_flag=True, help="Rewrite the files that are not canonical.")
@click.option("--hooks/--no-hooks", default=True, help="Also check the rules of single operations.  [default: on]")
@click.option("--agents_md", is_flag=True, help="Print a guide to this tool in Markdown.")
@click.version_option(__version__, prog_name="loom-format")
def main(
    files: tuple[str, ...],
    source: str,
    target: str,
    output: str | None,
    check: bool,
    in_place: bool,
    hooks: bool,
    agents_md: bool,
) -> None:
    """Format, check and convert modules of text or bytecode."""
    if agents_md:
        click.echo(GUIDE, nl=False)
        return
    given = _FORMATS[source]
    if check and in_place:
        raise Refusal("--check and --in-place exclude one another")
    if check or in_place:
        mode = "--check" if check else "--in-place"
        if output is not None:
            raise Refusal(f"--output has no meaning with {mode}")
        if target != "text" or given == "bytecode":
            raise Refusal(f"{mode} is for text; bytecode has no layout to check")
    if check:
        _check(files or (STANDARD_INPUT,), hooks)
    elif in_place:
        _rewrite(files, hooks)
    else:
        _convert(files, given, "text" if target == "text" else "bytecode", output or STANDARD_INPUT, hooks)


def shown(path: str) -> str:
    """How messages call a file."""
    return "<stdin>" if path == STANDARD_INPUT else path


def read_bytes(path: str) -> bytes:
    """The bytes of a file or of standard input; Refusal where they cannot be had."""
    try:
        return sys.stdin.buffer.read() if path == STANDARD_INPUT else Path(path).read_bytes()
    except OSError as error:
        raise Refusal(f"{path} cannot be read: {error.strerror or error}") from error


def write_bytes(path: str, data: bytes) -> None:
    if path == STANDARD_INPUT:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    try:
        Path(path).write_bytes(data)
    except OSError as error:
        raise Refusal(f"{path} cannot be written: {error.strerror or error}") from error


def _convert(files: tuple[str, ...], source: Format | None, target: Format, output: str, hooks: bool) -> None:
    if len(files) > 1:
        raise Refusal("one input is converted at a time; --check and --in-place take several")
    path = files[0] if files else STANDARD_INPUT
    data = read_bytes(path)
    try:
        module = load_module(data, shown(path), source, hooks=hooks)
    except ModuleFaults as faults:
        click.echo(faults.render(shown(path)), err=True)
        sys.exit(FAILED)
    write_bytes(output, _encode(module, target))


def _encode(module: Module, target: Format) -> bytes:
    if target == "text":
        return print_loom_module(module).encode()
    return BytecodeWriter(module, producer=PRODUCER).write()


def _canonical(path: str, hooks: bool) -> tuple[str, str]:
    """The text of a file and its canonical form; ModuleFaults if it holds no sound module in text."""
    data = read_bytes(path)
    if detect_format(data) == "bytecode":
        raise Refusal(f"{shown(path)} is bytecode, which has no layout; loom-format {path} prints its text")
    text = decode_text(data)
    return text, print_loom_module(load_module(data, shown(path), "text", hooks=hooks))


def _check(files: tuple[str, ...], hooks: bool) -> None:
    if len(files) > 1 and STANDARD_INPUT in files:
        raise Refusal("standard input is checked alone")
    failed = sum(not _is_canonical(path, hooks) for path in files)
    if len(files) > 1:
        verdict = "FAIL" if failed else "PASS"
        click.echo(f"loom-format: {verdict} ({len(files)} checked, {failed} failed)", err=bool(failed))
    if failed:
        sys.exit(FAILED)


def _is_canonical(path: str, hooks: bool) -> bool:
    try:
        text, canonical = _canonical(path, hooks)
    except ModuleFaults as faults:
        click.echo(faults.render(shown(path)), err=True)
        return False
    except Refusal as error:
        error.show()
        return False
    if text != canonical:
        advice = "is not canonically formatted; run loom-format --in-place <input>"
        click.echo(f"'{shown(path)}' {advice}", err=True)
    return text == canonical


def _rewrite(files: tuple[str, ...], hooks: bool) -> None:
    if not files:
        raise Refusal("--in-place needs a file")
    if STANDARD_INPUT in files:
        raise Refusal("standard input cannot be rewritten")
    formatted = unchanged = failed = 0
    for path in files:
        try:
            text, canonical = _canonical(path, hooks)
            if text == canonical:
                unchanged += 1
                continue
            write_bytes(path, canonical.encode())
        except ModuleFaults as faults:
            click.echo(faults.render(shown(path)), err=True)
            failed += 1
        except Refusal as error:
            error.show()
            failed += 1
        else:
            formatted += 1
            click.echo(f"loom-format: formatted {path}")
    click.echo(f"loom-format: {formatted} formatted, {unchanged} unchanged, {failed} failed")
    if failed:
        sys.exit(FAILED)


if __name__ == "__main__":
    main()
