"""`docs/numerics.md` and the coefficient tables agree with each other and with what they claim."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest

from loom_core.isa.coefficients import CONSTANTS, POLYNOMIALS, TWO_OVER_PI_WORDS
from loom_core.isa.polynomial import Polynomial
from loom_core.reference.describe import numerics_markdown_tables, with_generated_tables
from loom_core.reference.elementary import REFERENCE_F32

_ROOT = Path(__file__).resolve().parents[2]
_PAGE = _ROOT / "docs" / "numerics.md"


def test_the_page_is_up_to_date() -> None:
    page = _PAGE.read_text(encoding="utf-8")
    assert page == with_generated_tables(page), "run: python -m loom_core.reference.describe docs/numerics.md"
    assert with_generated_tables("text") != with_generated_tables("other text")


def test_every_function_and_table_is_described() -> None:
    written = _PAGE.read_text(encoding="utf-8").partition("## 6.")[0]
    missing = [name for name in REFERENCE_F32 if not re.search(rf"(`|\*\*){name}(`|\()", written)]
    assert missing == []
    unused = [name for name in POLYNOMIALS if f"*{name}*" not in written]
    unused += [name for name in CONSTANTS if name not in written]
    assert unused == []
    assert all(literal in numerics_markdown_tables() for table in POLYNOMIALS.values() for literal in table.literals)


@pytest.mark.parametrize("polynomial", POLYNOMIALS.values(), ids=lambda polynomial: polynomial.name)
def test_literals_are_exact_in_their_format(polynomial: Polynomial) -> None:
    for value in polynomial.values:
        assert np.isfinite(value)
        if polynomial.bits == 32:
            assert float(np.float32(value)) == value


def _fit_script() -> Any:
    """`tools/fit_coefficients.py` as a module."""
    spec = importlib.util.spec_from_file_location("fit_coefficients", _ROOT / "tools" / "fit_coefficients.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_tables_keep_their_claimed_error() -> None:
    fits = _fit_script().FITS
    assert [fit.name for fit in fits] == list(POLYNOMIALS)
    for fit in fits:
        polynomial = POLYNOMIALS[fit.name]
        assert (fit.formula, fit.bits, fit.degree) == (polynomial.formula, polynomial.bits, polynomial.degree)
        low, high = fit.domain
        worst = mpmath.mpf(0)
        for step in range(64):
            x = low + (high - low) * (mpmath.mpf(step) + mpmath.mpf("0.37")) / 64
            value = mpmath.polyval([mpmath.mpf(c) for c in reversed(polynomial.values)], x)
            worst = max(worst, abs(fit.weight(x) * (value - fit.target(x))))
        assert 0 < worst * 2**24 <= polynomial.max_error


def test_the_script_reproduces_what_is_published() -> None:
    script = _fit_script()
    (fit,) = (fit for fit in script.FITS if fit.name == "tanh")
    coefficients, _ = script.fit(fit)
    assert tuple(script.literal(c, 32) for c in coefficients) == POLYNOMIALS["tanh"].literals
    for split in script.SPLITS:
        literals = [script.literal(value, split.bits) for value in script.split(split)]
        assert literals == [CONSTANTS[name] for name in split.names]
    assert sorted(CONSTANTS) == sorted(name for split in script.SPLITS for name in split.names)
    assert tuple(script.two_over_pi_words(len(TWO_OVER_PI_WORDS))) == TWO_OVER_PI_WORDS
