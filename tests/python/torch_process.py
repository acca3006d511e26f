"""One of several processes of torch.distributed; runs an action for the tests.

    python torch_process.py STORE COUNT INDEX ACTION JSON

It prints one line of JSON after the word `found`: its result, or the exception that it raised.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import warnings
from typing import Any

warnings.filterwarnings("ignore")

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.distributed.checkpoint as dcp  # noqa: E402
from serdes_ml import torch as sdt  # noqa: E402
from torch.distributed.checkpoint.default_planner import DefaultSavePlanner  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.distributed.tensor import (  # noqa: E402
    DTensor,
    Replicate,
    Shard,
    distribute_tensor,
)

store, count, index, action = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
asked = json.loads(sys.argv[5])
dist.init_process_group("gloo", init_method=f"file://{store}", rank=index, world_size=count)

PLACEMENTS: dict[str, Any] = {
    "rows": [Shard(0)],
    "columns": [Shard(1)],
    "copies": [Replicate()],
    # Fewer rows than processes, so some processes hold none of it.
    "few": [Shard(0)],
    "empty": [Shard(0)],
}
SHAPES = {"few": (3, 5), "empty": (0, 4)}


def values(name: str, step: int) -> Any:
    """Returns the value of a tensor at a step."""
    shape = SHAPES.get(name, (10, 6))
    first = sorted(PLACEMENTS).index(name) * 1000 + step * 100_000
    return (torch.arange(shape[0] * shape[1]) + first).reshape(shape).to(torch.float32)


def state_dict(step: int) -> dict[str, Any]:
    """Returns the nested state dict of a step."""
    mesh = init_device_mesh("cpu", (count,))
    tensors = {
        name: distribute_tensor(values(name, step), mesh, placements)
        for name, placements in PLACEMENTS.items()
    }
    weight = torch.full((2, 3), float(step), dtype=torch.bfloat16)
    return {
        "model": {**tensors, "plain": weight, "scalar": torch.tensor(step), "tied": weight},
        "optimizer": {"lr": 0.5 * step, "groups": [{"betas": (0.9, 0.99), "step": step}]},
        "text": f"step {step}",
    }


def full(value: Any) -> Any:
    return value.full_tensor() if isinstance(value, DTensor) else value


def same(found: Any, expected: Any) -> bool:
    """Returns True if two state dicts have the same values."""
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(
            [same(found[key], one) for key, one in expected.items()]
        )
    if isinstance(expected, (list, tuple)):
        return len(found) == len(expected) and all(map(same, found, expected))
    if isinstance(expected, torch.Tensor):
        # Every process takes part in assembling a tensor.
        found, expected = full(found), full(expected)
        return found.dtype == expected.dtype and torch.equal(found, expected)
    return bool(found == expected)


def save() -> dict[str, Any]:
    """Saves, once or several times, in this thread or in the background."""
    for step in asked["steps"]:
        writer = sdt.StorageWriter(asked["folder"], metadata={"step": str(step)})
        cached = {"enable_plan_caching": True} if asked.get("cached") else {}
        planner = DefaultSavePlanner(**cached)
        if asked.get("background"):
            future = dcp.async_save(state_dict(step), storage_writer=writer, planner=planner)
            future.result()
        else:
            dcp.save(state_dict(step), storage_writer=writer, planner=planner)
    return {}


def own(step: int) -> dict[str, Any]:
    """Returns the state dict of this process alone."""
    shape = (index + 2, 3)
    return {"own": torch.full(shape, float(step + index)), "rank": index, "step": step}


def apart() -> dict[str, Any]:
    """Saves and loads each process's own state dict, without communication between processes."""
    for step in asked["steps"]:
        writer = sdt.StorageWriter(asked["folder"])
        dcp.save(own(step), storage_writer=writer, use_collectives=False)
    dist.barrier()
    found = own(-1)
    dcp.load(found, storage_reader=sdt.StorageReader(asked["folder"]))
    return {"same": same(found, own(asked["steps"][-1]))}


def load() -> dict[str, Any]:
    """Loads, and compares."""
    found = state_dict(-1)
    dcp.load(found, storage_reader=sdt.StorageReader(asked["folder"]))
    return {"same": same(found, state_dict(asked["step"]))}


def attempt() -> dict[str, Any]:
    """Saves while one of the processes, the victim, dies or has a full disk."""
    found = state_dict(asked["step"])
    if index == asked["victim"]:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (asked["byte"], resource.RLIM_INFINITY))
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL if asked["deadly"] else signal.SIG_IGN)
    try:
        dcp.save(found, storage_writer=sdt.StorageWriter(asked["folder"]))
    except BaseException as error:
        failures = getattr(error, "failures", {})
        causes = {rank: [type(one[0]).__name__, str(one[0])] for rank, one in failures.items()}
        return {"raised": type(error).__name__, "causes": causes, "said": str(error)}
    return {"raised": None}


ACTIONS = {"save": save, "load": load, "apart": apart, "attempt": attempt}
print("found", json.dumps(ACTIONS[action]()), flush=True)
# Skips the shutdown, which waits for processes that have died.
os._exit(0)
