"""Pytrees and shardings, on a process with eight devices, and by several processes."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import serdes_ml as sd

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec  # noqa: E402
from serdes_ml import jax as sdj  # noqa: E402


def sharding(rows: int, columns: int, *spec: Any) -> NamedSharding:
    """Returns a sharding over a mesh of rows and columns of devices."""
    devices = np.array(jax.devices()[: rows * columns]).reshape(rows, columns)
    return NamedSharding(Mesh(devices, ("x", "y")), PartitionSpec(*spec))


SHARDINGS = [
    sharding(1, 1),
    sharding(2, 1, "x"),
    sharding(2, 2, "x", "y"),
    sharding(2, 2, None, "x"),
    sharding(4, 2, "x"),
    sharding(4, 2, "y", "x"),
    sharding(8, 1, ("x", "y")),
    sharding(4, 2),
]


@pytest.mark.parametrize("saved", SHARDINGS, ids=str)
def test_what_was_saved_on_one_mesh_comes_back_on_every_other(
    path: pathlib.Path, saved: NamedSharding
) -> None:
    values = np.arange(16 * 24, dtype=np.float32).reshape(16, 24)
    sdj.save(path, {"w": jax.device_put(values, saved)})
    np.testing.assert_array_equal(sd.load_file(path)["w"], values)
    for wanted in SHARDINGS:
        like = {"w": jax.ShapeDtypeStruct(values.shape, np.float32, sharding=wanted)}
        loaded = sdj.load(path, like)["w"]
        assert loaded.sharding == wanted
        np.testing.assert_array_equal(np.asarray(loaded), values)


def test_a_state_knows_its_shardings(path: pathlib.Path) -> None:
    sdj.save(path, {"w": jax.device_put(jnp.zeros((8, 8)), sharding(4, 2, "x", "y"))})
    with sd.safe_open(path) as f:
        found = f._open().reader.sharding("w")
    assert "devices=[4,2]" in found


class State:
    """A training state of a user's own class."""

    def __init__(self, params: Any, step: Any) -> None:
        self.params, self.step = params, step


jax.tree_util.register_pytree_with_keys(
    State,
    lambda state: (
        [
            (jax.tree_util.GetAttrKey("params"), state.params),
            (jax.tree_util.GetAttrKey("step"), state.step),
        ],
        None,
    ),
    lambda _, children: State(*children),
)


def test_a_tree_comes_back_as_it_was(path: pathlib.Path) -> None:
    tree = State(
        params={"w": jnp.ones((2, 3), jnp.bfloat16), "list": [jnp.arange(3), None]},
        step=7,
    )
    sdj.save(path, tree, metadata={"note": "x"})
    loaded = sdj.load(path, like=tree)
    assert isinstance(loaded, State)
    assert loaded.step == 7
    assert loaded.params["w"].dtype == jnp.bfloat16
    assert loaded.params["list"][1] is None
    np.testing.assert_array_equal(loaded.params["list"][0], np.arange(3))
    names = ["params/list/0", "params/w", "step"]
    assert list(sdj.load(path, flat=True)) == names
    with sd.safe_open(path) as f:
        assert f.metadata() == {"note": "x"}


def test_leaves_that_are_no_arrays_come_back_as_they_were(path: pathlib.Path) -> None:
    tree = {
        "int": -(2**70),
        "float": 0.1,
        "inf": float("-inf"),
        "bool": True,
        "str": "ü",
        "numpy": np.float64(0.5),
        "host": np.arange(3),
        "strings": np.array(["a", "b"]),
    }
    sdj.save(path, tree)
    loaded = sdj.load(path, like=tree)
    for name in ("int", "float", "inf", "bool", "str"):
        assert loaded[name] == tree[name]
        assert type(loaded[name]) is type(tree[name])
    assert loaded["numpy"].dtype == np.float64
    assert isinstance(loaded["host"], np.ndarray)
    assert loaded["host"].dtype == np.int64
    assert loaded["strings"].tolist() == [b"a", b"b"]
    everything = sdj.load(path)
    assert everything["host"].dtype == np.int64
    assert everything["int"] == -(2**70)


def test_what_does_not_fit_is_named(path: pathlib.Path) -> None:
    sdj.save(path, {"a": {"w": jnp.ones((2, 3))}, "step": 1})
    with pytest.raises(KeyError, match="a/b"):
        sdj.load(path, like={"a": {"b": jnp.ones(1)}})
    with pytest.raises(ValueError, match="a/w"):
        sdj.load(path, like={"a": {"w": jnp.ones((3, 2))}})
    with pytest.raises(ValueError, match="cast"):
        sdj.load(path, like={"a": {"w": jnp.ones((2, 3), jnp.bfloat16)}})
    cast = sdj.load(path, like={"a": {"w": jnp.ones((2, 3), jnp.bfloat16)}}, cast=True)
    assert cast["a"]["w"].dtype == jnp.bfloat16
    with pytest.raises(ValueError, match="step"):
        sdj.load(path, like={"step": jnp.ones(1)})
    with pytest.raises(ValueError, match="a/w"):
        sdj.load(path, like={"a": {"w": 7}})
    with pytest.raises(ValueError, match="two leaves"):
        sdj.save(path, {"a/b": jnp.ones(1), "a": {"b": jnp.ones(1)}})
    with pytest.raises(TypeError, match="'thing'"):
        sdj.save(path, {"thing": object()})


def test_typed_random_keys_come_back_as_keys_on_any_mesh(path: pathlib.Path) -> None:
    keys = jax.random.split(jax.random.key(7), 8)
    tree = {
        "one": jax.random.key(0),
        "rbg": jax.random.key(1, impl="rbg"),
        "many": jax.device_put(keys, sharding(4, 2, "x")),
    }
    sdj.save(path, tree)
    like = {
        "one": tree["one"],
        "rbg": jax.eval_shape(lambda: tree["rbg"]),
        "many": jax.ShapeDtypeStruct((8,), keys.dtype, sharding=sharding(2, 2, "y")),
    }
    loaded = sdj.load(path, like)
    for name, expected in tree.items():
        for found in (loaded[name], sdj.load(path)[name]):
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(jax.random.key_data(found), jax.random.key_data(expected))
    assert loaded["many"].sharding == sharding(2, 2, "y")
    # Without JAX they are loaded as numbers.
    assert sd.load_file(path)["many"].shape == (8, 2)
    with pytest.raises(ValueError, match="'one' is key<fry>"):
        sdj.load(path, {"one": tree["rbg"]})
    with pytest.raises(ValueError, match="'many' is key<fry>"):
        sdj.load(path, {"many": keys[:4]})
    sdj.save(path, {"w": jnp.zeros(2, np.uint32)})
    with pytest.raises(ValueError, match="'w' holds no random keys"):
        sdj.load(path, {"w": tree["one"]})


def test_a_save_in_the_background_has_the_values_of_its_call(path: pathlib.Path) -> None:
    host = np.zeros(1 << 20)
    device = jnp.zeros(1 << 18)
    future = sdj.save_async(path, {"host": host, "device": device})
    host[:] = 1
    device.delete()
    future.result(timeout=60)
    assert future.done()
    loaded = sd.load_file(path)
    assert loaded["host"].sum() == 0
    assert loaded["device"].sum() == 0


def test_a_failure_in_the_background_is_raised_or_printed(path: pathlib.Path) -> None:
    nowhere = path / "not" / "there.sds"
    with pytest.raises(sd.NotFound):
        sdj.save_async(nowhere, {"w": jnp.ones(1)}).result()
    program = (
        "import sys, jax.numpy as jnp\n"
        "from serdes_ml import jax as sdj\n"
        "sdj.save_async(sys.argv[1], {'w': jnp.ones(1)})\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, str(nowhere)], capture_output=True, text=True
    )
    assert "there.sds failed" in ran.stderr, ran


def test_loaded_arrays_can_be_donated_and_outlive_their_load(path: pathlib.Path) -> None:
    values = np.arange(1 << 16, dtype=np.float32).reshape(256, 256)
    sdj.save(path, {"w": jax.device_put(values, sharding(4, 2, "x", "y"))})
    like = {"w": jax.ShapeDtypeStruct(values.shape, values.dtype, sharding=sharding(2, 4, "x"))}
    loaded = sdj.load(path, like)["w"]
    path.unlink()
    step = jax.jit(lambda w: w + 1, donate_argnums=0)
    for _ in range(3):
        loaded = step(loaded)
    np.testing.assert_array_equal(np.asarray(loaded), values + 3)


def test_a_future_says_how_it_goes(path: pathlib.Path) -> None:
    done = sdj.save_async(path, {"w": jnp.ones(1)})
    done.result()
    assert repr(done) == f"<the save of {path}: done>"
    failed = sdj.save_async(path.parent / "no<t" / "there.sds", {"w": jnp.ones(1)})
    assert failed.exception() is not None
    assert ": failed, NotFound: " in repr(failed)
    assert "no&lt;t" in failed._repr_html_()


def test_steps_keep_the_newest(tmp_path: pathlib.Path) -> None:
    run = tmp_path / "runs" / "one"
    with sdj.Steps(run, keep=3) as steps:
        assert steps.latest() is None
        assert steps.all() == []
        with pytest.raises(sd.NotFound):
            steps.load(steps.latest())
        for step in (10, 5, 20, 30):
            steps.save(step, {"step": step, "w": jnp.full(2, step)})
        steps.save_async(123456789, {"step": 123456789})
    assert steps.all() == [20, 30, 123456789]
    assert steps.latest() == 123456789
    assert steps.load(20, like={"w": jnp.zeros(2, int)})["w"].tolist() == [20, 20]
    assert sorted(os.listdir(run)) == [
        "step-00000020.sds",
        "step-00000030.sds",
        "step-123456789.sds",
    ]
    with pytest.raises(ValueError, match="keep"):
        sdj.Steps(run, keep=0)
    half: Any = 1.5
    with pytest.raises(TypeError, match="integer"):
        sdj.Steps(run, keep=half)


def test_the_newest_step_that_is_whole_is_found(tmp_path: pathlib.Path) -> None:
    with sdj.Steps(tmp_path) as steps:
        assert steps.latest(valid=True) is None
        for step in (1, 2, 3):
            steps.save(step, {"w": jnp.full(1000, step)})
    damaged = tmp_path / "step-00000003.sds"
    contents = bytearray(damaged.read_bytes())
    at = contents.index(np.full(10, 3, np.int32).tobytes())
    contents[at] ^= 1
    damaged.write_bytes(contents)
    (tmp_path / "step-00000004.sds").write_bytes(contents[:100])
    assert steps.latest() == 4
    with pytest.warns(UserWarning, match="is passed over") as warned:
        assert steps.latest(valid=True) == 2
    said = [str(one.message) for one in warned]
    assert "step 4 of" in said[0]
    assert "step 3 of" in said[1]
    assert warned[0].filename == __file__
    assert steps.all() == [1, 2, 3, 4]


def test_the_best_and_every_nth_step_stay(tmp_path: pathlib.Path) -> None:
    losses = {10: 3.0, 20: 0.5, 30: float("nan"), 40: 0.4, 50: 0.9, 60: 0.8}
    options: dict[str, Any] = {"keep": 1, "keep_every": 30, "keep_best": 2, "metric": "loss"}
    with sdj.Steps(tmp_path, **options) as steps:
        for step, loss in losses.items():
            steps.save(step, {"w": jnp.zeros(1)}, metrics={"loss": loss, "other": 1})
        assert steps.all() == [20, 30, 40, 60]
        assert steps.best() == 40
        assert steps.metrics(20) == {"loss": 0.5, "other": 1.0}
        with pytest.raises(ValueError, match=r"metrics=\{'loss': …\}"):
            steps.save(70, {"w": jnp.zeros(1)})
        steps.save_async(70, {"w": jnp.zeros(1)}, metrics={"loss": 0.1}).result()
        assert steps.all() == [30, 40, 60, 70]
    # A new object, as in another process, finds them as well.
    assert sdj.Steps(tmp_path, metric="loss").best() == 70
    assert sdj.Steps(tmp_path, metric="loss", mode="max").best() == 60
    for wrong in ({"keep_every": 2}, {"keep": 1, "keep_best": 1}, {"keep": 1, "keep_every": 0}):
        with pytest.raises(ValueError, match="keep"):
            sdj.Steps(tmp_path, **wrong)
    with pytest.raises(ValueError, match="metric"):
        sdj.Steps(tmp_path).best()


def test_a_step_to_which_a_run_went_back_stays(tmp_path: pathlib.Path) -> None:
    with sdj.Steps(tmp_path, keep=2) as steps:
        for step in (10, 20, 30):
            steps.save(step, {"step": step})
        # A run that restarts at step 15 must not lose the states that it saves from there.
        steps.save(15, {"step": 15})
        assert steps.all() == [15, 20, 30]
        steps.save_async(16, {"step": 16}).result()
        assert steps.all() == [16, 20, 30]
    assert repr(steps) == f"Steps({str(tmp_path)!r}, keep=2)"


@pytest.mark.parametrize("step", ["1", 1.5, None])
def test_a_step_is_a_whole_number(tmp_path: pathlib.Path, step: Any) -> None:
    with pytest.raises(TypeError, match="integer"):
        sdj.Steps(tmp_path).save(step, {"step": 1})
    assert os.listdir(tmp_path) == []
    sdj.Steps(tmp_path).save(np.int64(7), {"step": 7})
    assert sdj.Steps(tmp_path).all() == [7]


def test_an_array_that_is_gone_is_named(path: pathlib.Path) -> None:
    gone = jnp.ones(3)
    gone.delete()
    for save in (sdj.save, sdj.save_async, lambda place, tree: sd.save_file(tree, place)):
        with pytest.raises(ValueError, match="'w' is an array that was deleted, or donated"):
            save(path, {"w": gone})
    assert os.listdir(path.parent) == []


def test_tensors_are_loaded_onto_the_device_that_is_asked_for(path: pathlib.Path) -> None:
    sd.save_file({"w": np.ones(2, np.float32)}, path)
    fourth = jax.devices()[3]
    assert sd.load_file(path, framework="jax", device=fourth)["w"].devices() == {fourth}
    with sd.safe_open(path, "flax", "cpu") as f:
        assert f.get_tensor("w").devices() == {jax.devices("cpu")[0]}
        assert f.get_slice("w")[:1].shape == (1,)


def test_steps_remove_what_was_removed_half_way(tmp_path: pathlib.Path) -> None:
    with sdj.Steps(tmp_path.as_uri(), keep=2) as steps:
        for step in (1, 2, 3):
            # As left by a process that died between removing the state and its parts.
            (tmp_path / f"step-{step:08}.sds.parts").mkdir()
            steps.save(step, {"w": jnp.zeros(1)})
        assert steps.all() == [2, 3]
        assert steps.path(3) == tmp_path / "step-00000003.sds"
        steps.delete(2)
        with pytest.raises(sd.NotFound):
            steps.delete(2)
        assert steps.all() == [3]
    assert not (tmp_path / "step-00000001.sds.parts").exists()


def test_a_leaf_without_a_sharding_goes_onto_the_default_device(path: pathlib.Path) -> None:
    sdj.save(path, {"w": jnp.ones(2)})
    fourth = jax.devices()[3]
    with jax.default_device(fourth):
        like = {"w": jax.ShapeDtypeStruct((2,), np.float32)}
        for loaded in (sdj.load(path), sdj.load(path, like)):
            assert loaded["w"].devices() == {fourth}
    assert sdj.load(path)["w"].devices() == {jax.devices()[0]}


def test_progress_is_that_of_the_whole_load(
    path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from serdes_ml import _shards

    monkeypatch.setattr(_shards, "_BATCH_BYTES", 5000)
    tree = {f"w{n}": jnp.full(1000, n, np.float32) for n in range(4)}
    tree["host"] = np.arange(500)
    sdj.save(path, {**tree, "names": np.array(["a", "b"])})
    for like in (None, tree):
        told: list[tuple[int, int]] = []
        sdj.load(path, like, progress=lambda *at, told=told: told.append(at))
        done = [at[0] for at in told]
        assert done == sorted(done)
        assert {at[1] for at in told} == {20_000}
        assert done[-1] == 20_000


def test_shards_of_accelerators_are_copied_one_after_the_other(
    path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sdj, "_is_on_host", lambda data: False)
    monkeypatch.setattr(sdj, "AHEAD_BYTES", 100)
    values = np.arange(16 * 24, dtype=np.float32).reshape(16, 24)
    tree = {
        "w": jax.device_put(values, sharding(4, 2, "x", "y")),
        "b": jax.device_put(values.astype(jnp.bfloat16), sharding(4, 2, "y")),
        "key": jax.random.key(3),
        "empty": jnp.zeros((0, 3)),
        "scalar": jnp.float32(7),
    }
    for background in (False, True):
        if background:
            sdj.save_async(path, tree).result()
        else:
            sdj.save(path, tree)
        loaded = sdj.load(path, tree)
        np.testing.assert_array_equal(np.asarray(loaded["w"]), values)
        np.testing.assert_array_equal(np.asarray(loaded["b"]), np.asarray(tree["b"]))
        assert loaded["scalar"] == 7
        assert loaded["empty"].shape == (0, 3)
        assert sd.check(path, verify_data=True)


def test_what_is_no_array_in_like_is_a_type_error_that_names_it(path: pathlib.Path) -> None:
    sdj.save(path, {"w": jnp.ones(2)})
    with pytest.raises(TypeError, match="'w' of like is a value of type object"):
        sdj.load(path, {"w": object()})


def test_a_leaf_comes_into_the_memory_that_its_sharding_names(path: pathlib.Path) -> None:
    values = np.arange(16, dtype=np.float32)
    devices = jax.devices()
    mesh = Mesh(np.array(devices), ("x",))
    for kind in [memory.kind for memory in devices[0].addressable_memories()]:
        for where in (
            NamedSharding(mesh, PartitionSpec("x"), memory_kind=kind),
            jax.sharding.SingleDeviceSharding(devices[1], memory_kind=kind),
        ):
            sdj.save(path, {"w": jax.device_put(values, where)})
            like = {"w": jax.ShapeDtypeStruct(values.shape, values.dtype, sharding=where)}
            loaded = sdj.load(path, like)["w"]
            assert loaded.sharding == where
            assert loaded.sharding.memory_kind == kind
            np.testing.assert_array_equal(np.asarray(loaded), values)
            np.testing.assert_array_equal(np.asarray(sdj.load(path)["w"]), values)


def test_strings_and_numbers_are_not_taken_for_each_other(path: pathlib.Path) -> None:
    sdj.save(path, {"s": np.array(["a", "b"]), "w": jnp.ones(2)})
    likes: list[Any] = [jnp.ones(2), np.zeros(2), jax.ShapeDtypeStruct((2,), np.int32)]
    for like in [*likes, np.array(["x", "y", "z"])]:
        for cast in (False, True):
            with pytest.raises(ValueError, match=r"'s' is strings\[2\] in the state"):
                sdj.load(path, {"s": like}, cast=cast)
    for like in (np.array(["xyz", ""]), np.array([b"", None], dtype=object)):
        assert sdj.load(path, {"s": like})["s"].tolist() == [b"a", b"b"]
        with pytest.raises(ValueError, match=r"'w' is float32\[2\] in the state, and not strings"):
            sdj.load(path, {"w": like}, cast=True)


def test_values_that_this_jax_does_not_have_are_not_lost_in_silence(path: pathlib.Path) -> None:
    numbers = np.array([2**40 + 3, 7])
    sd.save_file({"i": numbers}, path)
    wide = jax.ShapeDtypeStruct((2,), np.int64)
    with pytest.raises(ValueError, match="'i' is int64 in the state, which this process of jax"):
        sdj.load(path, {"i": wide})
    assert sdj.load(path, {"i": wide}, cast=True)["i"].dtype == np.int32
    np.testing.assert_array_equal(sdj.load(path, {"i": numbers})["i"], numbers)
    with pytest.warns(UserWarning, match="'i' is int64 in the state, and jax made int32"):
        sd.load_file(path, framework="jax")


def test_what_takes_too_long_says_what_it_is(path: pathlib.Path) -> None:
    future = sdj.save_async(path, {"w": jnp.ones(1 << 22)})
    with pytest.raises(TimeoutError, match=r"state\.sds takes longer than 0 s"):
        future.result(timeout=0)
    future.result(timeout=60)


WORKER = """
import os, sys
port, count, index, action, path = sys.argv[1:6]
count, index = int(count), int(index)
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={8 // count}"
os.environ["JAX_PLATFORMS"] = "cpu"
import jax, numpy as np
jax.distributed.initialize(f"127.0.0.1:{port}", count, index)
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
from serdes_ml import jax as sdj
mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("x", "y"))
values = np.arange(16 * 24, dtype=np.float32).reshape(16, 24)
specs = {"xy": P("x", "y"), "y": P(None, "y"), "copy": P()}
shardings = {name: NamedSharding(mesh, spec) for name, spec in specs.items()}
if action == "save":
    tree = {name: jax.make_array_from_callback(values.shape, one, lambda i: values[i])
            for name, one in shardings.items()}
    sdj.save(path, {**tree, "step": 7, "host": np.arange(5)}, timeout=60)
    sdj.save_async(path + ".async", tree, timeout=60).result()
elif action == "load":
    like = {name: jax.ShapeDtypeStruct(values.shape, values.dtype, sharding=one)
            for name, one in shardings.items()}
    tree = sdj.load(path, {**like, "step": 0})
    assert tree["step"] == 7
    for name in specs:
        for shard in tree[name].addressable_shards:
            np.testing.assert_array_equal(np.asarray(shard.data), values[shard.index])
elif action == "fail":
    tree = {"xy": jax.make_array_from_callback(values.shape, shardings["xy"], lambda i: values[i])}
    if index == count - 1:
        import serdes_ml._native as native
        class Broken:
            def __getattr__(self, name): return getattr(native, name)
            def save(self, *arguments): raise OSError(28, "full")
        sdj._native = Broken()
    try:
        sdj.save(path, tree, timeout=30)
    except Exception as error:
        print("raised", type(error).__name__, error)
print("done", index)
"""


def run_processes(count: int, action: str, path: pathlib.Path) -> list[str]:
    """Runs several processes of jax.distributed; returns the output of each."""
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, str(port), str(count), str(index), action, str(path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for index in range(count)
    ]
    try:
        return [process.communicate(timeout=300)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()


def test_processes_save_together_and_others_restore(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "state.sds"
    for index, said in enumerate(run_processes(2, "save", path)):
        assert f"done {index}" in said, said
    values = np.arange(16 * 24, dtype=np.float32).reshape(16, 24)
    loaded = sd.load_file(path)
    for name in ("xy", "y", "copy"):
        np.testing.assert_array_equal(loaded[name], values)
        np.testing.assert_array_equal(sd.load_file(f"{path}.async")[name], values)
    assert loaded["host"].tolist() == list(range(5))
    assert sd.check(path, verify_data=True)
    with sd.safe_open(path) as f:
        assert f._open().reader.parts() == 2
    for count in (1, 4):
        for index, said in enumerate(run_processes(count, "load", path)):
            assert f"done {index}" in said, said


def test_where_one_process_fails_all_raise_and_no_state_appears(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "state.sds"
    first, last = run_processes(2, "fail", path)
    assert "raised SerdesError" in first, first
    assert "process 1 failed" in first, first
    assert "raised OSError" in last, last
    assert not path.exists()
