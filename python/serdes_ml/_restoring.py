"""Leaves of a state onto the devices of JAX: all of them by their names, or those of a tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from ._arrays import STRING, dtype_of, imported
from ._errors import wrong_type
from ._meshes import Meshes
from ._mismatches import Mismatches
from ._progress import Progress
from ._random_keys import Keys, is_keys
from ._shards import Loading, wanted_of
from ._state import LEAVES, State

jax = imported("jax")


def is_plain(leaf: object) -> bool:
    """Whether a leaf is no array, and is kept as it is."""
    return isinstance(leaf, (bool, int, float, str)) and not isinstance(leaf, np.generic)


def load_all(state: State, mesh: Any, verify: bool, progress: Progress) -> dict[str, Any]:
    """All leaves by their names: over a mesh as they were over one, or on the default device."""
    plain, keys = state.object(LEAVES), Keys(state)
    loading, mismatches = plan_all(state, mesh, verify)
    mismatches.check(state.names)
    names = dict(enumerate(state.names))
    found: dict[str, Any] = {}
    for position, leaf in loading.finish(progress).items():
        name = names[position]
        found[name] = keys.wrapped(name, leaf, None) if name in keys else leaf
    found.update(plain)
    return dict(sorted(found.items()))


def plan_all(state: State, mesh: Any, verify: bool) -> tuple[Loading, Mismatches]:
    """The load of all leaves, each at the place of its name, and those that do not fit the mesh."""
    meshes = None if mesh is None else Meshes(state, mesh)
    mismatches = Mismatches(state.name, state.names)
    loading = Loading(state, verify)
    for position, name in enumerate(state.names):
        dtype, shape = state.describe(name)
        stored = dtype_of(name, dtype)
        if dtype == STRING or jax.dtypes.canonicalize_dtype(stored) != stored:
            loading.add_on_host(position, name, stored)
            continue
        try:
            sharding = None if meshes is None else meshes.sharding(name, shape)
        except ValueError as error:
            mismatches.differs(name, str(error))
        else:
            loading.add(position, wanted_of(name, shape, stored, sharding), stored)
    return loading, mismatches


def load_like(
    state: State,
    named: Sequence[tuple[str, Any]],
    mesh: Any,
    cast_types: bool,
    verify: bool,
    progress: Progress,
) -> list[Any]:
    """The leaves of a tree, each with its name and what it is to be like.

    Raises:
        TreeMismatch: if the state does not fit.
        TypeError: if nothing can be like a leaf of the tree.
    """
    plan = plan_like(state, named, mesh, cast_types, verify)
    plan.mismatches.check(name for name, _ in named)
    found = plan.plain
    found.update(plan.fitting.loading.finish(progress))
    for position, sharding in plan.fitting.shardings_of_keys.items():
        name = named[position][0]
        found[position] = plan.fitting.keys.wrapped(name, found[position], sharding)
    return [found[position] for position in range(len(named))]


class LikePlan(NamedTuple):
    """The load of the leaves of a tree."""

    fitting: _Fitting
    mismatches: Mismatches
    # Leaves that are no arrays, by their places.
    plain: dict[int, Any]


def plan_like(
    state: State,
    named: Sequence[tuple[str, Any]],
    mesh: Any,
    cast_types: bool,
    verify: bool,
) -> LikePlan:
    """Compare the leaves of a tree with those of a state.

    Raises:
        TypeError: if nothing can be like a leaf of the tree.
    """
    plain = state.object(LEAVES)
    mismatches = Mismatches(state.name, [*state.names, *plain])
    fitting = _Fitting(state, plain, mesh, cast_types, verify)
    found: dict[int, Any] = {}
    for position, (name, leaf) in enumerate(named):
        known = name in plain or name in state.names_set
        if not known:
            _check_kind(name, leaf)
            mismatches.missing(name)
            continue
        try:
            if is_plain(leaf):
                found[position] = fitting.plain_value(name)
            else:
                fitting.add(position, name, leaf)
        except ValueError as error:
            mismatches.differs(name, str(error))
    return LikePlan(fitting, mismatches, found)


def _check_kind(name: str, leaf: Any) -> None:
    if is_plain(leaf) or (hasattr(leaf, "dtype") and hasattr(leaf, "shape")):
        return
    expected = "an array, a jax.ShapeDtypeStruct, or a plain value"
    raise wrong_type(f"{name!r} of like", leaf, expected)


class _Fitting:
    """The leaves of a tree that are in a state, compared with what they are to be."""

    def __init__(
        self, state: State, plain: dict[str, Any], mesh: Any, cast_types: bool, verify: bool
    ) -> None:
        self._state, self._plain, self._cast = state, plain, cast_types
        self._meshes = None if mesh is None else Meshes(state, mesh)
        self.keys = Keys(state)
        self.loading = Loading(state, verify)
        self.shardings_of_keys: dict[int, Any] = {}

    def plain_value(self, name: str) -> Any:
        """A leaf that is no array.

        Raises:
            ValueError: if it is one.
        """
        if name not in self._plain:
            raise ValueError(
                f"{name!r} is an array in the state, and a plain value in like;"
                " give an array there, such as jnp.int32(0)"
            )
        return self._plain[name]

    def add(self, position: int, name: str, leaf: Any) -> None:
        """Have a leaf loaded.

        Raises:
            ValueError: if it is not like ``leaf``.
            TypeError: if nothing is.
        """
        if name in self._plain:
            found = type(self._plain[name]).__name__
            raise ValueError(f"{name!r} is a plain {found} in the state, and not an array")
        dtype, shape = self._state.describe(name)
        stored = dtype_of(name, dtype)
        if is_keys(leaf):
            sharding = self.keys.wanted(name, leaf, shape)
            if sharding is None:
                sharding = self._over_mesh(name, shape)
            self.loading.add(position, wanted_of(name, shape, stored, sharding), stored)
            self.shardings_of_keys[position] = getattr(leaf, "sharding", None)
            return
        wants = _wants(name, leaf, stored, shape, self._cast)
        if stored.kind == "O" or isinstance(leaf, (np.ndarray, np.generic)):
            self.loading.add_on_host(position, name, wants)
            return
        sharding = getattr(leaf, "sharding", None)
        if sharding is None:
            sharding = self._over_mesh(name, shape)
        self.loading.add(position, wanted_of(name, shape, wants, sharding), stored)

    def _over_mesh(self, name: str, shape: tuple[int, ...]) -> Any:
        return None if self._meshes is None else self._meshes.sharding(name, shape)


def _wants(
    name: str, leaf: Any, stored: np.dtype[Any], shape: tuple[int, ...], cast_types: bool
) -> np.dtype[Any]:
    """The type that a leaf is to have."""
    _check_kind(name, leaf)
    try:
        wants = np.dtype(leaf.dtype)
    except TypeError:
        raise TypeError(f"{name!r} of like has no type that numpy knows: {leaf.dtype!r}") from None
    # Strings are of one type in a state, whatever numpy calls theirs.
    strings = (stored.kind == "O", wants.kind in "OUST")
    if all(strings):
        wants = stored
    if tuple(leaf.shape) != shape or any(strings) != all(strings):
        raise ValueError(
            f"{name!r} is {_words(stored)}{list(shape)} in the state, and not"
            f" {_words(wants)}{list(leaf.shape)}"
        )
    if stored != wants and not cast_types:
        raise ValueError(
            f"{name!r} is {stored} in the state, and not {wants}; cast=True converts it"
        )
    on_host = isinstance(leaf, (np.ndarray, np.generic)) or stored.kind == "O"
    if not (on_host or cast_types) and jax.dtypes.canonicalize_dtype(wants) != wants:
        raise ValueError(
            f"{name!r} is {stored} in the state, which this process of jax does not have; set"
            " jax_enable_x64, load it like an array of numpy, or convert it with cast=True"
        )
    return cast("np.dtype[Any]", wants)


def _words(dtype: np.dtype[Any]) -> str:
    return "strings" if dtype.kind in "OUST" else str(dtype)
