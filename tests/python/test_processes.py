"""Several processes of jax.distributed: every change of topology, deaths and full disks.

With SERDES_FULL=1 all pairs of topologies are tested, and processes die at more moments.
"""

from __future__ import annotations

import errno
import itertools
import json
import os
import pathlib
import socket
import subprocess
import sys
from typing import Any, NamedTuple

import pytest
import serdes_ml as sd

pytest.importorskip("jax")

FULL = bool(os.environ.get("SERDES_FULL"))
PROCESS = pathlib.Path(__file__).with_name("jax_process.py")


class Topology(NamedTuple):
    """The numbers of devices and of processes of a job."""

    devices: int
    processes: int

    def __str__(self) -> str:
        return f"{self.devices}-devices-{self.processes}-processes"


ALL = [Topology(d, p) for d in (1, 2, 4, 8) for p in (1, 2, 4) if p <= d]
TOPOLOGIES = ALL if FULL else [Topology(1, 1), Topology(4, 2), Topology(8, 4)]


class Ended(NamedTuple):
    """The end of a process: its status and result."""

    status: int
    found: Any
    output: str


def run(topology: Topology, action: str, **asked: Any) -> list[Ended]:
    """Runs the processes of a job until they end."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    devices, count = topology
    words = json.dumps(asked)
    processes = [
        subprocess.Popen(
            [sys.executable, PROCESS, *map(str, (port, count, index, devices)), action, words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for index in range(count)
    ]
    try:
        outputs = [process.communicate(timeout=300)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    ended: list[Ended] = []
    for process, output in zip(processes, outputs, strict=True):
        lines = [line for line in output.splitlines() if line.startswith("found ")]
        found = json.loads(lines[-1].removeprefix("found ")) if lines else None
        ended.append(Ended(process.returncode, found, output))
    return ended


def run_well(topology: Topology, action: str, **asked: Any) -> list[Any]:
    """Runs the processes of a job, none of which may fail; returns their results."""
    ended = run(topology, action, **asked)
    assert all(one.status == 0 and one.found is not None for one in ended), ended
    return [one.found for one in ended]


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pathlib.Path]:
    """Saves a state with every topology."""
    folder = tmp_path_factory.mktemp("states")
    found: dict[str, pathlib.Path] = {}
    for number, topology in enumerate(TOPOLOGIES):
        path = found[str(topology)] = folder / f"{topology}.sds"
        # Half of the saves run in the background, which makes no difference to a reader.
        run_well(topology, "save", path=str(path), step=number, background=bool(number % 2))
    return found


@pytest.mark.parametrize("topology", TOPOLOGIES, ids=str)
def test_every_topology_restores_what_any_other_saved_bit_for_bit(
    states: dict[str, pathlib.Path], topology: Topology
) -> None:
    paths = list(map(str, states.values()))
    for found in run_well(topology, "load", paths=paths):
        assert sorted(found) == sorted(paths)


def test_a_job_of_several_processes_writes_each_shard_once(
    states: dict[str, pathlib.Path],
) -> None:
    for topology in TOPOLOGIES:
        with sd.safe_open(states[str(topology)]) as f:
            reader = f._open().reader
            assert reader.data_bytes() == 6 * 16 * 24 * 4
            assert reader.parts() == (topology.processes if topology.processes > 1 else 0)
        assert sd.check(states[str(topology)], verify_data=True)


# Limit on the bytes that may be read besides data: headers, indexes, the ends of parts.
AROUND = 256 << 10


def test_a_process_reads_what_its_shards_need_and_little_more(tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "state.sds")
    # 16 MiB in each leaf: a shard of rows is 2 MiB, in chunks of its own.
    shape, leaves = [2048, 2048], ["rows", "columns"]
    run_well(Topology(8, 4), "save", path=path, shape=shape, leaves=leaves)
    asked: dict[str, Any] = {"paths": [path], "shape": shape}
    for found in run_well(Topology(8, 4), "load", **asked, leaves=leaves):
        assert found[path]["counted"] == found[path]["own"] == 8 << 20
        assert found[path]["read"] <= found[path]["own"] + AROUND
    for found in run_well(Topology(4, 2), "load", **asked, leaves=["rows"]):
        assert found[path]["counted"] == found[path]["own"] == 8 << 20
        assert found[path]["read"] <= found[path]["own"] + AROUND


MOMENTS: list[dict[str, Any]] = [
    {"when": "before"},
    {"when": "byte", "byte": 0},
    {"when": "byte", "byte": 1000},
    {"when": "written"},
]
FIRST_MOMENTS = [{"when": "merging"}, {"when": "merged"}]
VICTIMS = [(2, MOMENTS[2])]
if FULL:
    VICTIMS = [*itertools.product((0, 1, 3), MOMENTS), *((0, moment) for moment in FIRST_MOMENTS)]
TIMEOUT = 5


@pytest.mark.parametrize(("victim", "moment"), VICTIMS, ids=str)
def test_a_process_that_is_killed_leaves_the_old_state_or_the_new_one(
    tmp_path: pathlib.Path, victim: int, moment: dict[str, Any]
) -> None:
    path = str(tmp_path / "state.sds")
    topology, asked = Topology(4, 4), {"path": path, "timeout": TIMEOUT, "leave": True}
    run_well(topology, "save", path=path, step=1)
    ended = run(topology, "attempt", step=2, victim=victim, **asked, **moment)
    assert ended[victim].status < 0, ended[victim]
    for index, one in enumerate(ended):
        # After the first process has died, jax may end the others before they report it.
        if index != victim and not (victim == 0 and one.found is None and one.status != 0):
            assert one.found["raised"] == "SerdesError", one
    step = 2 if moment["when"] == "merged" else 1
    assert sd.check(path, verify_data=True)
    (found,) = run_well(Topology(1, 1), "load", paths=[path])
    with sd.safe_open(path) as f:
        assert json.loads(f._open().own["serdes_ml.leaves"]) == {"step": step}
    # The next save removes the files of the dead process.
    run_well(topology, "save", path=path, step=3)
    assert sorted(os.listdir(tmp_path)) == ["state.sds", "state.sds.parts"]
    assert len(os.listdir(f"{path}.parts")) == 4
    assert found


def test_where_a_process_is_killed_no_state_appears(tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "state.sds")
    moment = {"when": "written", "victim": 1, "timeout": TIMEOUT, "leave": True}
    ended = run(Topology(2, 2), "attempt", path=path, step=0, **moment)
    assert "process 1 said nothing for 5 s" in ended[0].found["said"]
    assert ended[1].status < 0
    assert not pathlib.Path(path).exists()


@pytest.mark.parametrize("victim", [0, 1])
def test_a_process_whose_disk_is_full_says_so_and_nothing_is_left(
    tmp_path: pathlib.Path, victim: int
) -> None:
    path = str(tmp_path / "state.sds")
    moment = {"when": "full", "byte": 1000, "victim": victim, "timeout": 60}
    ended = run(Topology(2, 2), "attempt", path=path, step=0, **moment)
    full, other = ended[victim].found, ended[1 - victim].found
    assert (full["raised"], full["errno"]) == ("OSError", errno.EFBIG), ended
    assert other["raised"] == "SerdesError", ended
    assert "File too large" in other["said"], ended
    assert os.listdir(tmp_path) == []


def test_on_a_full_file_system_the_old_state_stays(small_disk: pathlib.Path) -> None:
    path = str(small_disk / "state.sds")
    topology = Topology(2, 2)
    run_well(topology, "save", path=path, step=1)
    before = sorted(os.listdir(f"{path}.parts"))
    moment = {"when": "full", "byte": 1 << 30, "victim": 0, "timeout": 60}
    asked: dict[str, Any] = {"path": path, "shape": [512, 512], "step": 2}
    ended = run(topology, "attempt", **asked, **moment)
    errors = [one.found["errno"] for one in ended]
    assert errno.ENOSPC in errors, ended
    assert all(one.found["raised"] for one in ended), ended
    assert sorted(os.listdir(f"{path}.parts")) == before
    assert sorted(os.listdir(small_disk)) == ["state.sds", "state.sds.parts"]
    run_well(Topology(1, 1), "load", paths=[path])
