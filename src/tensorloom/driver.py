"""From a file to a checked program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loom_core.base.diagnostics import Diagnostic
from tensorloom.calls import check_forward, check_function, instantiate
from tensorloom.diagnostics import TensorLoomError, TooDeep
from tensorloom.interpreter import Checker, Frame
from tensorloom.names import resolve
from tensorloom.program import Loader, Unit
from tensorloom.source import Source, Span
from tensorloom.training import TrainPlan, check_train
from tensorloom.tree import Train
from tensorloom.values import FunctionValue, ModelValue


@dataclass(slots=True)
class Checked:
    """A program and what is known of it.

    `units`: imported files before the files that import them. `values`: the variables of the main file. `trains`: what
    its train blocks do.
    """

    unit: Unit
    units: list[Unit]
    diagnostics: list[Diagnostic]
    checker: Checker
    values: dict[str, Any]
    trains: dict[Train, TrainPlan]

    @property
    def ok(self) -> bool:
        return not any(diagnostic.severity == "error" for diagnostic in self.diagnostics)

    def require(self) -> Checked:
        """This program; raises TensorLoomError with all diagnostics if one of them is an error."""
        if not self.ok:
            raise TensorLoomError.of(self.diagnostics)
        return self

    def instances(self) -> dict[str, ModelValue]:
        """The models that variables of the main file hold; without any, each model of the file with its defaults."""
        found = {name: value for name, value in self.values.items() if isinstance(value, ModelValue)}
        if found:
            return found
        first = reversed(self.checker.instances.values())
        return {made.model.name: made for made in first if made.unit is self.unit}


def check_file(
    path: Path,
    shown: str | None = None,
    overlay: Mapping[str, str] | None = None,
    frame: type[Frame] = Frame,
) -> Checked:
    """Check a file with all that it imports. Raises TensorLoomError only if this file cannot be read.

    `shown`: what diagnostics call the file. `overlay`: texts in place of files, by real path. `frame`: what interprets.
    """
    loader = Loader(overlay or {})
    return _guarded(loader, lambda: loader.load(path, shown), frame)


def check_text(text: str, file: str = "<program>.tl") -> Checked:
    """Check a program given as text; its imports are relative to the working directory."""
    loader = Loader()
    return _guarded(loader, lambda: loader.load_source(Source(text, file), file), Frame)


def _guarded(loader: Loader, load: Callable[[], Unit], frame: type[Frame]) -> Checked:
    try:
        return _check(load(), list(loader.units.values()), frame)
    except RecursionError:
        # The parser bounds each kind of nesting; this is a mixture of all.
        source = next(iter(loader.units.values())).source if loader.units else Source("", "<program>")
        raise TooDeep(source.location(Span(0, 1))) from None


def _check(unit: Unit, units: list[Unit], kind: type[Frame]) -> Checked:
    units = [other for other in units if other is not unit] + [unit]
    checker = Checker()
    # Names that a line with an error should have defined would be missing.
    broken = any(diagnostic.severity == "error" for other in units for diagnostic in other.diagnostics)
    for other in units if not broken else ():
        resolve(other)
    env: dict[str, Any] = {}
    trains: dict[Train, TrainPlan] = {}
    if not broken:
        for other in units:
            frame = kind(checker, other, None, env if other is unit else {})
            checker.globals[id(other)] = frame.env
            _run_statements(frame, trains)
        for other in units:
            _check_rest(kind(checker, other, None, checker.globals[id(other)]), other is unit)
    diagnostics = [diagnostic for other in units for diagnostic in other.diagnostics] + checker.diagnostics
    diagnostics = sorted(
        dict.fromkeys(diagnostics),
        key=lambda d: (d.location.file != unit.source.file, d.location.line, d.location.column),
    )
    return Checked(unit, units, diagnostics, checker, env, trains)


def _run_statements(frame: Frame, trains: dict[Train, TrainPlan]) -> None:
    for statement in frame.unit.program.body:
        if isinstance(statement, Train):
            trains[statement] = check_train(frame, statement)
        else:
            frame.execute(statement)


def _check_rest(frame: Frame, is_main: bool) -> None:
    """What no statement has run: functions, models without an instance, and forwards that only other models call."""
    checker, unit = frame.checker, frame.unit
    for function in unit.functions.values():
        check_function(frame, FunctionValue(function, unit))
    for model in unit.own_models:
        made: Any = next((made for made in checker.instances.values() if made.model is model), None)
        if made is None:
            made = frame.guarded(model.name_span, instantiate, frame, model, unit, [], [])
        elif not is_main:
            continue
        if isinstance(made, ModelValue):
            check_forward(frame, made)
