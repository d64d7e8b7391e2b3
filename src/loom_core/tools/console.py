"""Output of the tools: tables drawn with rich on a terminal, aligned plain text everywhere else."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click


def show_table(columns: Sequence[str], rows: Sequence[Sequence[object]], title: str = "") -> None:
    """Print a table to standard output. Columns whose cells are all numbers are aligned to the right."""
    cells = [[str(cell) for cell in row] for row in rows]
    numeric = [bool(rows) and all(isinstance(row[i], int | float) for row in rows) for i in range(len(columns))]
    if sys.stdout.isatty():
        _show_rich(columns, cells, numeric, title)
        return
    if title:
        click.echo(title)
    for line in plain_table(columns, cells, numeric):
        click.echo(line)


def plain_table(columns: Sequence[str], cells: Sequence[Sequence[str]], numeric: Sequence[bool]) -> list[str]:
    """The lines of a table in plain text, two spaces between its columns."""
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, numeric, strict=True)
        ).rstrip()
        for line in (columns, *cells)
    ]


def _show_rich(columns: Sequence[str], cells: Sequence[Sequence[str]], numeric: Sequence[bool], title: str) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title or None, title_justify="left")
    for column, right in zip(columns, numeric, strict=True):
        table.add_column(column, justify="right" if right else "left")
    for row in cells:
        table.add_row(*(Text(cell) for cell in row))
    Console().print(table)
