"""Where PyTorch is absent, tests that run what is compiled for it are skipped."""

from __future__ import annotations

from collections.abc import Generator

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    try:
        return (yield)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        pytest.skip("could not import 'torch'")
