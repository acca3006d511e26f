"""What a checker of types refuses, and what it takes."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

import pytest

pytest.importorskip("mypy")

# Lines that mypy is to refuse say the code of the error.
PROGRAM = """
import numpy as np
import serdes_ml as sd

array = np.ones(2)
sd.save_file({"w": array, "b": np.float32(1)}, "a.sds", serdes_version="week-4-old")
sd.save_file({"w": memoryview(b"x"), "b": b"x"}, "a.sds", serdes_version=5)
sd.save_file({"w": array}, "a.sds", serdes_version="weekly")  # arg-type
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
"""


def test_mypy_refuses_what_cannot_be_right(tmp_path: pathlib.Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = ["-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", str(tmp_path)]
    ran = subprocess.run(
        [sys.executable, *command, str(program)], capture_output=True, text=True, cwd=tmp_path
    )
    found = re.findall(r"^program\.py:(\d+): error: .*\[([a-z-]+)\]$", ran.stdout, re.MULTILINE)
    lines = enumerate(PROGRAM.splitlines(), 1)
    expected = [(str(number), line.partition("# ")[2]) for number, line in lines if "  # " in line]
    assert found == expected, ran.stdout + ran.stderr
