"""Costs of a save, a load and a slice in memory and in bytes that are read."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import numpy as np
import pytest
import serdes_ml as sd

MIB = 1 << 20

pytestmark = pytest.mark.skipif(
    not pathlib.Path("/proc/self/io").exists(), reason="counts what Linux counts"
)


def read_so_far() -> int:
    """Returns the number of bytes that this process has read."""
    lines = pathlib.Path("/proc/self/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["rchar"])


def test_a_slice_reads_little_more_than_itself(path: pathlib.Path) -> None:
    columns = 256
    rows = 128 * MIB // (columns * 4)
    array = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)
    sd.save_file({"w": array}, path, sync=False)
    with sd.safe_open(path) as f:
        part = f.get_slice("w")
        before = read_so_far()
        # The slice begins and ends inside chunks.
        found = part[1000 : 1000 + MIB // (columns * 4), :]
        assert read_so_far() - before <= 4 * MIB
    assert np.array_equal(found, array[1000 : 1000 + MIB // (columns * 4)])


PROGRAM = """
import pathlib, re, sys, numpy as np, serdes_ml as sd

def memory(word):
    status = pathlib.Path("/proc/self/status").read_text()
    return int(re.search(word + r":\\s+(\\d+) kB", status)[1]) << 10

def peak(work):
    pathlib.Path("/proc/self/clear_refs").write_text("5")
    before = memory("VmRSS")
    kept = work()
    return memory("VmHWM") - before

path = sys.argv[1]
arrays = {str(n): np.full(8 << 20, n, np.float32) for n in range(6)}
size = sum(array.nbytes for array in arrays.values())
sd.save_file({"warm": np.ones(1 << 20)}, path, sync=False)
sd.load_file(path)
print(peak(lambda: sd.save_file(arrays, path, sync=False)))
del arrays
print(peak(lambda: sd.load_file(path)) - size)
print(peak(lambda: sd.load_file(path, verify=False)) - size)
target = path + ".safetensors"
print(peak(lambda: sd.convert(path, target)))
"""


def test_memory_beyond_the_arrays_is_bounded(path: pathlib.Path) -> None:
    if not pathlib.Path("/proc/self/clear_refs").exists():
        pytest.skip("this Linux does not tell peaks")
    output = subprocess.check_output([sys.executable, "-c", PROGRAM, str(path)], text=True)
    for beyond in map(int, output.split()):
        assert beyond <= 64 * MIB, output
