"""The handler for orbax, called through orbax."""

from __future__ import annotations

import os
import pathlib
from typing import Any

import numpy as np
import pytest
import serdes_ml as sd

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
ocp = pytest.importorskip("orbax.checkpoint")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec  # noqa: E402
from serdes_ml.orbax import SerdesHandler  # noqa: E402


def tree() -> dict[str, Any]:
    """Returns a training state."""
    mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("x", "y"))
    w = jax.device_put(jnp.arange(64.0).reshape(8, 8), NamedSharding(mesh, PartitionSpec("x", "y")))
    return {"params": {"w": w}, "step": 7}


def test_a_checkpoint_is_a_state(tmp_path: pathlib.Path) -> None:
    checkpointer = ocp.Checkpointer(SerdesHandler())
    saved = tree()
    checkpointer.save(tmp_path / "one", args=SerdesHandler.Save(saved, {"note": "x"}))
    assert sd.check(tmp_path / "one" / "state.sds", verify_data=True)
    loaded = checkpointer.restore(tmp_path / "one", args=SerdesHandler.Restore(saved))
    assert loaded["step"] == 7
    assert loaded["params"]["w"].sharding == saved["params"]["w"].sharding
    np.testing.assert_array_equal(loaded["params"]["w"], saved["params"]["w"])
    everything = checkpointer.restore(tmp_path / "one", args=SerdesHandler.Restore())
    assert everything["step"] == 7
    np.testing.assert_array_equal(everything["params"]["w"], saved["params"]["w"])
    flat = checkpointer.restore(tmp_path / "one", args=SerdesHandler.Restore(flat=True))
    assert sorted(flat) == ["params/w", "step"]
    without = ocp.Checkpointer(SerdesHandler()).restore(tmp_path / "one")
    assert without["step"] == 7
    mesh = Mesh(np.array(jax.devices()).reshape(2, 4), ("x", "y"))
    over = checkpointer.restore(tmp_path / "one", args=SerdesHandler.Restore(mesh=mesh))
    assert over["params"]["w"].sharding == NamedSharding(mesh, PartitionSpec("x", "y"))


def test_the_handler_works_by_itself(tmp_path: pathlib.Path) -> None:
    handler = SerdesHandler(serdes_version="week-4-old")
    handler.save(tmp_path, tree())
    assert handler.restore(tmp_path, tree())["step"] == 7


def test_a_manager_keeps_steps_of_states(tmp_path: pathlib.Path) -> None:
    options = ocp.CheckpointManagerOptions(max_to_keep=2)
    with ocp.CheckpointManager(tmp_path, options=options) as manager:
        for step in (1, 2, 3):
            manager.save(step, args=SerdesHandler.Save({"w": jnp.full(2, step)}))
        manager.wait_until_finished()
        assert manager.all_steps() == [2, 3]
        loaded = manager.restore(3, args=SerdesHandler.Restore())
    assert loaded["w"].tolist() == [3, 3]
