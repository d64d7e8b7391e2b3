"""Diagnostics of the simulator (LOOM-Sxxx): its engine cache, its launches, and the faults of a running program."""

from __future__ import annotations

from typing import ClassVar

from loom_core.base.diagnostics import Severity, UserError


class SimulatorError(UserError):
    """Base of everything that stops a program or refuses to start one."""


# ---- engine cache: warnings, never raised ----


class EngineCacheUnwritable(UserError):
    code = "LOOM-S001"
    template = "simulator engines cannot be kept in {path} ({reason}); they are compiled again in every process"
    hint = "set LOOM_CACHE_DIR to a folder that can be written"
    severity: ClassVar[Severity] = "warning"


class EngineCacheDamaged(UserError):
    code = "LOOM-S002"
    template = "the stored simulator engine {path} is damaged; it is compiled again"
    severity: ClassVar[Severity] = "warning"


# ---- loading and launching ----


class UnsupportedMachine(SimulatorError):
    code = "LOOM-S010"
    template = "this simulator cannot be the machine {machine}: {field} is {value}, it supports {supported}"
    hint = "use a preset, or change the fields that the simulator leaves free"


class BadLaunch(SimulatorError):
    code = "LOOM-S011"
    template = "the launch does not fit the object: {reason}"


# ---- faults of a running program ----


class OutOfBounds(SimulatorError):
    code = "LOOM-S101"
    template = "{command} touches bytes {low} to {high} of {space}, which holds {extent}"


class UnknownSpace(SimulatorError):
    code = "LOOM-S102"
    template = "{command} names space {number}; the launch has spaces 0 (SRAM) to {last}"


class OversizedCommand(SimulatorError):
    code = "LOOM-S103"
    template = "{command} covers {elements} elements; at most {limit} are simulated in one command"
    hint = "the sizes come from register operands: look for a size computed from an uninitialised or huge value"


class StepZero(SimulatorError):
    code = "LOOM-S104"
    template = "loop with step 0 in register r{register}"


class WatchdogExpired(SimulatorError):
    code = "LOOM-S105"
    template = "the watchdog budget of {budget} backward jumps is used up"
    hint = "the kernel's while loop does not end, or its budget is too small"


class Trapped(SimulatorError):
    code = "LOOM-S106"
    template = "the program stopped itself with trap {trap}"


class BadReport(SimulatorError):
    code = "LOOM-S109"
    template = "report {code} of the program is not one of its manifest: {reason}"


class ReadOnlySpace(SimulatorError):
    code = "LOOM-S108"
    template = "{command} writes to {space}, which the kernel does not declare as written"


class CommandLimit(SimulatorError):
    code = "LOOM-S107"
    template = "the run executed {executed} commands, its limit"
    hint = "the limit was given to this run; a kernel that needs more is given a higher one"


# ---- findings of a checked run ----


class CheckFinding(SimulatorError):
    """Base of what a checked run finds: the run itself goes on."""


class MissingWait(CheckFinding):
    code = "LOOM-S201"
    template = "{command} {verb} {place} while {other} may still be {doing} it"
    hint = "nothing orders the two engines: let this command wait for the token of the other"


class UninitialisedRead(CheckFinding):
    code = "LOOM-S202"
    template = "{command} reads {place}, which nothing has written"
    hint = "store to it first, or give the load a fill value"


class WrongLayout(CheckFinding):
    code = "LOOM-S203"
    template = "{command} reads {place} as {expected}; it was written as {found}"
    hint = "two windows share these bytes, or a panel is read by what cannot read panels"


class ReadOfAnotherProgram(CheckFinding):
    code = "LOOM-S204"
    template = "program {program} reads {place}, which program {other} has written"
    hint = "programs of a grid have no order: let one program do both, or make two launches"


class WriteOverAnotherProgram(CheckFinding):
    code = "LOOM-S205"
    template = "program {program} changes {place}, which {other} has {done}"
    hint = "programs of a grid have no order: let one program do both, or use an atomic operation"


class ResultDependsOnSpeed(CheckFinding):
    code = "LOOM-S206"
    template = "{place} depends on engine speeds: it changes if {command} runs before {other}, which was issued first"
    hint = "nothing orders the two engines: let this command wait for the token of the other"


class WaitForNothing(CheckFinding):
    code = "LOOM-S207"
    template = "{command} waits for token {token}, which {reason}"
    hint = "a wait counts the signals issued before it: name the token of the command that it shall wait for"


class Deadlock(CheckFinding):
    code = "LOOM-S208"
    template = "program {program} waits here for ever: an iteration of the loop changes nothing that it looks at"
    hint = "programs run one after another: what is yet to run cannot end the wait"


class OverlappingWindows(CheckFinding):
    code = "LOOM-S209"
    template = "windows {first} and {second} share bytes {low} to {high} of SRAM while both are in use"
    hint = "place them apart, or let one end before the other begins"


class OutsideOfWindows(CheckFinding):
    code = "LOOM-S210"
    template = "{command} {verb} {place}, which no window that is in use here holds whole"
    hint = "its address or its size is not that of the window it is meant for"
