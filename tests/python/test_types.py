"""Programs that a type checker refuses, and programs that it accepts."""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
import sys

import pytest

# Lines that a checker must refuse have the code of mypy's error.
PROGRAM = """
import numpy as np
import serdes_ml as sd
from serdes_ml import jax as sdj, torch as sdt
from serdes_ml.orbax import SerdesHandler

array = np.ones(2)
sd.save_file({"w": array, "b": np.float32(1)}, "a.sds", serdes_version="week-4-old")
sd.save_file({"w": memoryview(b"x"), "b": b"x"}, "a.sds", serdes_version=5)
sd.save_file({"w": array}, "a.sds", serdes_version="weekly")  # arg-type
sd.save({"w": array}, serdes_version="weekly")  # arg-type
sd.save_file({"w": 3}, "a.sds")  # dict-item
sd.save_file({"w": [1.0]}, "a.sds")  # dict-item
sd.save({"w": "text"})  # dict-item
sd.load_file("a.sds")["w"].reshape(1, 2)
sd.load_file("a.sds", framework="jax")["w"].anything
sd.load_file("a.sds", leaves=True)["step"].anything
sd.load_file("a.sds")["w"].anything  # attr-defined
sd.load_file("a.sds", framework="tensorflow")  # call-overload
sd.safe_open("a.sds", framework="tensorflow")  # arg-type
sd.check("model", loader="fast")  # arg-type
sd.convert("a.npz", "a.sds", serdes_version="old")  # arg-type
sd.fits("a.sds", only=3)  # arg-type
sd.fits("a.sds").rows[0].needed.anything
sd.fits("a.sds").okay  # attr-defined
sdj.save("a.sds", {}, serdes_version="minimum")
sdj.save("a.sds", {}, serdes_version="weekly")  # arg-type
sdj.save_async("a.sds", {}, serdes_version="weekly")  # arg-type
sdj.Steps("run", mode="least")  # arg-type
sdj.Steps("run").save(1, {}, serdes_version="weekly")  # arg-type
sdj.Steps("run").save_async(1, {}, serdes_version="weekly")  # arg-type
sdj.connect("localhost:1", token=b"x")  # arg-type
sdt.save_file({}, "a.sds", serdes_version="weekly")  # arg-type
SerdesHandler(serdes_version="weekly")  # arg-type
try:
    pass
except sd.TreeMismatch as error:
    error.mismatches[0].near
"""

REFUSED = [number for number, line in enumerate(PROGRAM.splitlines(), 1) if "  # " in line]


@pytest.fixture
def program(tmp_path: pathlib.Path) -> pathlib.Path:
    """Writes the program into a folder of its own."""
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def test_mypy_refuses_what_cannot_be_right(program: pathlib.Path) -> None:
    pytest.importorskip("mypy")
    folder = program.parent
    command = ["-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", str(folder)]
    ran = subprocess.run(
        [sys.executable, *command, str(program)], capture_output=True, text=True, cwd=folder
    )
    found = re.findall(r"^program\.py:(\d+): error: .*\[([a-z-]+)\]$", ran.stdout, re.MULTILINE)
    lines = enumerate(PROGRAM.splitlines(), 1)
    expected = [(str(number), line.partition("# ")[2]) for number, line in lines if "  # " in line]
    assert found == expected, ran.stdout + ran.stderr


def test_pyright_refuses_the_same(program: pathlib.Path) -> None:
    pytest.importorskip("pyright")
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
    ran = subprocess.run([*command, str(program)], capture_output=True, text=True)
    found = json.loads(ran.stdout)["generalDiagnostics"]
    errors = [one for one in found if one["severity"] == "error"]
    lines = sorted({one["range"]["start"]["line"] + 1 for one in errors})
    assert lines == REFUSED, errors
