"""The time that saves in the background add to the steps of a training.

    python benches/python/background.py [FOLDER] [--mebibytes N] [--steps N] [--every N]

A model of matrices is trained on the processor, all cores of it, with and without a
``Steps.save_async`` each ``--every`` steps; the two take turns. Printed are the time that a save
keeps the training from going on (the copy of the arrays), and what it adds to an average step: in
seconds of the clock, and in seconds of the processor, which other work on the machine disturbs
less. On an accelerator the processor's time is not the step's.
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


class Run(NamedTuple):
    """What a training took."""

    clock: float
    processor: float
    blocked: list[float]


def model(mebibytes: int) -> list[Any]:
    """Matrices of 4 MiB."""
    keys = jax.random.split(jax.random.key(0), mebibytes // 4)
    return [jax.random.normal(key, (WIDTH, WIDTH)) / WIDTH**0.5 for key in keys]


@jax.jit
def step(layers: list[Any], x: Any) -> list[Any]:
    """One of gradient descent."""

    def loss(layers: list[Any]) -> Any:
        y = x
        for layer in layers:
            y = jnp.tanh(y @ layer)
        return jnp.mean((y - x) ** 2)

    return jax.tree.map(lambda w, g: w - 0.01 * g, layers, jax.grad(loss)(layers))


def train(folder: pathlib.Path, mebibytes: int, count: int, every: int | None) -> Run:
    """So many steps, with a save each ``every`` of them."""
    layers, x = model(mebibytes), jax.random.normal(jax.random.key(1), (256, WIDTH))
    layers = jax.block_until_ready(step(layers, x))
    blocked: list[float] = []
    with sdj.Steps(folder, keep=1) as steps:
        clock, processor = time.perf_counter(), time.process_time()
        for number in range(1, count + 1):
            layers = jax.block_until_ready(step(layers, x))
            if every is not None and number % every == 0:
                begin = time.perf_counter()
                steps.save_async(number, layers)
                blocked.append(time.perf_counter() - begin)
    # The end of the last save is the training's own.
    return Run(time.perf_counter() - clock, time.process_time() - processor, blocked)


def main() -> None:
    """Measure in turns, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--mebibytes", type=int, default=64)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--every", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    without: list[Run] = []
    with_saves: list[Run] = []
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        train(pathlib.Path(folder), asked.mebibytes, 2, 1)
        for number in range(asked.rounds):
            order = [(without, None), (with_saves, asked.every)]
            for found, every in order if number % 2 == 0 else reversed(order):
                found.append(train(pathlib.Path(folder), asked.mebibytes, asked.steps, every))
    blocked = [seconds for run in with_saves for seconds in run.blocked]
    print(f"{asked.mebibytes} MiB, a save each {asked.every} steps, {asked.rounds} rounds")
    print(f"a save keeps the training for {statistics.median(blocked) * 1000:.1f} ms")
    for word, index in (("clock", 0), ("processor", 1)):
        plain, saving = (
            statistics.median(run[index] for run in runs) / asked.steps
            for runs in (without, with_saves)
        )
        print(
            f"{word:9} a step {plain * 1000:.2f} ms, with saves {saving * 1000:.2f} ms"
            f" ({(saving / plain - 1) * 100:+.2f} %)"
        )


if __name__ == "__main__":
    main()
