"""Measures the save of a sharded tree and its load onto another mesh, against Orbax, in one run.

    python benches/python/resharding.py [FOLDER...] [--mebibytes N...] [--rounds N] [--busy [both]]

The tree has 8 matrices over a mesh of 4x2 devices of the processor, and is loaded onto one of 2x4:
no shard of one mesh is a shard of the other. Every measure runs in a process of its own, whose
imports and first use of the devices are not timed. Saves take turns, and then loads, forwards in
one round and backwards in the next. Each process touches more memory than it will need, and frees
it, just before it is timed: a virtual machine gets memory from its host at the first touch. Both
packages have their defaults: both sync their files to the disk, and serdes compares checksums. A
load finds its files in the system's cache. With ``--busy`` another process keeps one core busy;
with ``--busy both`` everything is measured without it, and then with it. ``--seconds N`` ends the
rounds of a table early, but not before the second. In a folder in memory, the files take twice the
size of the tree, and a process needs as much again.

The best and the median of each are printed in seconds, with the factors by which serdes is faster
than Orbax, and the time of a load's checksums. A folder in memory (/dev/shm) measures the programs,
one on a disk the disk.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

DEVICES, ARRAYS = 8, 8
# A program that ends when its parent process ends, for any reason.
BUSY = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"


def sharding(rows: int, columns: int) -> Any:
    """Returns a sharding over a mesh of rows and columns of devices."""
    import jax
    import numpy as np

    devices = np.array(jax.devices()[: rows * columns]).reshape(rows, columns)
    mesh = jax.sharding.Mesh(devices, ("x", "y"))
    return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x", "y"))


def shape(mebibytes: int) -> tuple[int, int]:
    """Returns the shape of each matrix."""
    return (mebibytes << 20) // ARRAYS // 4 // 2048, 2048


def tree(mebibytes: int) -> dict[str, Any]:
    """Returns the saved tree: noise, which does not compress."""
    import jax
    import numpy as np

    rows, columns = shape(mebibytes)
    noise = np.random.default_rng(0).random((rows, columns), np.float32)
    where = sharding(4, 2)
    made = {f"layer{n}": jax.device_put(np.roll(noise, n), where) for n in range(ARRAYS)}
    return jax.block_until_ready(made)


def abstract(mebibytes: int) -> dict[str, Any]:
    """Returns the structure of the tree to load, on another mesh."""
    import jax
    import numpy as np

    leaf = jax.ShapeDtypeStruct(shape(mebibytes), np.float32, sharding=sharding(2, 4))
    return {f"layer{number}": leaf for number in range(ARRAYS)}


def save_orbax(at: pathlib.Path, mebibytes: int) -> Callable[[], Any]:
    import orbax.checkpoint as ocp

    given, checkpointer = tree(mebibytes), ocp.StandardCheckpointer()

    def work() -> None:
        checkpointer.save(at, given)
        checkpointer.wait_until_finished()

    return work


def save_serdes(at: pathlib.Path, mebibytes: int) -> Callable[[], Any]:
    from serdes_ml import jax as sdj

    given = tree(mebibytes)
    return lambda: sdj.save(at, given)


def load_orbax(at: pathlib.Path, mebibytes: int) -> Callable[[], Any]:
    import jax
    import orbax.checkpoint as ocp

    like, checkpointer = abstract(mebibytes), ocp.StandardCheckpointer()
    return lambda: jax.block_until_ready(checkpointer.restore(at, like))


def load_serdes(at: pathlib.Path, mebibytes: int) -> Callable[[], Any]:
    import jax
    from serdes_ml import jax as sdj

    like = abstract(mebibytes)
    return lambda: jax.block_until_ready(sdj.load(at, like))


def load_serdes_unverified(at: pathlib.Path, mebibytes: int) -> Callable[[], Any]:
    import jax
    from serdes_ml import jax as sdj

    like = abstract(mebibytes)
    return lambda: jax.block_until_ready(sdj.load(at, like, verify=False))


MEASURES = {
    "save orbax": save_orbax,
    "save serdes": save_serdes,
    "load orbax": load_orbax,
    "load serdes": load_serdes,
    "load serdes, unverified": load_serdes_unverified,
}


def available() -> int:
    """Returns the bytes of memory that Linux reports as available."""
    found = re.search(r"MemAvailable:\s+(\d+) kB", pathlib.Path("/proc/meminfo").read_text())
    return int(found[1]) << 10 if found else 0


def measure(name: str, at: pathlib.Path, mebibytes: int) -> float:
    """Times a measure in this process."""
    import jax
    import numpy as np

    work = MEASURES[name](at, mebibytes)
    touched = np.ones(min(2 * mebibytes << 20, available() // 2), np.uint8)
    del touched
    begin = time.perf_counter()
    kept = work()
    seconds = time.perf_counter() - begin
    if name.startswith("load"):
        rows, columns = shape(mebibytes)
        noise = np.random.default_rng(0).random((rows, columns), np.float32)
        for number in range(ARRAYS):
            assert np.array_equal(jax.device_get(kept[f"layer{number}"]), np.roll(noise, number))
    return seconds


def run(name: str, at: pathlib.Path, mebibytes: int) -> float:
    """Times a measure in a process of its own, forked from one that has only made the imports."""
    context = multiprocessing.get_context("forkserver")
    with context.Pool(1, maxtasksperchild=1) as pool:
        return pool.apply(measure, (name, at, mebibytes))


def remove(at: pathlib.Path) -> None:
    """Removes the files that a save has made."""
    if at.is_dir():
        shutil.rmtree(at)
    else:
        at.unlink(missing_ok=True)


def rounds_of(
    names: Sequence[str], once: Callable[[str], float], rounds: int, seconds: float
) -> dict[str, list[float]]:
    """Returns each measure's seconds per round; starts no further round after ``seconds``."""
    found: dict[str, list[float]] = {name: [] for name in names}
    begin = time.monotonic()
    for number in range(rounds):
        if number > 1 and time.monotonic() - begin > seconds:
            break
        for name in names if number % 2 == 0 else reversed(names):
            os.sync()
            found[name].append(once(name))
    return found


def table(
    place: pathlib.Path, mebibytes: int, rounds: int, seconds: float
) -> dict[str, list[float]]:
    """Returns the seconds of each measure, in each round."""

    def save(name: str) -> float:
        found = run(name, place / "new", mebibytes)
        remove(place / "new")
        return found

    def load(name: str) -> float:
        package = "orbax" if "orbax" in name else "serdes"
        return run(name, place / package, mebibytes)

    saves = [name for name in MEASURES if name.startswith("save")]
    loads = [name for name in MEASURES if name.startswith("load")]
    found = rounds_of(saves, save, rounds, seconds * len(saves) / len(MEASURES))
    for package in ("orbax", "serdes"):
        run(f"save {package}", place / package, mebibytes)
    return {**found, **rounds_of(loads, load, rounds, seconds * len(loads) / len(MEASURES))}


def show(found: dict[str, list[float]]) -> None:
    """Prints a line for each measure."""
    print(f"{'':26} {'best':>8} {'median':>8}   faster than orbax, by the best and the median")
    for name, seconds in found.items():
        best, middle = min(seconds), statistics.median(seconds)
        line = f"{name:26} {best:8.3f} {middle:8.3f}"
        if "serdes" in name:
            theirs = found[f"{name.split()[0]} orbax"]
            line += f"   {min(theirs) / best:.2f}  {statistics.median(theirs) / middle:.2f}"
        print(line)
    verified, plain = found["load serdes"], found["load serdes, unverified"]
    best, middle = (of(verified) - of(plain) for of in (min, statistics.median))
    print(f"{'checksums of a load':26} {best:8.3f} {middle:8.3f}", flush=True)


@contextlib.contextmanager
def one_core_busy(busy: bool) -> Iterator[None]:
    """Keeps one core busy with another process in the meantime, if ``busy``."""
    if not busy:
        yield
        return
    process = subprocess.Popen([sys.executable, "-c", BUSY])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def main() -> None:
    """Measures in each folder, with each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=pathlib.Path)
    parser.add_argument("--mebibytes", type=int, nargs="+", default=[256])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--busy", nargs="?", choices=("yes", "both"), const="yes", default="no")
    arguments = parser.parse_args()
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={DEVICES}"
    os.environ["JAX_PLATFORMS"] = "cpu"
    imports = ["jax", "numpy", "orbax.checkpoint", "serdes_ml.jax"]
    multiprocessing.get_context("forkserver").set_forkserver_preload(imports)
    for folder in arguments.folders or [pathlib.Path(tempfile.gettempdir())]:
        for mebibytes in arguments.mebibytes:
            for busy in {"no": [False], "yes": [True], "both": [False, True]}[arguments.busy]:
                with tempfile.TemporaryDirectory(dir=folder) as place, one_core_busy(busy):
                    at = pathlib.Path(place)
                    found = table(at, mebibytes, arguments.rounds, arguments.seconds)
                rounds = min(len(seconds) for seconds in found.values())
                words = "one core busy" if busy else "quiet"
                print(f"{folder}: {mebibytes} MiB, {words}, {rounds} rounds")
                show(found)


if __name__ == "__main__":
    main()
