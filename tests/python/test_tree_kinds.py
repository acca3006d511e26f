"""Saves and loads each kind of node of flax, optax and equinox, with and without `like`."""

from __future__ import annotations

import dataclasses
import functools
import os
import pathlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
jax = pytest.importorskip("jax")
optax = pytest.importorskip("optax")
pytest.importorskip("optax.contrib")
flax = pytest.importorskip("flax")
eqx = pytest.importorskip("equinox")

import jax.numpy as jnp  # noqa: E402
from flax import linen, nnx, struct  # noqa: E402
from flax.training.dynamic_scale import DynamicScale  # noqa: E402
from flax.training.train_state import TrainState  # noqa: E402
from serdes_ml import jax as sdj  # noqa: E402
from serdes_ml._trees import flatten  # noqa: E402


@struct.dataclass
class Struct:
    """A dataclass of flax with a field that is not a leaf."""

    w: Any
    name: str = struct.field(pytree_node=False)
    inner: Any = None


@functools.partial(jax.tree_util.register_dataclass, data_fields=["w", "key"], meta_fields=["size"])
@dataclasses.dataclass
class Registered:
    """A dataclass of Python with a field that is not a leaf."""

    w: Any
    key: Any
    size: int


class Module(eqx.Module):
    """A module of equinox with a static field, children and a leaf that may be None."""

    w: Any
    size: int = eqx.field(static=True)
    children: tuple[Any, ...] = ()
    bias: Any = None


class Net(nnx.Module):
    """A network with parameters, statistics, a list, and random keys."""

    def __init__(self) -> None:
        rngs = nnx.Rngs(0)
        self.linear = nnx.Linear(2, 3, rngs=rngs)
        self.norm = nnx.BatchNorm(3, rngs=rngs)
        self.drop = nnx.Dropout(0.5, rngs=rngs)
        self.layers = nnx.List([nnx.Linear(3, 3, rngs=rngs) for _ in range(2)])


def params() -> dict[str, Any]:
    """Returns parameters to be optimised."""
    return {"a": jnp.ones(2), "b": jnp.full((2, 2), 3.0)}


def perceptron() -> Any:
    """Returns the arrays of a model of equinox."""
    return eqx.filter(eqx.nn.MLP(2, 1, 4, 2, key=jax.random.key(0)), eqx.is_inexact_array)


def boxed() -> Any:
    """Returns parameters of linen with the names of their axes."""
    init = linen.with_partitioning(linen.initializers.ones, ("x", None))
    logical = linen.with_logical_partitioning(linen.initializers.ones, ("embed", "mlp"))
    dense = linen.Dense(3, kernel_init=init)
    other = linen.Dense(3, kernel_init=logical)
    ones = jnp.ones((1, 2))
    return [one.init(jax.random.key(0), ones) for one in (dense, other)]


# A static field of a train state, made once because each call would return another object.
OPTIMIZER = optax.adam(1e-3)


def train_state() -> Any:
    """Returns a train state of flax with an optimizer, scaled gradients and early stopping."""
    state = TrainState.create(apply_fn=None, params=params(), tx=OPTIMIZER)
    scale = DynamicScale(fin_steps=jnp.int32(0), scale=jnp.float32(2.0))
    return state.replace(step=jnp.int32(0)), scale


def metrics() -> Any:
    """Returns metrics of nnx that have some values."""
    found = nnx.MultiMetric(loss=nnx.metrics.Average("loss"), spread=nnx.metrics.Welford("x"))
    found.update(loss=jnp.ones(2), x=jnp.arange(3.0))
    return nnx.state(found)


def layers() -> Any:
    """Returns layers of equinox with states of their own, and one that two others share."""
    model, state = eqx.nn.make_with_state(eqx.nn.SpectralNorm)(
        eqx.nn.Linear(2, 2, key=jax.random.key(0)), "weight", key=jax.random.key(1)
    )
    linear = eqx.nn.Linear(2, 2, key=jax.random.key(2))
    shared = eqx.nn.Shared([linear, linear], lambda m: m[0].weight, lambda m: m[1].weight)
    return eqx.filter((model, state, shared), eqx.is_array)


def partitioned() -> Any:
    """Returns the state of an optimizer for each group of parameters."""
    groups = {"x": optax.adam(1e-3), "y": optax.sgd(0.1, momentum=0.9)}
    return optax.multi_transform(groups, {"a": "x", "b": "y"}).init(params())


KINDS: dict[str, Callable[[], Any]] = {
    "optax chain": lambda: optax.chain(optax.clip(1.0), optax.adamw(1e-3)).init(params()),
    "optax masked": lambda: optax.masked(optax.adam(1e-3), {"a": True, "b": False}).init(params()),
    "optax hyperparams": lambda: optax.inject_hyperparams(optax.adam)(1e-3).init(params()),
    "optax partition": partitioned,
    "optax if finite": lambda: optax.apply_if_finite(optax.identity(), 3).init(params()),
    "optax factored": lambda: optax.adafactor(1e-3).init({"w": jnp.ones((256, 256))}),
    "optax lbfgs": lambda: optax.lbfgs().init(params()),
    "optax several steps": lambda: optax.MultiSteps(optax.adam(1e-3), 2).init(params()),
    "optax lookahead": lambda: optax.lookahead(optax.sgd(0.1), 5, 0.5).init(
        optax.LookaheadParams.init_synced(params())
    ),
    "optax contrib": lambda: [
        one.init(params())
        for one in (
            optax.contrib.schedule_free_adamw(1e-3),
            optax.contrib.muon(1e-3),
            optax.contrib.prodigy(),
            optax.contrib.sam(optax.sgd(0.1), optax.sgd(0.1)),
            optax.contrib.reduce_on_plateau(),
        )
    ],
    "flax boxed": boxed,
    "flax train state": train_state,
    "nnx flat state": lambda: nnx.state(Net()).flat_state(),
    "nnx variable": lambda: {"w": nnx.Param(jnp.ones(2)), "c": nnx.Cache(jnp.zeros(1))},
    "nnx module": Net,
    "nnx split": lambda: nnx.split(Net(), nnx.Param, ...)[1:],
    "nnx metrics": metrics,
    "nnx random": lambda: nnx.state(nnx.Rngs(0, params=1)),
    "equinox layers": layers,
    "equinox partial": lambda: eqx.filter(eqx.Partial(jnp.add, jnp.ones(2)), eqx.is_array),
    "jax partial": lambda: jax.tree_util.Partial(jnp.add, jnp.ones(2), y=jnp.zeros(1)),
    "flax dataclass": lambda: Struct(jnp.ones(2), "static", Struct(jnp.zeros(1), "x")),
    "flax batch norm": lambda: linen.BatchNorm(use_running_average=False).init(
        jax.random.key(0), jnp.ones((2, 3))
    ),
    "flax frozen": lambda: flax.core.freeze({"a": {"b": jnp.ones(1)}, "c": {}}),
    "nnx state": lambda: nnx.state(Net()),
    "nnx parameters": lambda: nnx.state(Net(), nnx.Param),
    "nnx pure dict": lambda: nnx.to_pure_dict(nnx.state(Net())),
    "nnx optimizer": lambda: nnx.state(nnx.Optimizer(Net(), optax.adam(1e-3), wrt=nnx.Param)),
    "equinox module": lambda: Module(jnp.ones(2), 7, (Module(jnp.zeros(1), 1), jnp.ones(1))),
    "equinox state": lambda: eqx.filter(
        eqx.nn.make_with_state(eqx.nn.BatchNorm)(3, "batch", mode="ema"), eqx.is_array
    ),
    "equinox optimizer": lambda: optax.adam(1e-3).init(perceptron()),
    "dataclass": lambda: Registered(jnp.ones(2), jax.random.key(1), 4),
    "random keys": lambda: {
        "typed": jax.random.split(jax.random.key(2), 3),
        "other": jax.random.key(1, impl="rbg"),
        "raw": jax.random.PRNGKey(0),
    },
    "empty": lambda: {"dict": {}, "tuple": (), "list": [], "none": None, "w": jnp.ones(1)},
}


def made(kind: type) -> Any:
    """Returns an object of a class with an array in each field, or None if none can be set."""
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return kind(*(jnp.full(2, number) for number in range(len(kind._fields))))
    if not dataclasses.is_dataclass(kind):
        return None
    found = object.__new__(kind)
    for number, field in enumerate(dataclasses.fields(kind)):
        is_leaf = field.metadata.get("pytree_node", not field.metadata.get("static"))
        value = jnp.full(2, number) if is_leaf else "static"
        try:
            object.__setattr__(found, field.name, value)
        except AttributeError:
            return None
    return found


def nodes(package: str) -> dict[str, Any]:
    """Returns an object of each class of a package that is a JAX node, by the class's name."""
    found: dict[str, Any] = {}
    modules = [one for name, one in sys.modules.items() if name.split(".")[0] == package]
    classes = {one for module in modules for one in vars(module).values() if isinstance(one, type)}
    for kind in classes:
        if kind.__module__.split(".")[0] != package:
            continue
        try:
            one = made(kind)
            leaves = jax.tree.leaves(one)
        except Exception:
            # Some classes have requirements on their fields; the kinds above include them.
            continue
        if leaves and leaves[0] is not one and all(isinstance(leaf, jax.Array) for leaf in leaves):
            found[f"{kind.__module__}.{kind.__qualname__}"] = one
    return found


def values(tree: Any) -> dict[str, Any]:
    """Returns the leaves by their names, with keys as their numbers."""

    def value(leaf: Any) -> Any:
        is_keys = jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        return np.asarray(jax.random.key_data(leaf) if is_keys else leaf)

    return {name: value(leaf) for name, leaf in flatten(tree)[0]}


def same(found: Any, expected: dict[str, Any]) -> None:
    """Compares leaves by their names."""
    leaves = values(found)
    assert sorted(leaves) == sorted(expected)
    for name, leaf in leaves.items():
        assert leaf.dtype == expected[name].dtype, name
        np.testing.assert_array_equal(leaf, expected[name], name)


@pytest.mark.parametrize("kind", KINDS)
def test_a_tree_of_each_kind_comes_back(path: pathlib.Path, kind: str) -> None:
    tree = KINDS[kind]()
    sdj.save(path, tree)
    for like in (tree, jax.eval_shape(KINDS[kind])):
        loaded = sdj.load(path, like)
        assert jax.tree.structure(loaded) == jax.tree.structure(tree)
        same(loaded, values(tree))
    # Without `like` the leaves have the same names, in containers that need no import.
    plain = sdj.load(path)
    same(plain, values(tree))
    kinds: set[type] = set()

    def visit(node: Any) -> None:
        if isinstance(node, (dict, list, tuple)):
            kinds.add(type(node))
            for child in node.values() if isinstance(node, dict) else node:
                visit(child)

    visit(plain)
    assert kinds <= {dict, list, tuple}


def test_scalars_come_back_as_they_were(path: pathlib.Path) -> None:
    tree = (1, 2.5, True, "text", np.float32(3), np.int64(4), np.bool_(True), jnp.float32(1))
    sdj.save(path, tree)
    for loaded in (sdj.load(path), sdj.load(path, tree)):
        assert loaded == tree
        assert [type(leaf) for leaf in loaded[:4]] == [int, float, bool, str]
        assert [leaf.dtype for leaf in loaded[4:]] == [leaf.dtype for leaf in tree[4:]]


@pytest.mark.parametrize(("package", "least"), [("optax", 60), ("equinox", 50), ("flax", 5)])
def test_each_class_of_a_package_comes_back(path: pathlib.Path, package: str, least: int) -> None:
    tree = nodes(package)
    assert len(tree) >= least, sorted(tree)
    sdj.save(path, tree)
    loaded = sdj.load(path, like=tree)
    assert jax.tree.structure(loaded) == jax.tree.structure(tree)
    same(loaded, values(tree))
    same(sdj.load(path), values(tree))
