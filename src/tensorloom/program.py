"""Programs: a file with everything that it imports, each file read and parsed once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from loom_core.base.diagnostics import Diagnostic
from tensorloom.arguments import nearest_hint
from tensorloom.diagnostics import (
    ImportCycle,
    ImportFails,
    NoModel,
    Redefined,
    TensorLoomError,
    UnknownModule,
)
from tensorloom.parser import parse
from tensorloom.source import Source, Span, read_source
from tensorloom.tree import Function, Import, Kernel, Let, Model, Program, Stmt

MODULES: Final = {
    "nn": (),
    "data": ("load_dataset",),
    "data.mnist": ("load",),
}
"""The built-in modules and their functions; `nn` has the layers."""


@dataclass(slots=True, eq=False)
class Unit:
    """A file of a program. `names`: its models, functions, kernels, imports and variables, each with its definition."""

    source: Source
    program: Program
    comments: list[Span]
    diagnostics: list[Diagnostic] = field(default_factory=list)
    models: dict[str, tuple[Model, Unit]] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    kernels: dict[str, Kernel] = field(default_factory=dict)
    modules: dict[str, str] = field(default_factory=dict)
    variables: dict[str, Span] = field(default_factory=dict)
    imports: list[tuple[Import, Unit]] = field(default_factory=list)

    def report(self, kind: type[TensorLoomError], span: Span, hint: str | None = None, **fields: object) -> None:
        location = self.source.location(span)
        self.diagnostics.append(kind.diagnostic(location, hint=hint, **fields))  # type: ignore[arg-type]

    @property
    def own_models(self) -> list[Model]:
        return [statement for statement in self.program.body if isinstance(statement, Model)]


@dataclass(slots=True)
class Loader:
    """Reads files. `overlay`: texts that stand in for files, by path, as an editor has them before saving."""

    overlay: Mapping[str, str] = field(default_factory=dict)
    units: dict[str, Unit] = field(default_factory=dict)
    loading: list[str] = field(default_factory=list)

    def load(self, path: Path, shown: str | None = None) -> Unit:
        """The unit of a file, and those of its imports. Raises what `read_source` does, for this file only."""
        key = os.path.realpath(path)
        text = self.overlay.get(key)
        source = read_source(path, shown) if text is None else Source(text, shown or str(path), path)
        return self.load_source(source, key)

    def load_source(self, source: Source, key: str) -> Unit:
        parsed = parse(source)
        unit = Unit(source, parsed.program, parsed.comments, list(parsed.diagnostics))
        self.units[key] = unit
        self.loading.append(key)
        for statement in parsed.program.body:
            if isinstance(statement, Import):
                self._import(unit, statement, Path(key).parent)
        self.loading.pop()
        for statement in parsed.program.body:
            _define(unit, statement)
        return unit

    def _import(self, unit: Unit, statement: Import, folder: Path) -> None:
        if statement.path[-1] != "nml":
            _import_module(unit, statement)
            return
        relative = "/".join(statement.path[:-1]) + ".nml"
        path = folder / relative
        key = os.path.realpath(path)
        if key in self.loading:
            chain = [os.path.basename(k) for k in (*self.loading[self.loading.index(key) :], key)]
            unit.report(ImportCycle, statement.span, path=" -> ".join(chain))
            return
        imported = self.units.get(key)
        if imported is None:
            beside = os.path.dirname(unit.source.file)
            try:
                imported = self.load(path, os.path.join(beside, relative))
            except TensorLoomError as error:
                reason = error.diagnostics[0].message
                unit.report(ImportFails, statement.span, _file_hint(path), file=relative, reason=reason)
                return
        unit.imports.append((statement, imported))
        _import_models(unit, statement, imported, relative)


def _file_hint(path: Path) -> str:
    """The nearest file name in the folder, if the folder exists."""
    if not path.parent.is_dir():
        return "paths are relative to the importing file"
    return nearest_hint(path.name, (entry.name for entry in path.parent.glob("*.nml")))


def _import_module(unit: Unit, statement: Import) -> None:
    name = ".".join(statement.path)
    if name in MODULES:
        unit.modules[statement.alias or statement.path[-1]] = name
    else:
        unit.report(UnknownModule, statement.span, name=name)


def _import_models(unit: Unit, statement: Import, imported: Unit, relative: str) -> None:
    """The first model under the alias or its own name, the others under their own."""
    models = imported.own_models
    if not models:
        if not imported.diagnostics:
            unit.report(NoModel, statement.span, file=relative)
        return
    for i, model in enumerate(models):
        name = statement.alias if statement.alias and i == 0 else model.name
        if _claim(unit, name, statement.span) or i:
            unit.models.setdefault(name, (model, imported))


def _claim(unit: Unit, name: str, span: Span) -> bool:
    """Whether a name is still free in this unit; reports it if not."""
    other: Span | None = None
    if name in unit.models:
        model, home = unit.models[name]
        other = model.name_span if home is unit else span
    elif name in unit.functions:
        other = unit.functions[name].name_span
    elif name in unit.kernels:
        other = unit.kernels[name].name_span
    if other is None:
        return True
    unit.report(Redefined, span, name=name, line=unit.source.line(other.start))
    return False


def _define(unit: Unit, statement: Stmt) -> None:
    if isinstance(statement, Model):
        if _claim(unit, statement.name, statement.name_span):
            unit.models[statement.name] = (statement, unit)
    elif isinstance(statement, Function):
        if _claim(unit, statement.name, statement.name_span):
            unit.functions[statement.name] = statement
    elif isinstance(statement, Kernel):
        if _claim(unit, statement.name, statement.name_span):
            unit.kernels[statement.name] = statement
    elif isinstance(statement, Let):
        for target in statement.targets:
            if _claim(unit, target.id, target.span):
                unit.variables.setdefault(target.id, target.span)
