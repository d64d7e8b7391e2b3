"""The table of features names tests that exist."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.tensorloom.features import FEATURES

HERE = Path(__file__).resolve().parent


def test_every_feature_has_a_test() -> None:
    known = {
        f"{path.stem}::{node.name}"
        for path in HERE.glob("test_*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef)
    }
    named = {test for features in FEATURES.values() for test in features.values()}
    assert named - known == set()


def test_every_file_of_tests_is_named() -> None:
    named = {test.partition("::")[0] for features in FEATURES.values() for test in features.values()}
    files = {path.stem for path in HERE.glob("test_*.py")}
    assert files - named == {"test_features", "test_formatting"}
