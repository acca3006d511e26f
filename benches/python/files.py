"""Save and load of 1 GiB in 64 tensors, against safetensors, and against Orbax and torch.save where
they are installed, in one run.

    python benches/python/files.py [FOLDER]

Each is done in turns, several times, in the same folder, without syncing (safetensors does not);
what is printed is the best of each and how they compare, in time and in time of the processor,
which says more on a machine that is not quiet. A folder in memory (/dev/shm) measures
the programs, one on a disk the disk.
"""

from __future__ import annotations

import contextlib
import pathlib
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import serdes_ml as sd

TENSORS, BYTES, ROUNDS = 64, 16 << 20, 5


Times = dict[str, tuple[float, float]]
"""Seconds, and seconds of the processor."""


def best(work: dict[str, Callable[[], Any]]) -> Times:
    """The fastest round of each."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in work}
    for _ in range(ROUNDS):
        for name, one in work.items():
            begin, processor = time.perf_counter(), time.process_time()
            result = one()
            times[name].append((time.perf_counter() - begin, time.process_time() - processor))
            del result
    return {
        name: (min(one[0] for one in found), min(one[1] for one in found))
        for name, found in times.items()
    }


def others(tensors: dict[str, Any], folder: pathlib.Path) -> Times:
    """What Orbax and torch take, where they are installed."""
    work: dict[str, Callable[[], Any]] = {}
    with contextlib.suppress(ImportError):
        import orbax.checkpoint as ocp

        checkpointer = ocp.PyTreeCheckpointer()
        work["save orbax"] = lambda: checkpointer.save(folder / "orbax", tensors, force=True)
        work["load orbax"] = lambda: checkpointer.restore(folder / "orbax")
    with contextlib.suppress(ImportError):
        import torch

        tree = {name: torch.from_numpy(array) for name, array in tensors.items()}
        work["save torch"] = lambda: torch.save(tree, folder / "a.pt")
        work["load torch"] = lambda: torch.load(folder / "a.pt")
    return best(work)


def import_time() -> float:
    """Seconds that the import takes beside numpy's own."""
    program = (
        "import time, numpy, ml_dtypes; begin = time.perf_counter();"
        "import serdes_ml; serdes_ml.save_file; print(time.perf_counter() - begin)"
    )
    runs = [subprocess.check_output([sys.executable, "-c", program]) for _ in range(ROUNDS)]
    return min(float(run) for run in runs)


def main() -> None:
    """Print a line for each measure."""
    from safetensors.numpy import load_file, save_file

    random = np.random.default_rng(0)
    tensors = {
        f"layer{number:02}": random.integers(0, 255, BYTES, np.uint8).view(np.float32)
        for number in range(TENSORS)
    }
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as folder:
        ours, theirs = pathlib.Path(folder) / "a.sds", pathlib.Path(folder) / "a.safetensors"
        times = best(
            {
                "save safetensors": lambda: save_file(tensors, theirs),
                "save serdes": lambda: sd.save_file(tensors, ours, sync=False),
            }
        )
        times |= best(
            {
                "load safetensors": lambda: load_file(theirs),
                "load serdes": lambda: sd.load_file(ours),
                "load serdes, unverified": lambda: sd.load_file(ours, verify=False),
            }
        )
        with sd.safe_open(ours) as f:
            times |= best({"slice of 1 MiB": lambda: f.get_slice("layer33")[: 1 << 18]})
        times |= others(tensors, pathlib.Path(folder))
    for name, (seconds, processor) in times.items():
        peer = times.get(f"{name.split()[0]} safetensors")
        compared = ""
        if peer is not None:
            ratios = peer[0] / seconds, peer[1] / max(processor, 1e-9)
            compared = f"  {ratios[0]:5.2f} of safetensors ({ratios[1]:5.2f})"
        print(f"{name:26} {seconds:8.4f} s {processor:8.4f} s{compared}")
    print(f"{'import':26} {import_time():8.4f} s beside numpy")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(f"{'peak memory':26} {peak:8} MiB")


if __name__ == "__main__":
    main()
