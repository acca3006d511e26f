"""States of the steps of a run: their retention, and the files that a killed process leaves."""

from __future__ import annotations

import fcntl
import os
import pathlib
import random
import signal
import subprocess
import sys
import time
import warnings
from typing import Any

import pytest
import serdes_ml as sd

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
pytest.importorskip("jax")

import jax.numpy as jnp
from serdes_ml import jax as sdj

TREE = {"w": jnp.ones(2)}


def damage(path: pathlib.Path | str) -> None:
    """Changes a byte of the data of a state."""
    file = pathlib.Path(path)
    data = bytearray(file.read_bytes())
    at = data.index(b"\x00\x00\x80\x3f" * 2)
    data[at] ^= 1
    file.write_bytes(data)


def test_latest_valid_passes_over_what_is_damaged(tmp_path: pathlib.Path) -> None:
    steps = sdj.Steps(tmp_path / "run")
    assert steps.latest(valid=True) is None
    for step in (1, 2, 3):
        steps.save(step, TREE)
    damage(steps.path(3))
    pathlib.Path(steps.path(2)).write_bytes(b"")
    assert steps.latest() == 3
    with pytest.warns(UserWarning, match="is passed over: corrupt") as warned:
        assert steps.latest(valid=True) == 1
    assert [str(one.message)[:6] for one in warned] == ["step 3", "step 2"]
    # The warnings point at the caller, and not into the package.
    assert {one.filename for one in warned} == {__file__}
    steps.delete(1)
    with pytest.warns(UserWarning, match="is passed over"):
        assert steps.latest(valid=True) is None


def test_retention_keeps_the_newest_the_best_and_each_nth(tmp_path: pathlib.Path) -> None:
    options: dict[str, Any] = {"keep": 2, "keep_every": 10, "keep_best": 2, "metric": "loss"}
    losses = {1: 0.9, 2: 0.1, 5: 0.2, 10: 0.8, 12: 0.2, 20: 0.7, 21: 0.6, 22: float("nan"), 23: 0.5}
    with sdj.Steps(tmp_path / "run", **options) as steps:
        for step, loss in losses.items():
            steps.save(step, TREE, metrics={"loss": loss})
        # Of two equal values the newer one counts; NaN is never the best.
        assert steps.all() == [2, 10, 12, 20, 22, 23]
        assert (steps.best(), steps.metrics(12)) == (2, {"loss": 0.2})
    # A new object, as in another process, finds the steps. The best value is now the largest.
    with sdj.Steps(tmp_path / "run", **{**options, "mode": "max", "keep_best": 1}) as steps:
        assert steps.best() == 10
        steps.save(24, TREE, metrics={"loss": 0.0})
        assert steps.all() == [10, 20, 23, 24]
        with pytest.raises(ValueError, match="metrics="):
            steps.save(25, TREE)
        assert 25 not in steps.all()


def test_a_step_that_is_saved_again_has_its_new_metric(tmp_path: pathlib.Path) -> None:
    for keep in (None, 5):
        steps = sdj.Steps(tmp_path / str(keep), keep, metric="loss")
        steps.save(1, TREE, metrics={"loss": 0.1})
        steps.save(2, TREE, metrics={"loss": 0.2})
        assert steps.best() == 1
        steps.save(1, TREE, metrics={"loss": 0.3})
        assert steps.best() == 2, keep


def test_who_goes_back_to_an_older_step_begins_anew_there(tmp_path: pathlib.Path) -> None:
    steps = sdj.Steps(tmp_path / "run", keep=1)
    for step in (10, 20):
        steps.save(step, TREE)
    assert steps.all() == [20]
    steps.save(5, TREE)
    assert steps.all() == [5, 20]


def test_the_end_of_a_block_waits_for_saves_also_after_an_error(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = sdj._native.save

    def slow(*arguments: Any) -> Any:
        time.sleep(0.3)
        return write(*arguments)

    monkeypatch.setattr(sdj._native, "save", slow)
    steps = sdj.Steps(tmp_path / "run")

    def block() -> None:
        with steps:
            steps.save_async(1, TREE)
            raise RuntimeError("of the block")

    with pytest.raises(RuntimeError, match="of the block"):
        block()
    assert steps.all() == [1]


SAVER = """
import sys
import numpy as np
from serdes_ml import jax as sdj

step = int(sys.argv[2])
options = {"keep": 2, "keep_best": 1, "metric": "loss", "keep_every": 50}
with sdj.Steps(sys.argv[1], **options) as steps:
    print(steps.latest(valid=True), flush=True)
    tree = {str(name): np.full(1 << 18, name, np.float32) for name in range(8)}
    while True:
        step += 1
        metrics = {"loss": abs(step - 7) + 1.0}
        if step % 2:
            steps.save(step, tree, metrics=metrics)
        else:
            steps.save_async(step, tree, metrics=metrics)
"""


def test_a_saver_that_is_killed_leaves_whole_states(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "run"
    seed = random.randrange(1 << 32)
    moment = random.Random(seed)
    last, own = 0, dict[int, float]()
    for _ in range(8):
        command = [sys.executable, "-W", "error", "-c", SAVER, str(folder), str(last)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as saver:
            assert saver.stdout is not None
            # The next process finds the last state, without a warning of damage.
            assert saver.stdout.readline().strip() == str(last or None), f"seed {seed}"
            time.sleep(moment.uniform(0.05, 0.4))
            saver.send_signal(signal.SIGKILL)
        steps = sdj.Steps(folder, keep=2, keep_best=1, metric="loss", keep_every=50)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            last = steps.latest(valid=True) or 0
        found = steps.all()
        assert last == max(found, default=0), f"seed {seed}"
        for step in found:
            assert sd.check(steps.path(step), verify_data=True), f"seed {seed}, step {step}"
        # The next save removes what the killed process had not removed yet.
        last += 1
        steps.save(last, TREE, metrics={"loss": 1000.0})
        own[last] = 1000.0
        there = {*found, last}
        best = min(there, key=lambda step: (own.get(step, abs(step - 7) + 1.0), -step))
        stay = {*sorted(there)[-2:], best, *(step for step in there if step % 50 == 0)}
        assert set(steps.all()) == stay, f"seed {seed}"
    # Partial files of steps that were not saved again were removed with the states of their time.
    for more in (10, 20):
        steps.save(last + more, TREE, metrics={"loss": 1000.0})
    names = {file.name for file in folder.iterdir()}
    assert names == {pathlib.Path(steps.path(step)).name for step in steps.all()}, f"seed {seed}"


def test_prune_removes_partial_files_of_the_dead_alone(tmp_path: pathlib.Path) -> None:
    steps = sdj.Steps(tmp_path, keep=1)
    dead = tmp_path / ".step-00000001.sds.0123456789abcdef.partial"
    newer = tmp_path / ".step-00000007.sds.0123456789abcdef.partial"
    others = tmp_path / ".step-00000001.sds.mine.partial"
    alive = tmp_path / ".step-00000002.sds.0123456789abcdef.partial"
    for file in (dead, newer, others, alive):
        file.write_bytes(b"begun")
    with alive.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        steps.save(5, TREE)
    assert steps.all() == [5]
    assert not dead.exists()
    assert newer.exists()
    assert others.exists()
    assert alive.exists()
