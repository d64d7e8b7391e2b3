"""The layers of the architecture: who may import whom, read from the sources."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCES = Path(__file__).resolve().parents[1] / "src"

BASE = {"loom_core.base"}
ISA = BASE | {"loom_core.isa"}
OBJECT = ISA | {"loom_core.objfile"}
IR = BASE | {"loom_core.ir"}
OPS = IR | {"loom_core.reference", "loom_core.ops", "loom_core.isa"}
PASSES = OPS | {"loom_core.interp", "loom_core.passes"}
CORE = OBJECT | PASSES | {"loom_core.trace", "loom_core.interchange", "loom_core.importers", "loom_core.codegen"}
CORE |= {"loom_core.formats"}
RUN = CORE | {"loom_core.cache", "loom_core.compile", "loom_core.checks", "loom_core.launch", "loom_sim", "libloom"}
FRONTEND = RUN | {"loom_core.kernel_view"}

# Each layer and what it may import besides itself and `loom_core` (its version). A new layer is a new row.
LAYERS: dict[str, set[str]] = {
    "loom_core.base": set(),
    "loom_core.isa": BASE,
    "loom_core.formats": ISA,
    "loom_core.objfile": ISA,
    "loom_core.ir": BASE,
    "loom_core.reference": ISA,
    "loom_core.ops": OPS,
    "loom_core.interp": OPS,
    "loom_core.trace": OPS,
    "loom_core.passes": PASSES,
    "loom_core.codegen": PASSES | OBJECT,
    "loom_core.interchange": OPS,
    "loom_core.importers": OPS | {"loom_core.trace", "loom_core.interchange"},
    "loom_core.cache": OBJECT,
    "loom_core.compile": CORE | {"loom_core.cache"},
    "loom_sim": OBJECT,
    "libloom": OBJECT | {"loom_sim"},
    "loom_core.checks": PASSES | OBJECT | {"libloom", "loom_sim"},
    "loom_core.launch": RUN,
    "loom_core.kernel_view": BASE | {"loom_core.launch"},
    "ltl": FRONTEND,
    "palladium": FRONTEND,
    "tensorloom": BASE,
    "loom": FRONTEND | {"ltl", "palladium"},
    "loom_core.tools": FRONTEND | {"ltl", "palladium", "tensorloom", "loom"},
}
OURS = {layer.partition(".")[0] for layer in LAYERS}
VAGUE = {"utils", "util", "helpers", "helper", "common", "misc"}
# Frameworks that a user may not have, or that cost seconds to import: never at the top of a module.
LAZY = {"torch", "jax", "jaxlib", "triton", "onnx"}


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCES).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def layer_of(module: str) -> str | None:
    """The layer a module belongs to; the package `loom_core` itself holds only the version and belongs to none."""
    return max((row for row in LAYERS if module == row or module.startswith(row + ".")), key=len, default=None)


def python_files() -> list[Path]:
    return sorted(SOURCES.rglob("*.py"))


def submodule_exists(name: str) -> bool:
    path = SOURCES.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def imported_modules(tree: ast.AST, module: str, is_package: bool) -> Iterator[tuple[int, str]]:
    """Line and absolute name of everything that a file imports, in functions and by `import_module("...")` too."""
    package = module.split(".") if is_package else module.split(".")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parent = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*parent, *([node.module] if node.module else [])])
            for alias in node.names:
                name = f"{origin}.{alias.name}"
                yield node.lineno, name if submodule_exists(name) else origin
        elif isinstance(node, ast.Call) and node.args:
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            argument = node.args[0]
            if called in ("import_module", "__import__") and isinstance(argument, ast.Constant):
                yield node.lineno, str(argument.value)


def read(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def violations_in(source: str, module: str, is_package: bool = False) -> list[str]:
    """What the file `module` imports against the table."""
    layer = layer_of(module)
    found = []
    for line, name in imported_modules(ast.parse(source), module, is_package):
        if name.partition(".")[0] not in OURS or name == "loom_core":
            continue
        target = layer_of(name)
        if target is None:
            found.append(f"{module}:{line} imports {name}, which is in no layer")
        elif layer is None or (target != layer and target not in LAYERS[layer]):
            found.append(f"{module}:{line} ({layer}) imports {name} ({target})")
    return list(dict.fromkeys(found))


def test_every_module_belongs_to_a_layer() -> None:
    homeless = [module for path in python_files() if layer_of(module := module_name(path)) is None]
    assert homeless == ["loom_core"]


def test_imports_point_downward() -> None:
    found = [
        violation
        for path in python_files()
        for violation in violations_in(path.read_text(encoding="utf-8"), module_name(path), path.name == "__init__.py")
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("loom_sim.engine", "from loom_core.ir import block"),
        ("loom_sim.engine", "def f():\n    import loom_core.passes.fuse"),
        ("loom_core.base.dtype", "from ..isa import machine"),
        ("loom_core.objfile.writer", "from loom_core import ir"),
        ("ltl.language", "import palladium"),
        ("palladium.refs", "import importlib\nimportlib.import_module('ltl.semantic')"),
        ("loom_core.compile", "import loom_core.tools.loomc"),
    ],
)
def test_the_rule_sees(module: str, source: str) -> None:
    assert len(violations_in(source, module)) == 1


def test_the_table_has_no_cycles() -> None:
    settled: set[str] = set()
    while len(settled) < len(LAYERS):
        ready = {layer for layer, below in LAYERS.items() if layer not in settled and below - {layer} <= settled}
        assert ready, f"cycle among {sorted(LAYERS.keys() - settled)}"
        settled |= ready


def test_frameworks_are_imported_lazily() -> None:
    found = []
    for path in python_files():
        tree = ast.Module(list(executed_on_import(read(path))), [])
        names = imported_modules(tree, module_name(path), path.name == "__init__.py")
        found += [f"{path}:{line} {name}" for line, name in names if name.partition(".")[0] in LAZY]
    assert not found, "\n".join(found)


def executed_on_import(node: ast.AST) -> Iterator[ast.stmt]:
    """The import statements that run when the module does: all but those inside functions and type-checking blocks."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        elif isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
            continue
        elif not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from executed_on_import(child)


def test_modules_say_their_role() -> None:
    assert not [path for path in SOURCES.rglob("*") if path.stem in VAGUE]


def modules_after(statement: str) -> set[str]:
    code = f"import sys\n{statement}\nprint(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(SOURCES)!r})\n{code}"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return set(result.stdout.split())


HEAVY = {"torch", "jax", "jaxlib", "triton", "onnx", "numba", "llvmlite", "rich", "click"}


@pytest.mark.parametrize("module", ["loom", "loom.triton.language", "loom_core.base.diagnostics", "loom_core.isa"])
def test_import_is_light(module: str) -> None:
    assert not modules_after(f"import {module}") & HEAVY


def test_the_light_import_check_sees_a_heavy_one() -> None:
    assert "click" in modules_after("import click")
