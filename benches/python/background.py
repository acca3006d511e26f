"""Measures the processor time that saves in the background add to the steps of a training.

    python benches/python/background.py [FOLDER] [--mebibytes N...] [--every N] [--rounds N]

A model of matrices is trained on all cores of the processor, with a ``Steps.save_async`` before the
first of each ``--every`` steps. A save costs the training in three ways, which are printed for each
size of the model:

- the training's thread waits while the arrays are copied: the time of the call;
- the processor works on the copy, the checksums and the file: the time of all threads together,
  measured without a training beside it, also as a share of the time of ``--every`` steps;
- save and training slow each other down (caches, memory, the interpreter's lock): stretches of
  ``--every`` steps with and without a save take turns, and the median of the differences of their
  pairs is printed with its quartiles. If these are wide, other load hides the difference.

Other load on the machine disturbs processor seconds least. If the steps run on an accelerator, only
the first of the three costs delays them.
"""

from __future__ import annotations

import argparse
import pathlib
import statistics
import tempfile
import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from serdes_ml import jax as sdj

WIDTH = 1024


class Save(NamedTuple):
    """Times of a save by itself, in seconds."""

    blocked: float
    own_thread: float
    all_threads: float


def model(mebibytes: int) -> list[Any]:
    """Returns matrices of 4 MiB."""
    keys = jax.random.split(jax.random.key(0), mebibytes // 4)
    return [jax.random.normal(key, (WIDTH, WIDTH)) / WIDTH**0.5 for key in keys]


@jax.jit
def step(layers: list[Any], x: Any) -> list[Any]:
    """Runs one step of gradient descent."""

    def loss(layers: list[Any]) -> Any:
        y = x
        for layer in layers:
            y = jnp.tanh(y @ layer)
        return jnp.mean((y - x) ** 2)

    return jax.tree.map(lambda w, g: w - 0.01 * g, layers, jax.grad(loss)(layers))


def save_alone(steps: sdj.Steps, layers: list[Any]) -> Save:
    """Times a save without a training beside it."""
    clock, thread, process = time.perf_counter(), time.thread_time(), time.process_time()
    future = steps.save_async(0, layers)
    blocked, own = time.perf_counter() - clock, time.thread_time() - thread
    future.result()
    return Save(blocked, own, time.process_time() - process)


def train(steps: sdj.Steps, layers: list[Any], count: int, saves: bool) -> float:
    """Returns the processor seconds of `count` steps, with or without a save beside them."""
    x = jax.random.normal(jax.random.key(1), (256, WIDTH))
    begin = time.process_time()
    future = steps.save_async(0, layers) if saves else None
    for _ in range(count):
        layers = jax.block_until_ready(step(layers, x))
    if future is not None:
        future.result()
    return time.process_time() - begin


def measure(folder: pathlib.Path, mebibytes: int, every: int, rounds: int) -> None:
    """Measures with a model of the given size, and prints."""
    layers = jax.block_until_ready(model(mebibytes))
    with sdj.Steps(folder) as steps:
        for saves in (False, True):
            train(steps, layers, 2, saves)
        alone = [save_alone(steps, layers) for _ in range(3 * rounds)]
        plain, added = [], []
        for number in range(rounds):
            order = (False, True) if number % 2 == 0 else (True, False)
            found = {saves: train(steps, layers, every, saves) for saves in order}
            plain.append(found[False])
            added.append(found[True] / found[False] - 1)
    save = Save(*(statistics.median(values) for values in zip(*alone, strict=True)))
    stretch = statistics.median(plain)
    low, middle, high = statistics.quantiles(added, n=4) if rounds > 1 else added * 3
    print(
        f"{mebibytes:4} MiB  step {stretch / every * 1000:8.2f} ms"
        f"  call {save.blocked * 1000:7.2f} ms ({save.own_thread * 1000:.2f} of the processor)"
        f"  save {save.all_threads * 1000:7.2f} ms = {save.all_threads / stretch:.2%}"
        f"  beside {middle:+.2%} ({low:+.2%} to {high:+.2%})",
        flush=True,
    )


def main() -> None:
    """Measures each size of the model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--mebibytes", type=int, nargs="+", default=[16, 64, 256])
    parser.add_argument("--every", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    print(f"a save each {asked.every} steps, {asked.rounds} rounds; medians of processor time")
    for mebibytes in asked.mebibytes:
        with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
            measure(pathlib.Path(folder), mebibytes, asked.every, asked.rounds)


if __name__ == "__main__":
    main()
