"""Saves a model that FSDP shards over four processes, and continues with it in two processes.

    python examples/python/torch_fsdp.py

Each process writes its own shards with torch.distributed.checkpoint into one state, and reads the
shards that it owns after a restart. In a job of your own, every process runs `train`, and torchrun
starts the processes.
"""

from __future__ import annotations

import pathlib
import subprocess
import sys
import tempfile

STEPS = 3


def train(folder: str, restore: bool) -> None:
    """Runs a few steps in one process, from the checkpoint if there is one."""
    import torch
    import torch.distributed as dist
    import torch.distributed.checkpoint as dcp
    from serdes_ml import torch as sdt
    from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    fully_shard(model, mesh=init_device_mesh("cpu", (dist.get_world_size(),)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    done = 0
    if restore:
        weights, moments = get_state_dict(model, optimizer)
        state = {"model": weights, "optimizer": moments, "step": 0}
        dcp.load(state, storage_reader=sdt.StorageReader(folder))
        set_state_dict(
            model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"]
        )
        done = state["step"]
    for step in range(done, done + STEPS):
        # The same batch in every process, so that the steps do not depend on their number.
        generator = torch.Generator().manual_seed(step)
        batch = torch.randn(8, 16, generator=generator)
        loss = (model(batch) - batch.sum(1, keepdim=True)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    if not restore:
        weights, moments = get_state_dict(model, optimizer)
        state = {"model": weights, "optimizer": moments, "step": STEPS}
        dcp.save(state, storage_writer=sdt.StorageWriter(folder, metadata={"run": "example"}))
    if dist.get_rank() == 0:
        count, last = dist.get_world_size(), loss.item()
        print(f"{count} processes have done {done + STEPS} steps; loss {last:.4f}", flush=True)


def run(count: int, action: str, folder: pathlib.Path) -> None:
    """Starts processes on this machine, and waits for them."""
    store = folder / f"store-{action}"
    processes = [
        subprocess.Popen([sys.executable, __file__, action, folder, store, str(count), str(rank)])
        for rank in range(count)
    ]
    if any([process.wait() for process in processes]):
        sys.exit(f"a process that was to {action} failed")


def main() -> None:
    """Runs the whole example, or one process of it if there are arguments for one."""
    if len(sys.argv) == 1:
        with tempfile.TemporaryDirectory() as folder:
            run(4, "save", pathlib.Path(folder))
            run(2, "restore", pathlib.Path(folder))
        return
    import torch.distributed as dist

    action, folder, store, count, rank = sys.argv[1:]
    dist.init_process_group(
        "gloo", init_method=f"file://{store}", rank=int(rank), world_size=int(count)
    )
    train(f"{folder}/checkpoint", action == "restore")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
