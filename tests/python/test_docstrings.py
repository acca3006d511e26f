"""Runs the examples of docstrings, each in a new interpreter."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest
import serdes_ml

MODULES = [
    f"serdes_ml.{one.name}"
    for one in pkgutil.iter_modules(serdes_ml.__path__)
    if one.name != "__main__"
]


@pytest.mark.parametrize("name", ["serdes_ml", *MODULES])
def test_an_example_needs_no_name_of_its_module(name: str) -> None:
    module = pytest.importorskip(name, exc_type=ImportError)
    finder = doctest.DocTestFinder(exclude_empty=True)
    said: list[str] = []
    for test in finder.find(module, globs={"__name__": "__main__"}):
        doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=said.append)
    assert not said, "".join(said)


def test_functions_for_files_have_examples() -> None:
    for name in ("save_file", "load_file", "safe_open", "save", "load"):
        found = getattr(importlib.import_module("serdes_ml"), name)
        assert ">>>" in (found.__doc__ or ""), name
