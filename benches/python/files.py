"""Measures save and load of 1 GiB in 64 tensors, against safetensors, and against Orbax and
torch.save if they are installed, in one run.

    python benches/python/files.py [FOLDER] [--rounds N] [--only WORD]

Every measure runs in a process of its own. In a shared process the allocator may or may not reuse
the memory of the previous measure without page faults, which changes the speed of a load by a
factor of two; a new process has no such memory, like a program that loads its weights. The measures
take turns, forwards in one round and backwards in the next, so that none always comes first. Each
process touches more memory than it will need, and frees it, just before it is timed: a virtual
machine gets memory from its host at the first touch, which can cost more than the copy. A save
writes to a new name and never over an old file, as removing that would take time; a load finds its
file in the system's cache. Nothing is synced, since safetensors does not; Orbax has its defaults.

The best and the median of each are printed, in seconds and in seconds of the processor, and the
ratios to the peers. A folder in memory (/dev/shm) measures the programs, one on a disk the disk.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

TENSORS = 64
# A smaller size tests this program itself, as the check of docs/comparison.md does.
BYTES = int(os.environ.get("SERDES_BENCH_TENSOR_BYTES", 16 << 20))
TOUCHED = 2 * TENSORS * BYTES

Work = Callable[[], Any]


def tensors() -> dict[str, np.ndarray]:
    """Returns the saved tensors: noise, which does not compress."""
    noise = np.frombuffer(np.random.default_rng(0).bytes(BYTES), np.uint8)
    return {
        f"layer{number:02}": np.roll(noise, number * 4099).view(np.float32)
        for number in range(TENSORS)
    }


def jax_tree() -> dict[str, Any]:
    """Returns the same tensors, on a device of jax."""
    import jax

    tree = {name: jax.device_put(array) for name, array in tensors().items()}
    return jax.block_until_ready(tree)


# Each measure imports and creates what it needs, and returns the function to be timed. `saved` is
# the path of the file to load, `new` a free path.


def save_safetensors(saved: pathlib.Path, new: pathlib.Path) -> Work:
    from safetensors.numpy import save_file

    given = tensors()
    return lambda: save_file(given, new)


def save_serdes(saved: pathlib.Path, new: pathlib.Path) -> Work:
    import serdes_ml as sd

    given = tensors()
    return lambda: sd.save_file(given, new, sync=False)


def save_torch(saved: pathlib.Path, new: pathlib.Path) -> Work:
    import torch

    given = {name: torch.from_numpy(array) for name, array in tensors().items()}
    return lambda: torch.save(given, new)


def save_orbax(saved: pathlib.Path, new: pathlib.Path) -> Work:
    import orbax.checkpoint as ocp

    given, checkpointer = tensors(), ocp.PyTreeCheckpointer()
    return lambda: checkpointer.save(new, given)


def load_safetensors(saved: pathlib.Path, new: pathlib.Path) -> Work:
    from safetensors.numpy import load_file

    return lambda: load_file(saved)


def load_serdes(saved: pathlib.Path, new: pathlib.Path) -> Work:
    import serdes_ml as sd

    return lambda: sd.load_file(saved)


def load_serdes_unverified(saved: pathlib.Path, new: pathlib.Path) -> Work:
    import serdes_ml as sd

    return lambda: sd.load_file(saved, verify=False)


def load_torch(saved: pathlib.Path, new: pathlib.Path) -> Work:
    import torch

    return lambda: torch.load(saved)


def load_orbax(saved: pathlib.Path, new: pathlib.Path) -> Work:
    import orbax.checkpoint as ocp

    checkpointer = ocp.PyTreeCheckpointer()
    return lambda: checkpointer.restore(saved)


def slice_serdes(saved: pathlib.Path, new: pathlib.Path) -> Work:
    import serdes_ml as sd

    def work() -> Any:
        with sd.safe_open(saved) as f:
            return f.get_slice("layer33")[1000 : 1000 + (1 << 18)]

    return work


def async_save_blocks(saved: pathlib.Path, new: pathlib.Path) -> Work:
    import serdes_ml.jax as sdj

    tree = jax_tree()
    # The remaining work is waited for at the end of the process.
    return lambda: sdj.save_async(new, tree, sync=False)


def async_copy_alone(saved: pathlib.Path, new: pathlib.Path) -> Work:
    tree = jax_tree()
    return lambda: [np.array(leaf) for leaf in tree.values()]


SAVERS = {
    "safetensors": save_safetensors,
    "serdes": save_serdes,
    "torch": save_torch,
    "orbax": save_orbax,
}
"""Who makes the file that others of the same name load."""

MEASURES: dict[str, tuple[str, Callable[[pathlib.Path, pathlib.Path], Work]]] = {
    **{f"save {name}": (name, save) for name, save in SAVERS.items()},
    "load safetensors": ("safetensors", load_safetensors),
    "load serdes": ("serdes", load_serdes),
    "load serdes, unverified": ("serdes", load_serdes_unverified),
    "load torch": ("torch", load_torch),
    "load orbax": ("orbax", load_orbax),
    "slice of 1 MiB": ("serdes", slice_serdes),
    "save_async blocks": ("jax", async_save_blocks),
    "copy to the host": ("jax", async_copy_alone),
}
"""The package that a measure needs besides, and what it times."""

MODULES = {
    "safetensors": "safetensors",
    "serdes": "serdes_ml",
    "torch": "torch",
    "orbax": "orbax.checkpoint",
    "jax": "jax",
}


def is_installed(package: str) -> bool:
    """Returns True if the package is installed."""
    try:
        return importlib.util.find_spec(MODULES[package]) is not None
    except ModuleNotFoundError:
        return False


def status(word: str) -> int:
    """Returns a number of bytes that Linux counts for this process."""
    text = pathlib.Path("/proc/self/status").read_text()
    return int(re.search(word + r":\s+(\d+) kB", text)[1]) << 10


def read_so_far() -> int:
    """Returns the number of bytes that this process has read."""
    return int(re.search(r"rchar: (\d+)", pathlib.Path("/proc/self/io").read_text())[1])


def measure(name: str, saved: pathlib.Path, new: pathlib.Path) -> dict[str, float]:
    """Times a measure in this process."""
    if saved.is_file():
        part = bytearray(1 << 20)
        with saved.open("rb", buffering=0) as file:
            while file.readinto(part):
                pass
    work = MEASURES[name][1](saved, new)
    touched = np.ones(TOUCHED, np.uint8)
    del touched
    pathlib.Path("/proc/self/clear_refs").write_text("5")
    memory, read = status("VmRSS"), read_so_far()
    begin, processor = time.perf_counter(), time.process_time()
    kept = work()
    found = {
        "seconds": time.perf_counter() - begin,
        "processor": time.process_time() - processor,
        "read": read_so_far() - read,
        "peak": status("VmHWM") - memory,
    }
    del kept
    return found


def run(name: str, saved: pathlib.Path, new: pathlib.Path) -> dict[str, float]:
    """Times a measure in a process of its own, and removes the files that it made."""
    os.sync()
    command = [sys.executable, __file__, "--measure", name, str(saved), str(new)]
    try:
        output = subprocess.check_output(command, text=True)
    finally:
        shutil.rmtree(new) if new.is_dir() else new.unlink(missing_ok=True)
    found: dict[str, float] = json.loads(output.splitlines()[-1])
    return found


def import_time() -> float:
    """Returns the seconds that the import takes after numpy's own."""
    program = (
        "import time, numpy, ml_dtypes; begin = time.perf_counter();"
        "import serdes_ml; serdes_ml.save_file; print(time.perf_counter() - begin)"
    )
    runs = [subprocess.check_output([sys.executable, "-c", program]) for _ in range(5)]
    return min(float(run) for run in runs)


def show(found: Mapping[str, list[dict[str, float]]]) -> None:
    """Prints a line for each measure."""
    best = {
        name: {key: min(run[key] for run in runs) for key in runs[0]}
        for name, runs in found.items()
        if runs
    }
    print(f"{'':26} {'best':>8} {'median':>8} {'processor':>9}   compared with")
    for name, least in best.items():
        middle = statistics.median(run["seconds"] for run in found[name])
        line = f"{name:26} {least['seconds']:8.4f} {middle:8.4f} {least['processor']:9.4f}"
        for peer in ("safetensors", "orbax", "torch"):
            theirs = best.get(f"{name.split()[0]} {peer}")
            if theirs is not None and "serdes" in name:
                ratio = theirs["seconds"] / least["seconds"]
                median = statistics.median(
                    run["seconds"] for run in found[f"{name.split()[0]} {peer}"]
                )
                line += f"   {peer} {ratio:.2f} (median {median / middle:.2f})"
        print(line)
    if "slice of 1 MiB" in best:
        print(f"bytes read for the slice: {best['slice of 1 MiB']['read']:,.0f}")
    for name in ("save serdes", "load serdes", "load serdes, unverified"):
        if name in best:
            own = TENSORS * BYTES if name.startswith("load") else 0
            beyond = max(run["peak"] for run in found[name]) - own
            print(f"{name}: {beyond / (1 << 20):.1f} MiB at most beyond the arrays")


def main() -> None:
    """Runs all measures of installed packages, or in a child process one measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="only measures with this word in their names")
    parser.add_argument("--measure", nargs=3)
    arguments = parser.parse_args()
    if arguments.measure:
        name, saved, new = arguments.measure
        print(json.dumps(measure(name, pathlib.Path(saved), pathlib.Path(new))))
        return
    names = [
        name
        for name, (package, _) in MEASURES.items()
        if arguments.only in name and is_installed(package)
    ]
    found: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        place = pathlib.Path(folder)
        for package in {
            MEASURES[name][0] for name in names if name.split()[0] in ("load", "slice")
        }:
            SAVERS[package](place, place / package)()
        for number in range(arguments.rounds):
            for name in names if number % 2 == 0 else reversed(names):
                found[name].append(run(name, place / MEASURES[name][0], place / "new"))
    show(found)
    print(f"import: {import_time():.4f} s beside numpy")


if __name__ == "__main__":
    main()
