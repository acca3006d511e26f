"""Saves and loads trees, with and without `like`."""

from __future__ import annotations

import collections
import json
import os
import pathlib
import subprocess
import sys
from typing import Any, NamedTuple

import numpy as np
import pytest
import serdes_ml as sd

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec  # noqa: E402
from serdes_ml import jax as sdj  # noqa: E402
from serdes_ml._trees import nested  # noqa: E402


class Pair(NamedTuple):
    """A named tuple of a user's own."""

    left: Any
    right: Any


@jax.tree_util.register_pytree_node_class
class Bare:
    """A node whose children have no names."""

    def __init__(self, *children: Any) -> None:
        self.children = children

    def tree_flatten(self) -> tuple[tuple[Any, ...], None]:
        """Returns the children."""
        return self.children, None

    @classmethod
    def tree_unflatten(cls, _: None, children: Any) -> Bare:
        """Returns a node with the given children."""
        return cls(*children)


def same(found: Any, expected: Any) -> None:
    """Compares two trees: kinds of containers, keys, leaves."""
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


def test_a_tree_of_plain_containers_comes_back_as_it_was(path: pathlib.Path) -> None:
    tree = {
        "params": {"w": jnp.ones((2, 2)), "a/b": jnp.zeros(1)},
        "layers": [{"b": jnp.arange(3)}, (1, "text", None), [], ()],
        "ordered": collections.OrderedDict(z=1, a=2.5),
        "numbers": {0: jnp.ones(1), 10: True},
        "empty": {},
        "none": None,
    }
    sdj.save(path, tree)
    loaded = sdj.load(path)
    same(loaded, tree)
    assert list(loaded["ordered"]) == ["z", "a"]
    assert loaded["layers"][1] == (1, "text", None)
    assert set(loaded["numbers"]) == {0, 10}
    names = "layers/0/b layers/1/0 layers/1/1 numbers/0 numbers/10 ordered/a ordered/z"
    assert list(sdj.load(path, flat=True)) == [*names.split(), "params/a/b", "params/w"]
    with pytest.raises(ValueError, match="flat=True"):
        sdj.load(path, tree, flat=True)


@pytest.mark.parametrize("tree", [jnp.arange(3), 7, [], {}, None, (jnp.ones(1),)], ids=repr)
def test_the_root_may_be_of_any_kind(path: pathlib.Path, tree: Any) -> None:
    sdj.save(path, tree)
    loaded = sdj.load(path)
    same(loaded, tree)
    assert type(loaded) is type(tree) or isinstance(tree, jax.Array)


def test_classes_of_somebodys_own_come_as_plain_containers(path: pathlib.Path) -> None:
    tree = {
        "pair": Pair(jnp.ones(2), [Pair(1, None)]),
        "bare": Bare(jnp.zeros(1), {"x": 2}),
        "default": collections.defaultdict(list, k=jnp.ones(1)),
        "key": jax.random.key(3),
    }
    sdj.save(path, tree)
    loaded = sdj.load(path)
    assert sorted(loaded["pair"]) == ["left", "right"]
    assert loaded["pair"]["right"] == [{"left": 1, "right": None}]
    assert isinstance(loaded["bare"], list)
    assert loaded["bare"][1] == {"x": 2}
    assert type(loaded["default"]) is dict
    assert loaded["key"].dtype == tree["key"].dtype
    like = sdj.load(path, like=tree)
    assert jax.tree.structure(like) == jax.tree.structure(tree)


def test_states_without_a_structure_come_as_nested_dicts(path: pathlib.Path) -> None:
    sd.save_file({"a": np.ones(1), "a/b": np.zeros(1), "c/d/e": np.ones(2)}, path)
    loaded = sdj.load(path)
    assert sorted(loaded) == ["a", "a/b", "c"]
    assert loaded["c"]["d"]["e"].tolist() == [1, 1]
    assert nested({"": 1, "/x": 2, "/x/y": 3}) == {"": 1, "/x": 2, "/x/y": 3}


@pytest.mark.parametrize(
    "structure",
    [
        "no json",
        '{"w":"*"}',
        '["list","*","*"]',
        '["later","*"]',
        '{"w":"*","step":"*","more":"*"}',
        '["dict",["w","*"],["w","*"]]',
        '["dict",[["w"],"*"]]',
        '["fields","a.B",["w"]]',
        "[" * 100_000,
        '["list",' * 5000 + "null" + "]" * 5000,
        "7",
    ],
    ids=lambda text: text[:20],
)
def test_a_structure_that_is_none_of_the_states_is_not_taken(
    path: pathlib.Path, structure: str
) -> None:
    from serdes_ml import _native

    array = np.ones(2, np.float32)
    metadata = [("serdes_ml.leaves", '{"step": 7}'), ("serdes_ml.tree", structure)]
    _native.save(str(path), [("w", "F32", (2,), array)], metadata, "current", False, None, None)
    loaded = sdj.load(path)
    assert sorted(loaded) == ["step", "w"]


def test_a_state_of_which_tensors_were_taken_comes_as_nested_dicts(path: pathlib.Path) -> None:
    sdj.save(path, {"a": [jnp.ones(1), jnp.zeros(2)], "b": jnp.ones(3)})
    part = path.with_name("part.sds")
    sd.convert(path, part, only="a/*")
    assert sorted(sdj.load(part)["a"]) == ["0", "1"]


def test_all_that_does_not_fit_is_in_one_error(path: pathlib.Path) -> None:
    saved = {"params": {"w": jnp.ones((2, 3)), "b": jnp.zeros(3)}, "step": 7}
    sdj.save(path, saved)
    like = {
        "params": {"w": jnp.ones((3, 2)), "bias": jnp.zeros(3)},
        "step": jnp.zeros(()),
        "zzz": 1,
    }
    with pytest.raises(sdj.TreeMismatch) as raised:
        sdj.load(path, like)
    error = raised.value
    assert isinstance(error, KeyError)
    assert isinstance(error, ValueError)
    assert isinstance(error, sd.SerdesError)
    said = str(error)
    assert said.startswith(f"{path} does not fit the tree in 4 leaves:\n")
    assert "'params/w' is float32[2, 3] in the state, and not float32[3, 2]" in said
    assert "the state has no leaf 'params/bias'; it has 'params/b'" in said
    assert "'step' is a plain int in the state, and not an array" in said
    by_name = {one.name: one for one in error.mismatches}
    assert by_name["params/bias"].near == ("params/b",)
    assert by_name["zzz"].is_missing
    assert by_name["zzz"].near == ()
    import pickle

    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.mismatches) == (said, error.mismatches)


def test_an_error_is_of_the_kind_of_its_mismatches(path: pathlib.Path) -> None:
    sdj.save(path, {"w": jnp.ones(2)})
    with pytest.raises(KeyError) as missing:
        sdj.load(path, {"v": jnp.ones(2)})
    assert not isinstance(missing.value, ValueError)
    assert str(missing.value) == f"{path}: the state has no leaf 'v'"
    with pytest.raises(ValueError, match="'w' is float32") as differs:
        sdj.load(path, {"w": jnp.ones(3)})
    assert not isinstance(differs.value, KeyError)


def test_values_that_are_no_tensors_are_not_left_out_in_silence(path: pathlib.Path) -> None:
    sdj.save(path, {"w": jnp.ones(2), "step": 7, "name": "run", "lr": 0.5})
    with pytest.warns(UserWarning, match=r"left out: 'lr', 'name', 'step'; leaves=True") as warned:
        assert list(sd.load_file(path)) == ["w"]
    assert warned[0].filename == __file__
    found = sd.load_file(path, leaves=True)
    assert (found["step"], found["name"], found["lr"]) == (7, "run", 0.5)
    assert list(sd.load_file(path, only="w")) == ["w"]
    assert sd.load_file(path, only="s*", leaves=True) == {"step": 7}
    with pytest.warns(UserWarning, match="'step'"):
        assert sd.load_file(path, only="s*") == {}
    with sd.safe_open(path) as f:
        assert f.leaves() == {"step": 7, "name": "run", "lr": 0.5}
    assert list(sd.load(path.read_bytes(), leaves=False)) == ["w"]


def mesh(rows: int, columns: int, *names: str) -> Mesh:
    """Returns a mesh of rows and columns of devices."""
    devices = np.array(jax.devices()[: rows * columns]).reshape(rows, columns)
    return Mesh(devices, names)


def test_a_mesh_of_the_same_names_needs_no_specification(path: pathlib.Path) -> None:
    saved = mesh(4, 2, "x", "y")

    def put(value: Any, *spec: Any) -> Any:
        return jax.device_put(value, NamedSharding(saved, PartitionSpec(*spec)))

    tree = {
        "w": put(jnp.arange(64.0).reshape(8, 8), "x", "y"),
        "both": put(jnp.arange(16.0), ("x", "y")),
        "copy": put(jnp.arange(3.0)),
        "keys": jax.device_put(
            jax.random.split(jax.random.key(0), 8), NamedSharding(saved, PartitionSpec("x"))
        ),
        "scalar": jnp.float32(1),
        "step": 7,
    }
    sdj.save(path, tree)
    other = mesh(2, 4, "x", "y")
    loaded = sdj.load(path, mesh=other)
    same({**loaded, "keys": 0}, {**tree, "keys": 0})
    assert loaded["w"].sharding == NamedSharding(other, PartitionSpec("x", "y"))
    assert loaded["both"].sharding == NamedSharding(other, PartitionSpec(("x", "y")))
    assert loaded["copy"].sharding.is_fully_replicated
    assert loaded["scalar"].sharding.device_set == set(jax.devices())
    assert loaded["keys"].sharding.is_equivalent_to(NamedSharding(other, PartitionSpec("x")), 1)
    one = jax.sharding.SingleDeviceSharding(jax.devices()[3])
    like = {
        "w": jax.ShapeDtypeStruct((8, 8), np.float32),
        "both": jax.ShapeDtypeStruct((16,), np.float32, sharding=one),
    }
    loaded = sdj.load(path, like, mesh=other)
    assert loaded["w"].sharding == NamedSharding(other, PartitionSpec("x", "y"))
    assert loaded["both"].sharding == one
    with pytest.raises(ValueError, match=r"'w' lies over 'x', 'y' in the state, and the mesh has"):
        sdj.load(path, mesh=mesh(2, 4, "a", "b"))
    sdj.save(path, {"v": put(jnp.arange(4.0), "x")})
    with pytest.raises(ValueError, match="'v' does not fit the mesh"):
        sdj.load(path, mesh=mesh(8, 1, "x", "y"))


def test_inspect_shows_the_names_of_axes(path: pathlib.Path) -> None:
    values = jnp.zeros((8, 8))
    specs = {"a": ("x", "y"), "b": ("x",), "c": ()}
    over = mesh(4, 2, "x", "y")
    tree = {
        name: jax.device_put(values, NamedSharding(over, PartitionSpec(*spec)))
        for name, spec in specs.items()
    }
    sdj.save(path, {**tree, "alone": jnp.zeros(1)})
    axes = [one["axes"] for one in sd.inspect(path)["meshes"]]
    assert axes == [[{"name": "x", "size": 4}, {"name": "y", "size": 2}]]
    command = [sys.executable, "-m", "serdes_ml", "inspect", str(path)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "x=4 x y=2 of 8 devices" in said
    shown = next(line for line in said.splitlines() if "serdes_ml.meshes" in line)
    assert shown.endswith("…")
    assert len(shown) < 150


@pytest.mark.parametrize(
    "meshes",
    [
        "[]",
        '{"leaves":{"w":0}}',
        '{"meshes":[],"shardings":[[0,["x"]]],"leaves":{"w":0}}',
        '{"meshes":[],"shardings":[[0,[["x"],{}]]],"leaves":{"w":0}}',
        '{"meshes":[],"shardings":[],"leaves":{"w":true}}',
    ],
)
def test_meshes_of_another_form_are_errors_of_their_own(path: pathlib.Path, meshes: str) -> None:
    from serdes_ml import _native

    array = np.ones(4, np.float32)
    metadata = [("serdes_ml.meshes", meshes)]
    _native.save(str(path), [("w", "F32", (4,), array)], metadata, "current", False, None, None)
    try:
        loaded = sdj.load(path, mesh=mesh(2, 4, "x", "y"))
    except sd.Corrupt:
        assert meshes == "[]"
    else:
        assert loaded["w"].shape == (4,)
    assert sd.inspect(path)["meshes"] in ([], None)


def test_trees_of_optax_come_back(path: pathlib.Path) -> None:
    optax = pytest.importorskip("optax")
    params = {"dense": {"w": jnp.ones((2, 3)), "b": jnp.zeros(3)}}
    optimizer = optax.chain(
        optax.clip_by_global_norm(1.0),
        optax.adamw(optax.warmup_cosine_decay_schedule(0.0, 1e-3, 2, 10)),
    )
    state = optimizer.init(params)
    for _ in range(3):
        updates, state = optimizer.update(jax.tree.map(jnp.ones_like, params), state, params)
        params = optax.apply_updates(params, updates)
    tree = {"params": params, "opt": state, "multi": optax.MultiSteps(optimizer, 2).init(params)}
    sdj.save(path, tree)
    same(sdj.load(path, like=jax.eval_shape(lambda: tree)), tree)
    plain = sdj.load(path)
    same(plain["params"], params)
    # A chain is loaded as a tuple of tuples, and its named tuples as dicts of their fields.
    clip, (adam, *_) = plain["opt"]
    assert clip == {}
    assert sorted(adam) == ["count", "mu", "nu"]
    assert int(adam["count"]) == 3
    same(adam["mu"], state[1][0].mu)
    # A program that has the class can build it from the fields.
    again = optax.ScaleByAdamState(**adam)
    same(again, state[1][0])


def test_trees_of_flax_come_back(path: pathlib.Path) -> None:
    flax = pytest.importorskip("flax")
    optax = pytest.importorskip("optax")
    from flax import linen, nnx
    from flax.training.train_state import TrainState

    model = linen.Dense(3)
    variables = flax.core.freeze(model.init(jax.random.key(0), jnp.ones((1, 2))))
    train = TrainState.create(apply_fn=model.apply, params=variables["params"], tx=optax.adam(1e-3))
    train = train.apply_gradients(grads=jax.tree.map(jnp.ones_like, train.params))
    sdj.save(path, {"train": train, "frozen": variables})
    loaded = sdj.load(path, like={"train": train, "frozen": variables})
    same(loaded, {"train": train, "frozen": variables})
    assert isinstance(loaded["train"], TrainState)
    plain = sdj.load(path)
    assert sorted(plain["train"]) == ["opt_state", "params", "step"]
    assert type(plain["frozen"]) is dict
    np.testing.assert_array_equal(plain["train"]["params"]["kernel"], train.params["kernel"])
    linear = nnx.Linear(2, 3, rngs=nnx.Rngs(0))
    definition, state = nnx.split(linear)
    sdj.save(path, state)
    merged = nnx.merge(definition, sdj.load(path, like=nnx.eval_shape(lambda: state)))
    np.testing.assert_array_equal(merged(jnp.ones(2)), linear(jnp.ones(2)))
    assert {"kernel", "bias"} <= set(sdj.load(path))


def test_trees_of_equinox_come_back(path: pathlib.Path) -> None:
    eqx = pytest.importorskip("equinox")
    model = eqx.nn.MLP(2, 1, 4, 2, key=jax.random.key(0))
    arrays, static = eqx.partition(model, eqx.is_array)
    sdj.save(path, arrays)
    loaded = eqx.combine(sdj.load(path, like=arrays), static)
    assert float(loaded(jnp.ones(2))[0]) == float(model(jnp.ones(2))[0])
    plain = sdj.load(path)
    assert isinstance(plain["layers"], tuple)
    np.testing.assert_array_equal(plain["layers"][0]["weight"], model.layers[0].weight)
    with pytest.raises(TypeError, match="'activation'"):
        sdj.save(path, model)


def test_steps_give_their_trees(tmp_path: pathlib.Path) -> None:
    tree = {"params": [jnp.ones(2), (1, None)]}
    with sdj.Steps(tmp_path) as steps:
        steps.save(1, tree)
        same(steps.load(1), tree)
        assert sorted(steps.load(1, flat=True)) == ["params/0", "params/1/0"]


def test_the_structure_is_the_packages_own_metadata(path: pathlib.Path) -> None:
    sdj.save(path, {"w": [jnp.ones(1)]}, {"note": "x"}, serdes_version="week-4-old")
    with sd.safe_open(path) as f:
        assert f.metadata() == {"note": "x"}
    metadata = sd.inspect(path)["metadata"]
    assert json.loads(metadata["serdes_ml.tree"]) == {"w": ["list", "*"]}
