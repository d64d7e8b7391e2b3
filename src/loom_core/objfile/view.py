"""An object in a notebook: its arguments, what its engines are given, and where its windows lie in SRAM."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from loom_core.base.diagnostics import LoomError
from loom_core.base.html import ACP, DMA, MXU, SCE, Markup, bar, document, table, tag
from loom_core.base.units import byte_count
from loom_core.isa.commands import Queue
from loom_core.isa.encoding import decode_at
from loom_core.objfile.model import AbiArg, LoomObject

WIDTH: Final = 720
ROW: Final = 16
WINDOWS_SHOWN: Final = 24
_COLOURS: Final = {"DMA": DMA, "MXU": MXU, "SCE": SCE, "ACP": ACP}
_USES: Final = {(True, True): "read, written", (True, False): "read", (False, True): "written", (False, False): ""}


def object_html(subject: LoomObject) -> str:
    """The whole display of an object."""
    used, held = byte_count(subject.abi.sram_bytes_used), byte_count(subject.machine.sram_bytes)
    title = f"object for machine {subject.machine.name}, {used} of {held} SRAM a core"
    sections = {"commands": subject.commands.nbytes, "programs": subject.programs.nbytes}
    sections["constants"] = len(subject.constants)
    held_in = ", ".join(f"{name} {byte_count(size)}" for name, size in sections.items() if size)
    return document(
        tag("div", tag("b", subject.name), " ", title),
        table(("argument", "type", "use"), map(_argument_row, subject.abi.args)),
        table(("queue", "commands in the stream", ""), _queue_rows(subject)),
        windows_picture(subject),
        tag("div", f"sections: {held_in}", class_="faint"),
    )


def _argument_row(argument: AbiArg) -> tuple[str, str, str]:
    if argument.kind == "scalar":
        return argument.name, argument.dtype, f"in register {argument.slot}"
    return argument.name, f"*{argument.dtype}", _USES[argument.read, argument.written]


def commands_per_queue(subject: LoomObject) -> Counter[str]:
    """How many commands each queue has in the stream, the command processor's own under ACP. LOOM-O0xx if damaged."""
    return Counter(Queue(command.queue).name for command in decode_at(subject.commands).values())


def _queue_rows(subject: LoomObject) -> Iterator[tuple[object, ...]]:
    try:
        counts = commands_per_queue(subject)
    except LoomError as error:
        yield "", error.diagnostics[0].message, ""
        return
    whole = max(counts.values(), default=1)
    for queue in Queue:
        if counts[queue.name]:
            share = counts[queue.name] / whole
            yield queue.name, counts[queue.name], bar([(share, _COLOURS[queue.name[:3]], queue.name)])


def windows_picture(subject: LoomObject) -> Markup:
    """Windows by their place in SRAM, one a row; slots of a window that has several are set apart."""
    windows = [window for window in subject.manifest.get("windows", ()) if _is_window(window)]
    if not windows:
        return tag("div", "no windows in SRAM", class_="faint")
    end = max(window["offset"] + window["bytes"] * window.get("slots", 1) for window in windows)
    scale = WIDTH / max(end, 1)
    drawn = []
    for i, window in enumerate(windows[:WINDOWS_SHOWN]):
        slots, y = window.get("slots", 1), i * ROW
        text = f"{window['name']}: {byte_count(window['bytes'])}" + (f" x {slots}" if slots > 1 else "")
        width = window["bytes"] * scale
        left = window["offset"] * scale
        fine = width >= 2  # slots that are narrower than two pixels are drawn as one
        for slot in range(slots if fine else 1):
            part = (width if fine else width * slots) - (0.6 if fine and slots > 1 else 0)
            drawn.append(
                tag(
                    "rect", tag("title", f"{text} at {window['offset']}"), x=f"{left + slot * width:.1f}", y=y,
                    width=f"{max(part, 1):.1f}", height=ROW - 3, fill=DMA, fill_opacity=0.55,
                )
            )  # fmt: skip
        drawn.append(tag("text", text, x=WIDTH + 8, y=y + 11))
    height = ROW * min(len(windows), WINDOWS_SHOWN)
    frame = tag("rect", width=WIDTH, height=height, fill="rgba(127,127,127,.12)")
    more = len(windows) - WINDOWS_SHOWN
    note = tag("div", f"and {more} more windows", class_="faint") if more > 0 else ""
    size = {"width": WIDTH + 240, "height": height, "viewBox": f"0 0 {WIDTH + 240} {height}"}
    return tag("div", tag("div", f"windows in SRAM, 0 to {byte_count(end)}:"), tag("svg", frame, *drawn, **size), note)


def _is_window(window: Any) -> bool:
    """Whether an entry of the manifest, which may come from a file, is a window that can be drawn."""
    if not isinstance(window, dict) or not {"name", "offset", "bytes"} <= window.keys():
        return False
    numbers = window["offset"], window["bytes"], window.get("slots", 1)
    return all(isinstance(number, int) and number >= 0 for number in numbers)
