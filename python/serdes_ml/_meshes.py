"""Meshes of the leaves of a tree: the names of their axes, and over which of them each leaf lies.

They stand in the metadata of a state: the meshes, each a list of axes with name and size; the
shardings, each the number of a mesh and for each dimension the axis, the axes, or null; and by the
names of the leaves the number of a sharding.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, cast

from ._arrays import imported
from ._state import RESERVED, State

MESHES = RESERVED + "meshes"
"""The meshes of a tree."""

jax = imported("jax")


def meshes_of(named: Iterable[tuple[str, Any]]) -> str | None:
    """The meshes of leaves as they stand in the metadata; None where there is none."""
    meshes: dict[str, int] = {}
    shardings: dict[str, int] = {}
    leaves: dict[str, int] = {}
    for name, leaf in named:
        sharding: Any = getattr(leaf, "sharding", None)
        if not isinstance(sharding, jax.sharding.NamedSharding):
            continue
        axes, spec = list(sharding.mesh.shape.items()), words_of_spec(sharding.spec)
        if spec is None or not all(isinstance(axis, str) for axis, _ in axes):
            continue
        mesh = meshes.setdefault(json.dumps(axes), len(meshes))
        words = json.dumps([mesh, spec])
        leaves[name] = shardings.setdefault(words, len(shardings))
    if not leaves:
        return None
    found = {
        "meshes": [json.loads(text) for text in meshes],
        "shardings": [json.loads(text) for text in shardings],
        "leaves": leaves,
    }
    return json.dumps(found, separators=(",", ":"))


def words_of_spec(spec: Any) -> list[Any] | None:
    """A ``PartitionSpec`` of names of axes; None of one that says more."""
    if getattr(spec, "unreduced", None) or getattr(spec, "reduced", None):
        return None
    words: list[Any] = []
    for one in spec:
        names = list(one) if isinstance(one, tuple) else one
        texts = names if isinstance(names, list) else [names]
        if not all(text is None or isinstance(text, str) for text in texts):
            return None
        words.append(names)
    return words


class Meshes:
    """The shardings of a state over another mesh, whose axes have the same names."""

    def __init__(self, state: State, mesh: Any) -> None:
        found = state.object(MESHES)
        self._mesh = mesh
        self._shardings = _list(found.get("shardings"))
        leaves = found.get("leaves")
        self._leaves = cast("dict[str, Any]", leaves) if isinstance(leaves, dict) else {}

    def sharding(self, name: str, shape: tuple[int, ...]) -> Any:
        """The sharding of a leaf over the mesh; every device has all of a leaf that was not over a
        mesh.

        Raises:
            ValueError: if the mesh has no axis of a name, or does not divide the leaf.
        """
        spec = self._spec(name)
        wanted = {axis for one in spec for axis in (one if isinstance(one, tuple) else (one,))}
        missing = sorted(wanted - {None} - set(self._mesh.shape))
        if missing:
            axes = ", ".join(map(repr, self._mesh.shape)) or "none"
            raise ValueError(
                f"{name!r} lies over {', '.join(map(repr, missing))} in the state, and the mesh"
                f" has the axes {axes}"
            )
        sharding = jax.sharding.NamedSharding(self._mesh, jax.sharding.PartitionSpec(*spec))
        try:
            sharding.shard_shape(shape)
        except ValueError as error:
            first = str(error).partition("\n")[0]
            raise ValueError(f"{name!r} does not fit the mesh: {first}") from None
        return sharding

    def _spec(self, name: str) -> list[Any]:
        number = self._leaves.get(name)
        if type(number) is not int or not 0 <= number < len(self._shardings):
            return []
        words = _list(_list(self._shardings[number])[1:2])
        return spec_of(words[0] if words else None)


def spec_of(words: Any) -> list[Any]:
    """What a ``PartitionSpec`` is made of, by its words; nothing where they are none."""
    spec: list[Any] = []
    for one in _list(words):
        names = tuple(_list(one)) if isinstance(one, list) else one
        texts = names if isinstance(names, tuple) else (names,)
        if not all(text is None or isinstance(text, str) for text in texts):
            return []
        spec.append(names)
    return spec


def _list(found: Any) -> list[Any]:
    return found if isinstance(found, list) else []
