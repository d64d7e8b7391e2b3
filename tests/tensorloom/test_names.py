"""What names stand for, and what is said of those that stand for nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensorloom.driver import check_file
from tests.tensorloom.programs import checked, evaluated, message, places, problems, python, statements

NET = """
model Net:
    layer fc = Linear(4, 2)
    fn forward(self, x):
        return x |> self.fc
"""


def architecture(forward: str, layers: str = "fc = Linear(width, width)", config: str = "width = 4") -> str:
    body = "".join(f"        {line}\n" for line in forward.split("\n"))
    return f"@model M:\n    @config:\n        {config}\n    @layers:\n        {layers}\n    @forward(x):\n{body}"


@pytest.mark.parametrize(
    ("forward", "python_line"),
    [
        ("return fc(x)", "return self.fc(x)"),
        ("return x |> fc |> relu", "return torch.relu(self.fc(x))"),
        ("return -fc(x)", "return -self.fc(x)"),
        ("return fc(x)[0]", "return self.fc(x)[0]"),
        ("return fc(x).sum()", "return self.fc(x).sum()"),
        ("return fc.weight @ x", "return self.fc.weight @ x"),
        ("if width > 2:\n    return fc(x)\nreturn x", "return self.fc(x)"),
        ("for i in range(width):\n    x = fc(x)\nreturn x", "x = self.fc(x)"),
        ("return x * width", "return x * self.width"),
        ("let fc = x\nreturn fc", "return fc"),
        ("return max(width, 2) * x", "return max(self.width, 2) * x"),
    ],
)
def test_scopes_of_a_model(forward: str, python_line: str) -> None:
    assert python_line in [line.strip() for line in statements(architecture(forward))]


def test_config_entries_see_those_before() -> None:
    text = """@model M:
    @config:
        a = 2
        b = a * 3
        c = b + a
    @forward(x):
        return x * c
"""
    net = evaluated(text)["M"]
    assert (net().c, net(a=3).c, net(b=1).c, net(1, 2, 3).c) == (8, 12, 3, 3)
    assert problems(text.replace("a * 3", "c * 3")) == [("T201", "4:13")]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("print(nothing)", [("T201", "1:7")]),
        ("let a = b\nlet b = 1", [("T202", "1:9")]),
        ("fn f():\n    let y = x\n    let x = 1\n    return y", [("T202", "2:13")]),
        ("fn f():\n    return 1\nfn f():\n    return 2", [("T203", "3:4")]),
        ("model M:\n    layer a = ReLU()\n    layer a = ReLU()", [("T203", "3:11")]),
        ("model M:\n    layer train = ReLU()", [("T105", "2:11")]),
        ("model M:\n    layer half = ReLU()", [("T204", "2:11")]),
        ("import numpy", [("T207", "1:1")]),
        ("import data.mnist\nlet d = mnist.lod()", [("T205", "2:15")]),
        ("import nn\nlet d = nn.Liner(1, 2)", [("T205", "2:12")]),
        ("let x = float16", [("T212", "1:9")]),
        ("let x = zeros(2, dtype=float61)", [("T201", "1:24")]),
        ("x = 1", [("T211", "1:1")]),
        ("fn f(a: Tnsor):\n    return a", [("T201", "1:9")]),
        ("fn f(self):\n    return 1", [("T110", "1:6")]),
        ("print(self)", [("T110", "1:7")]),
        ("train net on data:\n    epochs = 1", [("T201", "1:7"), ("T201", "1:14")]),
        ("let n = 1\nfn f(a=n):\n    return a", [("T110", "2:8")]),
    ],
)
def test_errors(text: str, found: list[tuple[str, str]]) -> None:
    assert problems(text + "\n") == found


def test_hints() -> None:
    assert "did you mean Linear?" in message("model M:\n    layer a = Liner(1, 2)\n")
    assert "did you mean Linear?" in message("import nn\nlet a = nn.Liner(1, 2)\n")
    assert "did you mean relu?" in message("print(reluu(1))\n")
    assert "did you mean fc?" in message(NET.replace("self.fc", "self.fcc"))
    assert "write `let x = ...`" in message("x = 1\n")


def test_warnings_do_not_stop_a_program() -> None:
    program = checked("x = 1\nx = 2\n")
    assert program.ok
    assert [diagnostic.severity for diagnostic in program.diagnostics] == ["warning"]


def test_the_words_of_types_are_only_types() -> None:
    values = evaluated(
        "let a = zeros(2, dtype=float16)\nlet b = bool(1)\nlet c = ones(1, dtype=bool)\nlet d = zeros(1, device=cpu)\n"
    )
    assert (str(values["a"].dtype), values["b"], str(values["c"].dtype)) == ("torch.float16", True, "torch.bool")
    assert "device=device" in python("let a = zeros(2, device=gpu)\n")
    assert evaluated("let bf16 = float(3)\nlet a = full([2], 1.0, dtype=fp32)\nlet b = bf16\n")["b"] == 3.0


def test_names_that_python_needs() -> None:
    text = """
        let class = 3
        let torch = 4
        let device = class + torch
        let device_ = 1
        fn lambda(def):
            return def + device_
        let result = lambda(device)
    """
    assert evaluated(text)["result"] == 8


def test_names_of_python_in_models() -> None:
    text = """
        @model M:
            @config:
                class = 3
                device = 4
            @forward(x):
                return x * class + device
        let m = M(class=5)
    """
    values = evaluated(text)
    assert values["m"](1) == 9
    assert values["m"].class_ == 5


def test_functions_assign_variables_of_the_program() -> None:
    text = "let n = 1\nfn f():\n    n = n + 1\n    let k = n\n    return k\nlet r = f()\nlet s = n\n"
    assert (evaluated(text)["r"], evaluated(text)["s"]) == (2, 2)


def test_let_again_and_shadowing() -> None:
    assert evaluated("let a = 1\nlet a = a + 1\nfn f(a):\n    let a = a * 2\n    return a\nlet b = f(a)\n")["b"] == 4


# ---- imports ---------------------------------------------------------------------------------------------------------


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / (name.replace("__", "/") + (".tl" if name == "main" else ".nml"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder / "main.tl"


INNER = """@model Inner:
    @config:
        width = 4
    @layers:
        fc = Linear(width, width)
    @forward(x):
        return fc(x)
"""
OUTER = """import part.inner.nml as In
@model Outer:
    @layers:
        a = In(width=8)
        b = Linear(8, 3)
    @forward(x):
        return b(a(x))
"""


def found_in(main: Path) -> list[tuple[str, str, str]]:
    return [(Path(d.location.file).name, *places(d)) for d in check_file(main).diagnostics]


def test_imports_are_relative_to_the_importing_file(tmp_path: Path) -> None:
    main = write(
        tmp_path, main="import lib.outer.nml as Net\nlet net = Net()\n", lib__outer=OUTER, lib__part__inner=INNER
    )
    assert found_in(main) == []
    assert [(s.name, str(s.result and s.result[-1])) for s in check_file(main).instances()["net"].flow] == [
        ("a", "8"),
        ("b", "3"),
    ]


def test_an_import_without_alias_has_the_models_own_names(tmp_path: Path) -> None:
    both = INNER + INNER.replace("Inner", "Second")
    main = write(tmp_path, main="import both.nml\nlet a = Inner()\nlet b = Second()\n", both=both)
    assert found_in(main) == []
    main = write(tmp_path, main="import both.nml as X\nlet a = X()\nlet b = Second()\nlet c = Inner()\n")
    assert found_in(main) == [("main.tl", "T201", "4:9")]


def test_cycles_are_reported_with_their_path(tmp_path: Path) -> None:
    main = write(
        tmp_path, main="import a.nml\n", a="import b.nml\n" + INNER, b="import a.nml\n" + INNER.replace("Inner", "B")
    )
    (found,) = check_file(main).diagnostics
    assert found.code == "LOOM-T209"
    assert "a.nml -> b.nml -> a.nml" in found.message


def test_a_file_is_read_once(tmp_path: Path) -> None:
    first = OUTER.replace("part.inner.nml as In", "c.nml").replace("In(", "Inner(")
    second = "import c.nml\n" + INNER.replace("Inner", "Other")
    main = write(tmp_path, main="import a.nml\nimport b.nml as B\n", a=first, b=second, c=INNER)
    program = check_file(main)
    assert program.ok
    assert len(program.units) == 4


@pytest.mark.parametrize(
    ("main", "found"),
    [
        ("import inner.nml as X\nlet a = X()\n", []),
        ("import iner.nml as X\nlet a = X()\n", [("main.tl", "T208", "1:1")]),
        ("import empty.nml\n", [("main.tl", "T210", "1:1")]),
        ("import inner.nml as X\nlet a = X(widht=3)\n", [("main.tl", "T301", "2:9")]),
        ("import inner.nml as X\nlet a = X(1, 2)\n", [("main.tl", "T301", "2:9")]),
        ("import broken.nml as X\n", [("broken.nml", "T101", "2:13")]),
        ("import wrong.nml as X\n", [("wrong.nml", "T201", "7:19")]),
    ],
)
def test_what_imports_can_lack(tmp_path: Path, main: str, found: list[tuple[str, str, str]]) -> None:
    wrong = INNER.replace("fc(x)", "fd(x)").replace("return ", "return    ")
    path = write(
        tmp_path,
        main=main,
        inner=INNER,
        empty="let a = 1\n",
        broken="@model M:\n    @config:\n        a =\n",
        wrong=wrong,
    )
    assert found_in(path) == [(f, c, "3:12" if f == "broken.nml" else w) for f, c, w in found]


def test_hints_of_imports(tmp_path: Path) -> None:
    main = write(tmp_path, main="import iner.nml as X\n", inner=INNER)
    assert "did you mean inner.nml?" in str(check_file(main).diagnostics[0])
    main = write(tmp_path, main="import inner.nml as X\nlet a = X(widht=3)\n")
    assert "did you mean width?" in str(check_file(main).diagnostics[0])


def test_same_names_in_two_files(tmp_path: Path) -> None:
    second = INNER.replace("width = 4", "width = 6")
    main = write(tmp_path, main="import a.nml as A\nimport b.nml as B\nlet x = A()\nlet y = B()\n", a=INNER, b=second)
    from tensorloom.emit import emit

    namespace: dict[str, object] = {}
    exec(emit(check_file(main).require()).text, namespace)
    assert (namespace["x"].width, namespace["y"].width) == (4, 6)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["main.py", "main"])
def test_other_suffixes(tmp_path: Path, name: str) -> None:
    from tensorloom.diagnostics import TensorLoomError

    (tmp_path / name).write_text("")
    with pytest.raises(TensorLoomError, match="LOOM-T002"):
        check_file(tmp_path / name)


def test_bad_utf8(tmp_path: Path) -> None:
    from tensorloom.diagnostics import TensorLoomError

    (tmp_path / "main.tl").write_bytes(b"let a = 1\nlet b = \xff\n")
    with pytest.raises(TensorLoomError, match=r"main\.tl:2: error\[LOOM-T003\]"):
        check_file(tmp_path / "main.tl")
