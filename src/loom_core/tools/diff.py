"""`loomc diff`: how two objects, or two texts of Tile IR, differ."""

from __future__ import annotations

import difflib
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from loom_core.base.location import Location
from loom_core.ir.printer import print_function
from loom_core.isa.describe import disassemble
from loom_core.isa.encoding import decode_at
from loom_core.objfile import LoomObject, sniff
from loom_core.tools.console import show_table
from loom_core.tools.diagnostics import BadUsage
from loom_core.tools.file_kinds import TILE_IR, identify
from loom_core.tools.files import file_bytes, parse_object, shown_name

DIFFERENT: Final = 1

Lines = list[str]


class NothingToCompare(BadUsage):
    code = "LOOM-K143"
    template = "{left} is {left_kind}, and {right} is {right_kind}"
    hint = "two objects can be compared, or two texts of Tile IR"


@dataclass(frozen=True)
class Difference:
    """A table of facts that differ, (fact, here, there), and the lines of both texts that do, as a unified diff."""

    facts: Sequence[tuple[str, Any, Any]]
    lines: Lines

    def __bool__(self) -> bool:
        return bool(self.facts or self.lines)


def compare_objects(left: LoomObject, right: LoomObject, context: int) -> Difference:
    """What two objects differ in: facts (machine, arguments, SRAM, windows, counts of commands), then commands."""
    before, after = facts_of(left), facts_of(right)
    facts = [
        (fact, before.get(fact, "-"), after.get(fact, "-"))
        for fact in dict.fromkeys([*before, *after])
        if before.get(fact) != after.get(fact)
    ]
    return Difference(facts, _changed_lines(_command_lines(left), _command_lines(right), context))


def compare_texts(left: str, right: str, names: tuple[str, str], context: int) -> Difference:
    """How two texts of Tile IR differ after both were read and printed, so that spacing and names of values do not
    count.
    """
    from loom_core.ir.parser import parse_functions

    def printed(text: str, name: str) -> Lines:
        return [line for function in parse_functions(text, name) for line in print_function(function).splitlines()]

    return Difference([], _changed_lines(printed(left, names[0]), printed(right, names[1]), context))


def facts_of(found: LoomObject) -> dict[str, Any]:
    """Everything about an object that is not its commands, flat: fact to value."""
    facts: dict[str, Any] = {"machine": found.machine.name}
    facts.update({f"machine.{field}": value for field, value in found.machine.as_dict().items() if field != "name"})
    for number, argument in enumerate(found.abi.args):
        use = "".join(mark for mark, holds in (("r", argument.read), ("w", argument.written)) if holds)
        facts[f"argument {number}"] = f"{argument.name}: {argument.kind} of {argument.dtype} {use}".rstrip()
    facts["noalias"] = [list(pair) for pair in found.abi.noalias]
    facts["SRAM bytes"] = found.abi.sram_bytes_used
    facts["bytes of constants"] = len(found.constants)
    facts.update(_manifest_facts(found.manifest))
    counts = Counter(command.mnemonic for command in decode_at(found.commands).values())
    facts.update({f"commands.{mnemonic}": count for mnemonic, count in sorted(counts.items())})
    return facts


def _manifest_facts(manifest: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in sorted(manifest.items()):
        if key == "commands":
            continue  # counted from the stream itself
        records = value if isinstance(value, list) and all(isinstance(row, dict) for row in value) else None
        if records is None:
            yield key, value
            continue
        names = Counter[str]()
        for row in records:
            name = str(row.get("name", ""))
            names[name] += 1
            number = f" ({names[name]})" if names[name] > 1 else ""
            rest = ", ".join(f"{field} {entry}" for field, entry in row.items() if field != "name")
            yield f"{key}.{name}{number}", rest


_PLACE: Final = re.compile(r"^(>| ) *\d+  ")
_JUMP: Final = re.compile(r"\bend \d+")


def _command_lines(found: LoomObject) -> Lines:
    """The disassembly without the places of commands, which move whenever one before them changes."""
    return [_JUMP.sub("end", _PLACE.sub("  ", line)) for line in disassemble(found).splitlines()]


def _changed_lines(left: Lines, right: Lines, context: int) -> Lines:
    """A unified diff without its heading, which would name no files."""
    return list(itertools.islice(difflib.unified_diff(left, right, lineterm="", n=context), 2, None))


def compare_files(left: Path, right: Path, context: int) -> Difference:
    """The difference of two files of one kind. NothingToCompare; errors of reading name the file."""
    before, after = file_bytes(left), file_bytes(right)
    if sniff(before) == sniff(after) == "object":
        return compare_objects(parse_object(before, left), parse_object(after, right), context)
    kinds = identify(before), identify(after)
    if kinds == (TILE_IR, TILE_IR):
        return compare_texts(before.decode(), after.decode(), (shown_name(left), shown_name(right)), context)
    raise NothingToCompare(
        Location(shown_name(left)), left=shown_name(left), left_kind=kinds[0], right=shown_name(right),
        right_kind=kinds[1],
    )  # fmt: skip


_FILE: Final = click.Path(path_type=Path)


@click.command(name="diff")
@click.argument("left", type=_FILE, metavar="A")
@click.argument("right", type=_FILE, metavar="B")
@click.option("--context", default=3, show_default=True, help="Equal lines shown around a change.")
@click.option("--facts", "only_facts", is_flag=True, help="Only what the objects consist of, not their commands.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def diff_command(left: Path, right: Path, context: int, only_facts: bool, as_json: bool) -> None:
    """Say how two objects, or two texts of Tile IR, differ; leave with 1 if they do."""
    found = compare_files(left, right, context)
    shown = [] if only_facts else found.lines
    if as_json:
        facts = [{"fact": fact, "a": before, "b": after} for fact, before, after in found.facts]
        click.echo(json.dumps({"equal": not found, "facts": facts, "lines": shown}, indent=2))
    elif not found:
        click.echo("no difference")
    else:
        if found.facts:
            show_table(("", shown_name(left), shown_name(right)), found.facts)
        for line in shown:
            click.secho(line, fg={"+": "green", "-": "red", "@": "cyan"}.get(line[:1]))
    if found:
        raise SystemExit(DIFFERENT)
