"""Checkpoints of torch.distributed.checkpoint, by one process and by several."""

from __future__ import annotations

import errno
import json
import os
import pathlib
import pickle
import subprocess
import sys
from typing import Any, NamedTuple

import numpy as np
import pytest
import serdes_ml as sd

torch = pytest.importorskip("torch", minversion="2.4")

import torch.distributed.checkpoint as dcp  # noqa: E402
from serdes_ml import _native  # noqa: E402
from serdes_ml import torch as sdt  # noqa: E402
from torch.distributed.checkpoint.default_planner import (  # noqa: E402
    DefaultLoadPlanner,
    DefaultSavePlanner,
    _EmptyStateDictLoadPlanner,
)
from torch.distributed.checkpoint.metadata import BytesStorageMetadata  # noqa: E402
from torch.distributed.checkpoint.planner import SavePlan  # noqa: E402
from torch.distributed.checkpoint.state_dict_loader import _load_state_dict  # noqa: E402

PROCESS = pathlib.Path(__file__).with_name("torch_process.py")


def save(state_dict: dict[str, Any], folder: pathlib.Path, **options: Any) -> None:
    """Saves by this process alone."""
    dcp.save(state_dict, storage_writer=sdt.StorageWriter(folder), no_dist=True, **options)


def load(state_dict: dict[str, Any], folder: pathlib.Path, **options: Any) -> None:
    """Loads by this process alone."""
    dcp.load(state_dict, storage_reader=sdt.StorageReader(folder), no_dist=True, **options)


DTYPES = ["bool", "uint8", "int64", "uint32", "float16", "bfloat16", "float8_e4m3fn", "float64"]


@pytest.mark.parametrize("name", [*DTYPES, "complex64"])
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)], ids=str)
def test_every_type_comes_back(tmp_path: pathlib.Path, name: str, shape: tuple[int, ...]) -> None:
    count = int(np.prod(shape))
    dtype = getattr(torch, name)
    saved = (torch.arange(6)[:count].reshape(shape) % 3).to(dtype)
    save({"w": saved}, tmp_path)
    loaded = {"w": torch.zeros(shape).to(dtype)}
    load(loaded, tmp_path)
    assert loaded["w"].dtype == dtype
    assert torch.equal(loaded["w"].to(torch.complex128), saved.to(torch.complex128))


def test_a_nested_state_dict_comes_back_and_the_state_says_what_it_is(
    tmp_path: pathlib.Path,
) -> None:
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(3)).sum().backward()
    optimizer.step()
    tree = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": 7}
    dcp.save(
        tree,
        storage_writer=sdt.StorageWriter(tmp_path, metadata={"run": "a"}),
        no_dist=True,
    )
    assert sorted(os.listdir(tmp_path)) == ["state.sds", "state.sds.parts"]
    assert sd.check(tmp_path / "state.sds", verify_data=True)
    with sd.safe_open(tmp_path / "state.sds", framework="torch") as f:
        assert f.metadata() == {"run": "a"}
        assert torch.equal(f.get_tensor("model.weight"), model.weight)
    everything: dict[str, Any] = {}
    # Like torch's tools that convert a checkpoint to other files.
    planner = _EmptyStateDictLoadPlanner()
    reader = sdt.StorageReader(tmp_path)
    _load_state_dict(everything, storage_reader=reader, planner=planner, no_dist=True)
    assert everything["step"] == 7
    assert torch.equal(everything["model"]["bias"], model.bias)
    moments = tree["optimizer"]["state"][0]["exp_avg"]
    (first, *_) = everything["optimizer"]["state"].values()
    assert torch.equal(first["exp_avg"], moments)
    other = torch.nn.Linear(3, 2)
    wanted = {"model": other.state_dict()}
    load(wanted, tmp_path)
    assert torch.equal(other.weight, model.weight)


def test_tensors_are_read_into_their_own_memory_whatever_it_is_like(
    tmp_path: pathlib.Path,
) -> None:
    values = torch.arange(12.0).reshape(3, 4)
    save({"a": values, "b": values + 1, "c": values, "d": values.T, "e": values[:, 1]}, tmp_path)
    shared = torch.zeros(3, 4)
    loaded = {
        "a": shared,
        "b": shared,
        "c": torch.zeros(4, 3, dtype=torch.float64).T,
        "d": torch.zeros(4, 3, dtype=torch.float16),
        "e": torch.nn.Parameter(torch.zeros(3)),
    }
    before = {name: one.data_ptr() for name, one in loaded.items()}
    load(loaded, tmp_path)
    # Two names share one tensor: it has the value that the planner requested last.
    assert torch.equal(loaded["b"], values + 1)
    assert torch.equal(loaded["c"], values.double())
    assert torch.equal(loaded["d"], values.T.half())
    assert torch.equal(loaded["e"], values[:, 1])
    assert {name: one.data_ptr() for name, one in loaded.items()} == before


def test_a_state_that_others_saved_loads_as_a_checkpoint(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "m.sds"
    values = torch.arange(6, dtype=torch.bfloat16).reshape(2, 3)
    sdt.save_file({"w": values, "tied": values}, path)
    loaded = {"w": torch.zeros(2, 3, dtype=torch.bfloat16), "tied": torch.zeros(2, 3)}
    load(loaded, path)
    assert torch.equal(loaded["w"], values)
    assert torch.equal(loaded["tied"], values.float())
    names = sdt.StorageReader(path).read_metadata().state_dict_metadata
    assert sorted(names) == ["tied", "w"]


def test_the_id_of_the_checkpoint_names_the_folder(tmp_path: pathlib.Path) -> None:
    for step in (1, 2):
        writer = sdt.StorageWriter()
        dcp.save(
            {"w": torch.full((2,), step)},
            checkpoint_id=tmp_path / str(step),
            storage_writer=writer,
            no_dist=True,
        )
    for step in (1, 2):
        loaded = {"w": torch.zeros(2, dtype=torch.int64)}
        reader = sdt.StorageReader()
        dcp.load(loaded, checkpoint_id=tmp_path / str(step), storage_reader=reader, no_dist=True)
        assert loaded["w"].tolist() == [step, step]
    with pytest.raises(ValueError, match="no folder"):
        sdt.StorageReader().read_metadata()


def test_what_is_not_there_or_damaged_is_an_error_of_its_class(tmp_path: pathlib.Path) -> None:
    with pytest.raises(sd.NotFound):
        sdt.StorageReader(tmp_path).read_metadata()
    # torch wraps it into its own error.
    with pytest.raises(dcp.api.CheckpointException, match="No such file"):
        load({"w": torch.zeros(2)}, tmp_path)
    save({"w": torch.ones(2)}, tmp_path)
    (part,) = (tmp_path / "state.sds.parts").iterdir()
    data = bytearray(part.read_bytes())
    at = data.index(np.ones(2, np.float32).tobytes())
    data[at] ^= 1
    part.write_bytes(data)
    with pytest.raises(dcp.api.CheckpointException) as raised:
        load({"w": torch.zeros(2)}, tmp_path)
    assert isinstance(raised.value.failures[0][0], sd.Corrupt)
    unverified = sdt.StorageReader(tmp_path, verify=False)
    dcp.load({"w": torch.zeros(2)}, storage_reader=unverified, no_dist=True)


@pytest.mark.parametrize(
    "text", ["[]", "{", '{"bytes": 7, "requires_grad": []}', '{"bytes": [], "requires_grad": 1}']
)
def test_a_state_that_says_nonsense_of_itself_is_damaged(path: pathlib.Path, text: str) -> None:
    _native.save(str(path), [], [("serdes_ml.checkpoint", text)], "current", False, None, None)
    with pytest.raises(sd.Corrupt, match=r"serdes_ml\.checkpoint"):
        sdt.StorageReader(path).read_metadata()


class Keeping(DefaultSavePlanner):
    """A planner that stores data of its own."""

    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Any]:
        plans, metadata = super().create_global_plan(all_plans)
        metadata.planner_data = {"w": object()}
        return plans, metadata


def test_what_no_state_holds_is_refused_and_the_old_state_stays(tmp_path: pathlib.Path) -> None:
    save({"w": torch.ones(2)}, tmp_path)
    with pytest.raises(dcp.api.CheckpointException, match="planner keeps data of its own"):
        save({"w": torch.zeros(2)}, tmp_path, planner=Keeping())
    with pytest.raises(dcp.api.CheckpointException, match="sparse"):
        save({"w": torch.eye(2).to_sparse()}, tmp_path)
    loaded = {"w": torch.zeros(2)}
    load(loaded, tmp_path)
    assert loaded["w"].tolist() == [1, 1]


def test_reading_runs_nothing_of_what_the_state_holds(tmp_path: pathlib.Path) -> None:
    save({"w": torch.ones(2), "note": {"a": 1}}, tmp_path)
    metadata = sdt.StorageReader(tmp_path).read_metadata()
    assert metadata.planner_data == {"w": ("w",), "note.a": ("note", "a")}
    assert isinstance(metadata.state_dict_metadata["note.a"], BytesStorageMetadata)

    class Plain(DefaultLoadPlanner):
        """A planner that takes the raw bytes of an entry."""

        def load_bytes(self, read_item: Any, value: Any) -> None:
            self.taken = value.read()

    planner = Plain()
    load({"note": {"a": 0}}, tmp_path, planner=planner)
    assert planner.taken.startswith(b"PK")


def test_writers_and_readers_pickle(tmp_path: pathlib.Path) -> None:
    writer = pickle.loads(pickle.dumps(sdt.StorageWriter(tmp_path, metadata={"a": "b"})))
    dcp.save({"w": torch.ones(2)}, storage_writer=writer, no_dist=True)
    reader = pickle.loads(pickle.dumps(sdt.StorageReader(tmp_path)))
    loaded = {"w": torch.zeros(2)}
    dcp.load(loaded, storage_reader=reader, no_dist=True)
    assert loaded["w"].tolist() == [1, 1]


class Ended(NamedTuple):
    """The end of a process: its status and result."""

    status: int
    found: Any
    output: str


def run(folder: pathlib.Path, count: int, action: str, **asked: Any) -> list[Ended]:
    """Runs the processes of a job until they end."""
    store = folder / "store"
    store.unlink(missing_ok=True)
    asked["folder"] = str(folder / "checkpoint")
    processes = [
        subprocess.Popen(
            [sys.executable, PROCESS, store, str(count), str(index), action, json.dumps(asked)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
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


def assert_loads(folder: pathlib.Path, count: int, step: int) -> None:
    """Checks that several processes load the tensors of a step."""
    ended = run(folder, count, "load", step=step)
    assert all(one.found == {"same": True} for one in ended), ended


@pytest.mark.parametrize("count", [1, 2, 4])
def test_any_number_of_processes_restores_what_any_other_saved(
    tmp_path: pathlib.Path, count: int
) -> None:
    ended = run(tmp_path, count, "save", steps=[1])
    assert all(one.found == {} for one in ended), ended
    state = tmp_path / "checkpoint" / "state.sds"
    with sd.safe_open(state) as f:
        assert f._open().reader.parts() == count
        assert f.metadata() == {"step": "1"}
    assert sd.check(state, verify_data=True)
    for other in (1, 2, 4):
        assert_loads(tmp_path, other, 1)


@pytest.mark.parametrize("asked", [{"background": True}, {"cached": True}], ids=str)
def test_saves_in_the_background_and_by_plans_that_are_kept_replace_each_other(
    tmp_path: pathlib.Path, asked: dict[str, bool]
) -> None:
    ended = run(tmp_path, 2, "save", steps=[1, 2, 3], **asked)
    assert all(one.found == {} for one in ended), ended
    assert len(os.listdir(tmp_path / "checkpoint" / "state.sds.parts")) == 2
    assert_loads(tmp_path, 1, 3)


def test_processes_that_do_not_speak_have_a_state_each(tmp_path: pathlib.Path) -> None:
    ended = run(tmp_path, 2, "apart", steps=[1, 2])
    assert all(one.found == {"same": True} for one in ended), ended
    folder = tmp_path / "checkpoint"
    names = [f"state-{rank}.sds" for rank in range(2)]
    assert sorted(os.listdir(folder)) == sorted([*names, *(f"{name}.parts" for name in names)])
    for rank, name in enumerate(names):
        assert sd.load_file(folder / name)["own"].shape == (rank + 2, 3)
        assert sd.check(folder / name, verify_data=True)


def test_tensors_that_are_copied_come_when_their_turn_comes(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from serdes_ml import _arrays

    there: list[str] = []
    plain = _arrays.from_torch

    def counting(name: str, value: Any) -> Any:
        if value.numel():
            there.append(name)
        return plain(name, value)

    saving = _native.save

    def save_then(path: Any, tensors: Any, *rest: Any) -> Any:
        # No other tensor was copied before.
        assert there == ["plain"]
        assert [callable(tensor[3]) for tensor in tensors if tensor[0] != "plain"] == [True, True]
        return saving(path, tensors, *rest)

    monkeypatch.setattr(_arrays, "from_torch", counting)
    monkeypatch.setattr(_native, "save", save_then)
    grid = torch.arange(12, dtype=torch.bfloat16).reshape(3, 4)
    saved = {"odd": grid[:, ::2], "plain": grid, "turned": grid.T}
    save(saved, tmp_path)
    loaded = {name: torch.zeros(one.shape, dtype=one.dtype) for name, one in saved.items()}
    load(loaded, tmp_path)
    for name, tensor in saved.items():
        assert torch.equal(loaded[name], tensor)


@pytest.mark.parametrize("victim", [0, 1])
@pytest.mark.parametrize("deadly", [False, True])
def test_a_process_that_dies_or_has_a_full_disk_leaves_the_old_state(
    tmp_path: pathlib.Path, victim: int, deadly: bool
) -> None:
    run(tmp_path, 2, "save", steps=[1])
    ended = run(tmp_path, 2, "attempt", step=2, victim=victim, byte=900, deadly=deadly)
    other = ended[1 - victim]
    assert other.found is not None, ended
    assert other.found["raised"] is not None, other
    if deadly:
        assert ended[victim].status < 0, ended
    else:
        for one in ended:
            kind, words = one.found["causes"][str(victim)]
            assert kind == "OSError", one
            assert str(errno.EFBIG) in words, one
    state = tmp_path / "checkpoint" / "state.sds"
    with sd.safe_open(state) as f:
        assert f.metadata() == {"step": "1"}
    assert sd.check(state, verify_data=True)
    # The next save removes the files of the dead process.
    run(tmp_path, 1, "save", steps=[3])
    assert len(os.listdir(state.with_name("state.sds.parts"))) == 1
    assert sorted(os.listdir(state.parent)) == ["state.sds", "state.sds.parts"]
