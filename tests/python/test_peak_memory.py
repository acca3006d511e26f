"""Peak memory of each way of saving, besides the given arrays."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import numpy as np
import pytest
import serdes_ml as sd

MIB = 1 << 20

pytestmark = pytest.mark.skipif(
    not pathlib.Path("/proc/self/clear_refs").exists(), reason="only Linux tells peaks"
)

PROLOGUE = """
import pathlib, re, sys, numpy as np, serdes_ml as sd

def memory(word):
    status = pathlib.Path("/proc/self/status").read_text()
    return int(re.search(word + r":\\s+(\\d+) kB", status)[1]) << 10

def peak(work):
    pathlib.Path("/proc/self/clear_refs").write_text("5")
    before = memory("VmRSS")
    kept = work()
    print(memory("VmHWM") - before)
    return kept

path = sys.argv[1]
arrays = {str(n): np.full(8 << 20, n, np.float32) for n in range(6)}
small = {"warm": np.ones(1 << 10, np.float32)}
"""

SIZE = 6 * 32 * MIB


def peaks(program: str, path: pathlib.Path) -> list[int]:
    """Runs a program; returns the numbers that it prints."""
    output = subprocess.check_output([sys.executable, "-c", PROLOGUE + program, str(path)])
    return [int(line) for line in output.split()]


def test_bytes_of_a_state_are_held_once(path: pathlib.Path) -> None:
    program = """
sd.save(small)
data = peak(lambda: sd.save(arrays))
again = peak(lambda: sd.save(arrays))
assert data == again
"""
    for found in peaks(program, path):
        # Earlier memory that is returned to the system meanwhile makes a peak look smaller: by up
        # to 1.4 MiB so far.
        assert SIZE - 8 * MIB <= found <= SIZE + 64 * MIB


def test_a_save_of_jax_copies_no_array(path: pathlib.Path) -> None:
    pytest.importorskip("jax")
    program = """
import jax, serdes_ml.jax as sdj

arrays = {name: jax.device_put(array) for name, array in arrays.items()}
jax.block_until_ready(arrays)
sdj.save(path, small, sync=False)
peak(lambda: sdj.save(path, arrays, sync=False))
"""
    for found in peaks(program, path):
        assert found <= 64 * MIB


def test_a_save_of_torch_copies_no_tensor(path: pathlib.Path) -> None:
    pytest.importorskip("torch")
    program = """
import torch, serdes_ml.torch as sdt

arrays = {name: torch.from_numpy(array) for name, array in arrays.items()}
sdt.save_file({"warm": torch.ones(1 << 10)}, path)
peak(lambda: sdt.save_file(arrays, path))
"""
    for found in peaks(program, path):
        assert found <= 64 * MIB


@pytest.mark.parametrize("length", [0, 1, 1000, MIB - 1, MIB, 3 * MIB + 7])
def test_bytes_are_those_of_the_file(path: pathlib.Path, length: int) -> None:
    tensors = {
        "w": np.arange(length, dtype=np.uint8),
        "words": np.array(["", "a", "long" * 100]),
        "scalar": np.float64(3),
    }
    sd.save_file(tensors, path, metadata={"step": "7"}, sync=False)
    assert sd.save(tensors, metadata={"step": "7"}) == path.read_bytes()


def test_a_save_into_bytes_that_is_stopped_raises(path: pathlib.Path) -> None:
    def stop(done: int, total: int) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        sd.save({"w": np.zeros(16 * MIB, np.uint8)}, progress=stop)


def test_a_background_save_returns_when_the_arrays_may_change(path: pathlib.Path) -> None:
    jax = pytest.importorskip("jax")
    sdj = pytest.importorskip("serdes_ml.jax")
    own = np.zeros(16 * MIB, np.float32)
    # On CPUs jax may use the array's memory without a copy.
    tree = {"w": jax.device_put(own)}
    before = np.array(tree["w"])
    future = sdj.save_async(path, tree, sync=False)
    own[:] = 1
    future.result(60)
    assert np.array_equal(sd.load_file(path)["w"], before)
