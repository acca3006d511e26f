"""Tests the features of safetensors, Orbax and torch's checkpoints that docs/comparison.md lists.

python benches/python/features.py

Prints a line per feature for each tool that is installed. Every feature is tested, none taken from
a tool's documentation: a bit of the data is flipped, the process is killed during a save, pickles
are searched for, and the size of a state that compresses to nothing is measured on the disk.
"""

from __future__ import annotations

import importlib.util
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np

TENSOR = np.arange(1 << 20, dtype=np.float32)
ZEROS = np.zeros(1 << 22, dtype=np.float32)
FLIPS = 20


class Safetensors:
    """A file of safetensors."""

    name = "safetensors"

    def save(self, path: pathlib.Path, tensor: np.ndarray) -> None:
        from safetensors.numpy import save_file

        save_file({"w": tensor}, path)

    def load(self, path: pathlib.Path) -> np.ndarray:
        from safetensors.numpy import load_file

        return load_file(path)["w"]


class Orbax:
    """A folder of Orbax's PyTreeCheckpointer."""

    name = "orbax"
    package = "orbax.checkpoint"

    def save(self, path: pathlib.Path, tensor: np.ndarray) -> None:
        import orbax.checkpoint as ocp

        ocp.PyTreeCheckpointer().save(path.absolute(), {"w": tensor}, force=True)

    def load(self, path: pathlib.Path) -> np.ndarray:
        import orbax.checkpoint as ocp

        return np.asarray(ocp.PyTreeCheckpointer().restore(path.absolute())["w"])


class Torch:
    """A folder of torch.distributed.checkpoint, saved by one process."""

    name = "torch"

    def save(self, path: pathlib.Path, tensor: np.ndarray) -> None:
        import torch
        import torch.distributed.checkpoint as dcp

        dcp.save({"w": torch.from_numpy(tensor)}, checkpoint_id=path, no_dist=True)

    def load(self, path: pathlib.Path) -> np.ndarray:
        import torch
        import torch.distributed.checkpoint as dcp

        state = {"w": torch.empty(TENSOR.shape)}
        dcp.load(state, checkpoint_id=path, no_dist=True)
        return state["w"].numpy()


class Serdes:
    """A state of serdes."""

    name = "serdes_ml"

    def save(self, path: pathlib.Path, tensor: np.ndarray) -> None:
        import serdes_ml

        serdes_ml.save_file({"w": tensor}, path)

    def load(self, path: pathlib.Path) -> np.ndarray:
        import serdes_ml

        return serdes_ml.load_file(path)["w"]


TOOLS = {tool.name: tool for tool in (Safetensors(), Orbax(), Torch(), Serdes())}


def files(path: pathlib.Path) -> list[pathlib.Path]:
    """Returns the files at a path, largest first."""
    found = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sorted(found, key=lambda file: -file.stat().st_size)


def silent_flips(tool, folder: pathlib.Path) -> str:
    """Counts the bit flips in the largest file that give wrong numbers without an error."""
    path = folder / "flipped"
    tool.save(path, TENSOR)
    largest = files(path)[0]
    whole, random, silent = largest.read_bytes(), np.random.default_rng(1), 0
    for at in random.integers(len(whole) // 4, 3 * len(whole) // 4, FLIPS):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << int(random.integers(8))
        largest.write_bytes(damaged)
        try:
            silent += not np.array_equal(tool.load(path), TENSOR)
        except BaseException as error:  # torch's CheckpointException is not an Exception
            if isinstance(error, KeyboardInterrupt):
                raise
    return f"{silent} of {FLIPS} flipped bits give wrong numbers without an error"


def killed(tool, folder: pathlib.Path) -> str:
    """Counts the kills during an overwriting save after which no state can be loaded."""
    path, lost = folder / "killed", 0
    for delay in (0.0, 0.002, 0.005, 0.01, 0.02, 0.05):
        tool.save(path, TENSOR)
        program = [sys.executable, __file__, "--overwrite", tool.name, str(path)]
        with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
            assert child.stdout
            child.stdout.readline()
            time.sleep(delay)
            child.send_signal(signal.SIGKILL)
        try:
            loaded = tool.load(path)
            lost += not (np.array_equal(loaded, TENSOR) or np.array_equal(loaded, TENSOR + 1))
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            lost += 1
    return f"{lost} of 6 kills during a save over an older state leave none that loads"


def compressed(tool, folder: pathlib.Path) -> str:
    """Measures the size of a state of zeros."""
    path = folder / "zeros"
    tool.save(path, ZEROS)
    size = sum(file.stat().st_size for file in files(path))
    return f"{ZEROS.nbytes >> 20} MiB of zeros take {size} bytes"


def pickles(tool, folder: pathlib.Path) -> str:
    """Lists the files of a state that are pickles, which run code when they are opened."""
    path = folder / "pickles"
    tool.save(path, TENSOR)
    found = []
    for file in files(path):
        try:
            with file.open("rb") as opened:
                pickle.load(opened)
            found.append(file.name)
        except Exception:
            pass
    return f"files that are pickles: {', '.join(found) or 'none'}"


def overwrite(name: str, path: str) -> None:
    """Overwrites a state repeatedly, until the process is killed."""
    tool = TOOLS[name]
    tool.save(pathlib.Path(path + ".first"), TENSOR)
    print("ready", flush=True)
    while True:
        tool.save(pathlib.Path(path), TENSOR + 1)


def main() -> None:
    """Tests each tool."""
    for tool in TOOLS.values():
        if importlib.util.find_spec(tool.name) is None:
            print(f"{tool.name:12} not installed")
            continue
        with tempfile.TemporaryDirectory(prefix="serdes-features-") as name:
            for feature in (silent_flips, killed, compressed, pickles):
                print(f"{tool.name:12} {feature(tool, pathlib.Path(name))}", flush=True)


if __name__ == "__main__":
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    warnings.simplefilter("ignore")
    if sys.argv[1:2] == ["--overwrite"]:
        overwrite(*sys.argv[2:])
    else:
        main()
