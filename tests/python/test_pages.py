"""Runs the examples of the page for users of other packages."""

from __future__ import annotations

import ast
import doctest
import importlib.util
import re

import pytest
from conftest import REPOSITORY

PAGE = REPOSITORY / "docs" / "python.md"
BLOCKS = [
    block
    for block in re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    if block.startswith(">>> ")
]


def imported(block: str) -> set[str]:
    """Returns the packages that a block imports."""
    source = "".join(example.source for example in doctest.DocTestParser().get_examples(block))
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found.update(name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").partition(".")[0])
            # Modules of this package need the framework of their name.
            found.update({"jax", "torch"} & {name.name for name in node.names})
    return found


@pytest.mark.parametrize("number", range(len(BLOCKS)))
@pytest.mark.filterwarnings("ignore")
def test_the_page_says_what_happens(number: int) -> None:
    block = BLOCKS[number]
    for name in sorted(imported(block)):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed here")
    test = doctest.DocTestParser().get_doctest(block, {}, f"{PAGE.name}[{number}]", None, 0)
    said: list[str] = []
    ran = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=said.append)
    assert ran.attempted > 0
    assert ran.failed == 0, "".join(said)


def test_the_page_has_a_task_of_each_of_its_peers() -> None:
    packages = set().union(*map(imported, BLOCKS))
    assert {"safetensors", "orbax", "torch"} <= packages
