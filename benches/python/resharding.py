"""Save of a sharded tree and load of it onto another mesh, against Orbax, in one run.

    python benches/python/resharding.py [FOLDER...] [--mebibytes N] [--rounds N] [--busy]

The tree has 8 matrices over a mesh of 4x2 devices of the processor, and is loaded onto one of 2x4:
no shard of the one is a shard of the other. Every measure is a process of its own, whose imports
and first use of the devices are not timed. What is measured takes turns, forwards in one round and
backwards in the next. Each process touches more memory than it will need, and frees it, just before
it is timed: a virtual machine gets memory from its host when it is touched first. Both packages do
what they do by themselves: both take what they wrote to the disk, and serdes compares checksums. A
load finds its files in the system's cache. With ``--busy`` another process keeps one core.

Printed are the best and the median of each, in seconds, and how often faster than Orbax we are by
them. A folder in memory (/dev/shm) measures the programs, one on a disk the disk.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

DEVICES, ARRAYS = 8, 8
# It ends with the process that started it, however that ends.
BUSY = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"


def sharding(rows: int, columns: int) -> Any:
    """Over a mesh of this many devices."""
    import jax
    import numpy as np

    devices = np.array(jax.devices()[: rows * columns]).reshape(rows, columns)
    mesh = jax.sharding.Mesh(devices, ("x", "y"))
    return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x", "y"))


def shape(mebibytes: int) -> tuple[int, int]:
    """The shape of each matrix."""
    return (mebibytes << 20) // ARRAYS // 4 // 2048, 2048


def tree(mebibytes: int) -> dict[str, Any]:
    """What is saved: noise, which nobody can compress."""
    import jax
    import numpy as np

    rows, columns = shape(mebibytes)
    noise = np.random.default_rng(0).random((rows, columns), np.float32)
    where = sharding(4, 2)
    made = {f"layer{n}": jax.device_put(np.roll(noise, n), where) for n in range(ARRAYS)}
    return jax.block_until_ready(made)


def abstract(mebibytes: int) -> dict[str, Any]:
    """What is loaded, on another mesh."""
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


def measure(name: str, at: pathlib.Path, mebibytes: int) -> float:
    """Time it, here and now."""
    import jax
    import numpy as np

    work = MEASURES[name](at, mebibytes)
    touched = np.ones(2 * mebibytes << 20, np.uint8)
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
    """Time it in a process of its own."""
    words = [sys.executable, __file__, "--measure", name, str(at), "--mebibytes", str(mebibytes)]
    flags = f"--xla_force_host_platform_device_count={DEVICES}"
    environment = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    output = subprocess.run(words, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return float(json.loads(output.stdout.splitlines()[-1]))


def remove(at: pathlib.Path) -> None:
    """Remove what a save has made."""
    if at.is_dir():
        shutil.rmtree(at)
    else:
        at.unlink(missing_ok=True)


def rounds_in(place: pathlib.Path, mebibytes: int, rounds: int) -> dict[str, list[float]]:
    """The seconds of each measure, in each round."""
    found: dict[str, list[float]] = {name: [] for name in MEASURES}
    for package in ("orbax", "serdes"):
        run(f"save {package}", place / package, mebibytes)
    for number in range(rounds):
        for name in MEASURES if number % 2 == 0 else reversed(MEASURES):
            os.sync()
            if name.startswith("load"):
                package = "orbax" if "orbax" in name else "serdes"
                found[name].append(run(name, place / package, mebibytes))
            else:
                found[name].append(run(name, place / "new", mebibytes))
                remove(place / "new")
    return found


def show(found: dict[str, list[float]]) -> None:
    """Print a line for each measure."""
    print(f"{'':26} {'best':>8} {'median':>8}   faster than orbax, by the best and the median")
    for name, seconds in found.items():
        best, middle = min(seconds), statistics.median(seconds)
        line = f"{name:26} {best:8.3f} {middle:8.3f}"
        if "serdes" in name:
            theirs = found[f"{name.split()[0]} orbax"]
            line += f"   {min(theirs) / best:.2f}  {statistics.median(theirs) / middle:.2f}"
        print(line, flush=True)


def main() -> None:
    """Measure in each folder, or as a child of that, one thing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=pathlib.Path)
    parser.add_argument("--mebibytes", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--busy", action="store_true", help="one core has other work")
    parser.add_argument("--measure", nargs=2)
    arguments = parser.parse_args()
    if arguments.measure:
        name, at = arguments.measure
        print(json.dumps(measure(name, pathlib.Path(at), arguments.mebibytes)))
        return
    busy = subprocess.Popen([sys.executable, "-c", BUSY]) if arguments.busy else None
    try:
        for folder in arguments.folders or [pathlib.Path(tempfile.gettempdir())]:
            with tempfile.TemporaryDirectory(dir=folder) as place:
                found = rounds_in(pathlib.Path(place), arguments.mebibytes, arguments.rounds)
            print(f"{folder}: {arguments.mebibytes} MiB, {'busy' if busy else 'quiet'}")
            show(found)
    finally:
        if busy is not None:
            busy.kill()
            busy.wait()


if __name__ == "__main__":
    main()
