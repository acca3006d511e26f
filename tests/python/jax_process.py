"""One of several processes of jax.distributed; runs an action for the tests.

    python jax_process.py PORT COUNT INDEX DEVICES ACTION JSON

It prints one line of JSON after the word `found`: its result, or the exception that it raised.
"""

from __future__ import annotations

import json
import os
import pathlib
import resource
import signal
import sys
from collections.abc import Callable
from typing import Any

port, count, index, devices = (int(argument) for argument in sys.argv[1:5])
asked = json.loads(sys.argv[6])
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={devices // count}"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax  # noqa: E402
import numpy as np  # noqa: E402

if count > 1:
    jax.distributed.initialize(f"127.0.0.1:{port}", count, index)

from jax.sharding import Mesh, NamedSharding, PartitionSpec  # noqa: E402
from serdes_ml import _native  # noqa: E402
from serdes_ml import jax as sdj  # noqa: E402

ROWS, COLUMNS = asked.get("shape", [16, 24])
SPECS = {
    "both": PartitionSpec("x", "y"),
    "columns": PartitionSpec(None, "x"),
    "copies": PartitionSpec(),
    "pairs": PartitionSpec(("x", "y")),
    "rows": PartitionSpec("x"),
    "swapped": PartitionSpec("y", "x"),
}
LEAVES = asked.get("leaves", list(SPECS))


def sharding(name: str) -> NamedSharding:
    """Returns the sharding of a leaf over all devices of the job, in rows of at most two."""
    columns = 2 if devices > 1 else 1
    mesh = Mesh(np.array(jax.devices()).reshape(-1, columns), ("x", "y"))
    return NamedSharding(mesh, SPECS[name])


def values(name: str, step: int) -> Any:
    """Returns a leaf's bits at a step: different in each leaf, step and place, with NaNs."""
    first = np.uint64(list(SPECS).index(name) * 1_000_003 + step * 7919)
    numbers = np.arange(ROWS * COLUMNS, dtype=np.uint64) * np.uint64(2654435761) + first
    return numbers.astype(np.uint32).reshape(ROWS, COLUMNS)


def tree(step: int) -> dict[str, Any]:
    """Returns the tree of a step."""
    found: dict[str, Any] = {"step": step}
    for name in LEAVES:
        whole = values(name, step).view(np.float32)

        def part(index: Any, whole: Any = whole) -> Any:
            return whole[index]

        found[name] = jax.make_array_from_callback(whole.shape, sharding(name), part)
    return found


def like() -> dict[str, Any]:
    """Returns the structure of the tree to load."""
    shape = (ROWS, COLUMNS)
    arrays = {
        name: jax.ShapeDtypeStruct(shape, np.float32, sharding=sharding(name)) for name in LEAVES
    }
    return {"step": 0, **arrays}


def compare(loaded: dict[str, Any]) -> int:
    """Compares this process's shards bit for bit; returns their bytes, each shard once."""
    own: dict[Any, int] = {}
    for name in LEAVES:
        whole = values(name, loaded["step"])
        for shard in loaded[name].addressable_shards:
            bits = np.asarray(shard.data).view(np.uint32)
            np.testing.assert_array_equal(bits, whole[shard.index])
            bounds = [one.indices(n)[:2] for one, n in zip(shard.index, whole.shape, strict=True)]
            own[(name, *bounds)] = bits.nbytes
    return sum(own.values())


class Native:
    """The extension, with one function replaced."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        setattr(self, name, function)

    def __getattr__(self, name: str) -> Any:
        return getattr(_native, name)


class Counting:
    """The reader of a state, which counts the bytes that it reads."""

    counted = 0

    def __init__(self, reader: Any) -> None:
        self._reader = reader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)

    def read_parts(self, *arguments: Any) -> None:
        Counting.counted += self._reader.read_parts(*arguments)


def asked_of_system() -> int:
    """Returns the number of bytes that this process has requested from the system."""
    lines = pathlib.Path("/proc/self/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["rchar"])


def save() -> dict[str, Any]:
    """Saves a tree, in this thread or in the background."""
    given = asked["path"], tree(asked.get("step", 0))
    if asked.get("background"):
        sdj.save_async(*given, timeout=60).result()
    else:
        sdj.save(*given, timeout=60)
    return {}


def load() -> dict[str, Any]:
    """Loads states, and counts the bytes that are read."""
    found = {}
    plain = sdj.State.open
    for path in asked["paths"]:
        # The first load of all reads more than the state.
        sdj.load(path, {"step": 0})

        def counting(path: Any) -> Any:
            state = plain(path)
            state.reader = Counting(state.reader)
            return state

        sdj.State.open = counting
        Counting.counted, before = 0, asked_of_system()
        loaded = sdj.load(path, like(), verify=asked.get("verify", True))
        read = asked_of_system() - before
        sdj.State.open = plain
        own = compare(loaded)
        found[path] = {"own": own, "counted": Counting.counted, "read": read}
    return found


def die(*_: Any) -> None:
    """Kills this process at once."""
    os.kill(os.getpid(), signal.SIGKILL)


def die_behind(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that calls the given one and then kills this process."""

    def both(*arguments: Any) -> None:
        function(*arguments)
        die()

    return both


def no_more_than(size: int, deadly: bool) -> None:
    """Limits the size of files: a larger write kills this process, or fails."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL if deadly else signal.SIG_IGN)


def attempt() -> dict[str, Any]:
    """Saves while one of the processes, the victim, dies or fails."""
    given, when = tree(asked["step"]), asked["when"]
    if index == asked["victim"]:
        if when == "before":
            die()
        elif when == "written":
            sdj._native = Native("save", die_behind(_native.save))
        elif when == "merging":
            sdj._native = Native("merge", die)
        elif when == "merged":
            sdj._native = Native("merge", die_behind(_native.merge))
        elif when == "full":
            no_more_than(asked["byte"], deadly=False)
        elif when == "byte":
            no_more_than(asked["byte"], deadly=True)
        else:
            raise ValueError(when)
    try:
        sdj.save(asked["path"], given, timeout=asked["timeout"])
    except Exception as error:
        number = getattr(error, "errno", None)
        return {"raised": type(error).__name__, "said": str(error), "errno": number}
    return {"raised": None, "said": None, "errno": None}


ACTIONS = {"save": save, "load": load, "attempt": attempt}
print("found", json.dumps(ACTIONS[sys.argv[5]]()), flush=True)
if asked.get("leave"):
    # Skips the shutdown of jax.distributed, which waits for processes that have died.
    os._exit(0)
