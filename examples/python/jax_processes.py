"""Several processes of jax.distributed save one state, and another number of them restores it.

    python examples/python/jax_processes.py                    # four processes save, two restore
    python examples/python/jax_processes.py s3://bucket/run    # the same, in object storage

Credentials of object storage come from the environment (AWS_ACCESS_KEY_ID and so on). Each process
writes the shards that it owns, and reads the bytes that its own shards need. In a job of your own,
every process runs the code of `state`, and your launcher starts the processes.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile

DEVICES = 8


def state(path: str, restore: bool) -> None:
    """Saves or restores the state in one process."""
    import jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec
    from serdes_ml import jax as sdj

    # The mesh of this job, which may differ from that of the job that saved.
    shape = (2, 4) if restore else (4, 2)
    mesh = Mesh(np.array(jax.devices()).reshape(shape), ("data", "model"))
    values = np.arange(64 * 32, dtype=np.float32).reshape(64, 32)
    sharding = NamedSharding(mesh, PartitionSpec("data", "model"))
    if restore:
        like = {
            "w": jax.ShapeDtypeStruct(values.shape, values.dtype, sharding=sharding),
            "step": 0,
        }
        tree = sdj.load(path, like)
        assert tree["step"] == 1000
        for shard in tree["w"].addressable_shards:
            np.testing.assert_array_equal(np.asarray(shard.data), values[shard.index])
        print(f"process {jax.process_index()} restored {len(tree['w'].addressable_shards)} shards")
    else:
        w = jax.make_array_from_callback(values.shape, sharding, lambda index: values[index])
        sdj.save(path, {"w": w, "step": 1000})
        print(f"process {jax.process_index()} saved {len(w.addressable_shards)} shards")


def run(count: int, action: str, path: str) -> None:
    """Starts processes on this machine, and waits for them."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    devices = f"--xla_force_host_platform_device_count={DEVICES // count}"
    environment = {**os.environ, "XLA_FLAGS": devices, "JAX_PLATFORMS": "cpu"}
    processes = [
        subprocess.Popen(
            [sys.executable, __file__, action, path, address, str(count), str(index)],
            env=environment,
        )
        for index in range(count)
    ]
    if any([process.wait() for process in processes]):
        sys.exit(f"a process that was to {action} failed")


def main() -> None:
    """Runs the whole example, or one process of it if there are arguments for one."""
    if len(sys.argv) <= 2:
        with tempfile.TemporaryDirectory() as folder:
            path = f"{(sys.argv[1:] or [folder])[0]}/state.sds"
            run(4, "save", path)
            run(2, "restore", path)
        return
    import jax

    action, path, address, count, index = sys.argv[1:]
    jax.distributed.initialize(address, int(count), int(index))
    state(path, action == "restore")


if __name__ == "__main__":
    main()
