"""A Ray cluster of two nodes judges a bucket of artifacts before any of them is loaded.

    python examples/python/ray_check.py            # 2,000 states, some of which are not well
    python examples/python/ray_check.py 5000

Each task takes some paths and returns their verdicts, which are small enough to send. A file that
cannot be read has a verdict as well. In a cluster of your own, `ray.init("auto")` connects to it,
and the paths are addresses in your bucket.
"""

from __future__ import annotations

import collections
import os
import pathlib
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np
import serdes_ml as sd

# Artifacts per task: enough that judging takes longer than scheduling.
BATCH = 100


def judge(paths: list[str]) -> list[sd.Verdict]:
    """Judges the artifacts of one task."""
    return [sd.check(path, verify_data=True) for path in paths]


def fill(bucket: pathlib.Path, count: int) -> dict[str, int]:
    """Writes artifacts of all kinds; returns the expected number of each verdict."""
    bucket.mkdir()
    expected: collections.Counter[str] = collections.Counter()
    good = sd.save({"w": np.arange(256, dtype=np.float32)}, metadata={"run": "example"})
    damaged = bytearray(good)
    damaged[good.index(np.arange(256, dtype=np.float32).tobytes())] ^= 1
    # The header's third number: the oldest build that may read the state.
    newer = good[:16] + (1000).to_bytes(4, "little") + good[20:]
    sorts = {"good": good, "damaged": bytes(damaged), "newer": newer, "cut": good[:-1]}
    for number in range(count):
        sort = "good" if number % 50 else list(sorts)[1 + number // 50 % 3]
        (bucket / f"{number:06}-{sort}.sds").write_bytes(sorts[sort])
        expected[sort] += 1
    return dict(expected)


def batches(bucket: pathlib.Path) -> Iterator[list[str]]:
    """Yields the paths in batches."""
    paths = sorted(map(str, bucket.iterdir()))
    for begin in range(0, len(paths), BATCH):
        yield paths[begin : begin + BATCH]


def cluster(folder: pathlib.Path) -> Any:
    """Starts two nodes of one core each on this machine, connected only by the network."""
    import ray
    from ray.cluster_utils import Cluster

    os.environ.setdefault("RAY_DISABLE_IMPORT_WARNING", "1")
    node = {"num_cpus": 1, "object_store_memory": 80 << 20, "include_dashboard": False}
    found = Cluster(initialize_head=True, head_node_args=node)
    found.add_node(**node)
    ray.init(address=found.address, logging_level="ERROR")
    return found


def main() -> None:
    """Fills a bucket, and has a cluster judge it."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    import ray

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        bucket = folder / "bucket"
        expected = fill(bucket, count)
        nodes = cluster(folder)
        try:
            assert len([node for node in ray.nodes() if node["Alive"]]) == 2
            task = ray.remote(scheduling_strategy="SPREAD")(judge_where)
            answers = ray.get([task.remote(paths) for paths in batches(bucket)])
        finally:
            ray.shutdown()
            nodes.shutdown()
    found: collections.Counter[str] = collections.Counter()
    for _, verdicts in answers:
        for verdict in verdicts:
            sort = pathlib.Path(verdict.path).stem.partition("-")[2]
            assert bool(verdict) == (sort == "good"), verdict
            found[sort] += 1
    assert found == expected
    places = {place for place, _ in answers}
    print(f"{len(places)} nodes judged {sum(found.values())} artifacts: {dict(found)}")


def judge_where(paths: list[str]) -> tuple[str, list[sd.Verdict]]:
    """Returns the verdicts, and the node that found them."""
    import ray

    return ray.get_runtime_context().get_node_id(), judge(paths)


if __name__ == "__main__":
    main()
