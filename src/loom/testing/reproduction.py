"""Python files that repeat one wrong launch, and what they import: nothing else of the search is needed to run them."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import sysconfig
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from loom.testing.cases import Case, View
from loom.testing.comparison import Tolerance, observe
from loom.testing.errors import KernelDiffers
from loom.testing.memory import as_numpy, packed, placed, unpacked, view
from loom.testing.options import options
from loom_core.base.diagnostics import Diagnostic, render
from loom_core.base.dtype import from_numpy
from loom_core.ops.formats import is_float, widen

Array = npt.NDArray[Any]
LONGEST_LIST = 64

# ---- what a saved file calls -----------------------------------------------------------------------------------------


def load(path: str, name: str, module: str) -> Any:
    """The kernel `name` of the Python file `path`, imported as `module`."""
    return getattr(load_module(path, module), name)


def load_module(path: str, module: str) -> Any:
    """The Python file `path` as `module`: imported by that name if it can be, else from the file."""
    known = importlib.util.find_spec(module) if "." not in module or _parent_exists(module) else None
    if known is not None and known.origin is not None and Path(known.origin).resolve() == Path(path).resolve():
        return importlib.import_module(module)
    spec = importlib.util.spec_from_file_location(module, path)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[module] = made
    spec.loader.exec_module(made)
    return made


def _parent_exists(module: str) -> bool:
    try:
        return importlib.util.find_spec(module.rpartition(".")[0]) is not None
    except ModuleNotFoundError:
        return False


def reproduce(
    call: Callable[[], Any],
    *,
    memories: Sequence[Array],
    expected: Mapping[str, tuple[Array, Array]],
    returned: Sequence[Array] | None = None,
    ulp: float = 0,
    rtol: float = 0,
    atol: float = 0,
) -> int:
    """Make a launch, print what is wrong with it; 1 if anything is, else 0."""
    faults = observe(call, memories, expected, returned, Tolerance(ulp, rtol, atol))
    for fault in faults:
        print(render(Diagnostic(KernelDiffers.code, fault.text, fault.location, notes=fault.notes)))
    for name, (array, wanted) in expected.items() if faults else ():
        print(f"{name} is\n{array}\nand should be\n{wanted}")
    if not faults:
        print("nothing is wrong")
    return 1 if faults else 0


# ---- saving ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Failure:
    """A wrong launch. `headline` says what is wrong in one line."""

    kernel: Any
    name: str
    case: Case
    grid: Any
    expected: Mapping[str, Array]
    returned: Sequence[Any] | None
    tolerance: Tolerance
    torch: bool
    upstream: bool
    headline: str


@dataclass(frozen=True)
class Saved:
    """The file, if one could be made, and a line that says how to run it or why there is none."""

    path: Path | None
    advice: str


def save(failure: Failure) -> Saved:
    """Write the file that repeats a launch into the folder of the options."""
    home = _home(failure.kernel)
    if home is None:
        return Saved(None, f"{failure.name} has no name in a module: give it one, and a file will repeat this launch")
    text = _text(failure, *home)
    folder = options().folder()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{failure.name}_{zlib.crc32(text.encode()):08x}.py"
    path.write_text(text, encoding="utf-8")
    options().saved.append(path)
    return Saved(path, f"this launch alone: {sys.executable} {path}")


def _home(kernel: Any) -> tuple[Path, str, str] | None:
    """File, name and module of a kernel."""
    module = sys.modules.get(getattr(kernel, "__module__", None) or "")
    file = getattr(module, "__file__", None)
    if module is None or file is None:
        return None
    name = next((name for name, value in vars(module).items() if value is kernel), None)
    if name is None:
        return None
    dotted = module.__name__ if module.__name__ != "__main__" else Path(file).stem
    return Path(file).resolve(), name, dotted


def _text(failure: Failure, path: Path, name: str, module: str) -> str:
    case = failure.case
    types = {from_numpy(memory.values.dtype).name for memory in case.memories}
    lines = [
        f'"""{failure.name}: {_plain(failure.headline)}"""',
        "",
        "import sys",
        "",
        "import numpy as np",
        *(
            ["import ml_dtypes  # the narrow types of NumPy"]
            if types & {"bf16", "f8e4m3", "f8e5m2", "i4", "u4"}
            else []
        ),
        "",
        f"sys.path[:0] = {_paths()!r}",
        *(["import loom.triton", "", "loom.triton.install()"] if failure.upstream else []),
        "from loom.testing.reproduction import load, placed, reproduce, unpacked, view",
        "",
        "inf, nan = np.inf, np.nan",
        f"kernel = load({str(path)!r}, {name!r}, {module!r})",
        "",
    ]
    lines += [f"memory_{i} = placed({_array(m.values)}, {m.at})" for i, m in enumerate(case.memories)]
    given = []
    expected = []
    for argument, value in case.arguments.items():
        if not isinstance(value, View):
            given.append((argument, _literal(value)))
            continue
        place = f"memory_{value.memory}, {value.start}, {value.shape}, {value.strides}"
        lines.append(f"{argument} = view({place}{', torch=True' if failure.torch else ''})")
        given.append((argument, argument))
        if argument in failure.expected:
            seen = f"view({place})" if failure.torch else argument
            expected.append(f"        {argument!r}: ({seen}, {_array(failure.expected[argument])}),")
    lines += ["", "", "def call():"]
    if failure.grid is None:
        lines.append(f"    return kernel({', '.join(text for _, text in given)})")
    else:
        grid = failure.grid if not isinstance(failure.grid, list) else tuple(failure.grid)
        lines.append(f"    return kernel[{grid!r}]({', '.join(f'{name}={text}' for name, text in given)})")
    memories = ", ".join(f"memory_{i}" for i in range(len(case.memories)))
    lines += [
        "",
        "",
        "wrong = reproduce(",
        "    call,",
        f"    memories=[{memories}],",
        "    expected={",
        *expected,
        "    },",
    ]
    if failure.returned is not None:
        lines.append(f"    returned=[{', '.join(_array(as_numpy(one)) for one in failure.returned)}],")
    t = failure.tolerance
    lines += [f"    ulp={t.ulp!r}, rtol={t.rtol!r}, atol={t.atol!r},", ")", "sys.exit(wrong)", ""]
    return "\n".join(lines)


def _plain(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', "'")


def _paths() -> list[str]:
    """The folders that imports are found in here, beside those of every Python."""
    usual = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    known = [Path(entry or ".").resolve() for entry in sys.path]
    return [str(p) for p in dict.fromkeys(known) if p.is_dir() and str(p) not in usual and p.name != "lib-dynload"]


def _literal(value: Any) -> str:
    if isinstance(value, np.generic):
        value = value.item()
    return repr(value)


def _array(values: Array) -> str:
    """An expression for an array, bit for bit."""
    dtype = from_numpy(values.dtype)
    name = f"np.dtype({dtype.numpy_name!r})"
    flat = np.ascontiguousarray(values).reshape(-1)
    shape = "" if values.ndim == 1 else f".reshape({values.shape})"
    plain = (widen(flat) if is_float(flat) else flat).tolist() if dtype.bits >= 8 or dtype.is_bool else None
    if plain is not None and _same(np.array(plain, values.dtype), flat):
        if flat.size and _same(np.full(flat.size, plain[0], values.dtype), flat):
            return f"np.full({flat.size}, {plain[0]!r}, {name}){shape}"
        if flat.size <= LONGEST_LIST:
            return f"np.array({plain!r}, {name}){shape}"
    return f"unpacked({packed(flat)!r}, {name}){shape}"


def _same(one: Array, other: Array) -> bool:
    return one.tobytes() == other.tobytes()


__all__ = ["Failure", "Saved", "load", "load_module", "placed", "reproduce", "save", "unpacked", "view"]
