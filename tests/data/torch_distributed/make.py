"""Writes the checkpoints of this folder with the PyTorch that runs it.

    python make.py FOLDER

Makes FOLDER/VERSION/checkpoint, a checkpoint of torch.distributed that four processes write together,
and FOLDER/VERSION/expected.json: its tensors by the names that a file of `torch.save` of the same state
would have, with the type in PyTorch's words, the shape, and the bytes row by row.
"""

import json
import os
import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as processes

PROCESSES = 4


def whole():
    """The state as one process would have it."""
    return {
        "model": {
            "rows": torch.arange(15.0).reshape(5, 3),
            "columns": torch.arange(24, dtype=torch.int32).reshape(4, 6),
            "grid": torch.arange(70.0, dtype=torch.float64).reshape(5, 7, 2),
            "same": torch.tensor([1.0, -2.0, 0.5], dtype=torch.bfloat16),
            "scalar": torch.tensor(2.5),
        },
        "step": 500,
        "name": "run",
        "lr": [0.1, 0.2],
    }


def write(rank, folder):
    """What each process does."""
    try:
        from torch.distributed.tensor import Replicate, Shard, distribute_tensor
        from torch.distributed.device_mesh import init_device_mesh
    except ImportError:
        from torch.distributed._tensor import Replicate, Shard, distribute_tensor
        from torch.distributed.device_mesh import init_device_mesh
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29611")
    dist.init_process_group("gloo", rank=rank, world_size=PROCESSES)
    line = init_device_mesh("cpu", (PROCESSES,))
    square = init_device_mesh("cpu", (2, 2))
    state = whole()
    model = state["model"]
    model["rows"] = distribute_tensor(model["rows"], line, [Shard(0)])
    model["columns"] = distribute_tensor(model["columns"], line, [Shard(1)])
    model["grid"] = distribute_tensor(model["grid"], square, [Shard(0), Shard(1)])
    model["same"] = distribute_tensor(model["same"], line, [Replicate()])
    writer = dcp.FileSystemWriter(folder, single_file_per_rank=True)
    getattr(dcp, "save", dcp.save_state_dict)(state, storage_writer=writer)
    dist.destroy_process_group()


def bytes_of(tensor):
    """The bytes of a tensor, row by row."""
    return bytes(tensor.contiguous().clone().reshape(-1).untyped_storage().tolist())


def main():
    """Write all files."""
    folder = os.path.join(sys.argv[1], torch.__version__.split("+")[0])
    os.makedirs(folder)
    processes.spawn(write, (os.path.join(folder, "checkpoint"),), nprocs=PROCESSES)
    expected = {
        "model/%s" % name: {
            "dtype": str(tensor.dtype),
            "shape": list(tensor.shape),
            "bytes": bytes_of(tensor).hex(),
        }
        for name, tensor in whole()["model"].items()
    }
    with open(os.path.join(folder, "expected.json"), "w") as file:
        json.dump(expected, file, indent=1, sort_keys=True)
        file.write("\n")


if __name__ == "__main__":
    main()
