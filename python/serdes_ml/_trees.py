"""Structures of pytrees in the metadata of a state, and trees that are made of them again.

The structure is JSON. A leaf is ``"*"``; its name is that of its path, the texts of the keys with
``/`` between them. An object is a dict with texts as keys, ``null`` is None, and a list is a node
of the kind that its first element says:

* ``["list", …]`` and ``["tuple", …]``: the children follow.
* ``["dict", [key, child], …]``: a dict with keys that are not all texts.
* ``["ordered", [key, child], …]``: a ``collections.OrderedDict``.
* ``["fields", class, [name, child], …]``: a named tuple, or a node of a class of somebody's own
  whose children have names. Nothing imports the class: it comes back as a dict.
* ``["items", class, child, …]``: one whose children have numbers. It comes back as a list.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from ._arrays import imported
from ._state import LEAF

jax = imported("jax")


def name_of(path: Any) -> str:
    """The name of a leaf by its path."""
    return str(jax.tree_util.keystr(path, simple=True, separator="/"))


def flatten(tree: Any) -> tuple[list[tuple[str, Any]], Any]:
    """The leaves of a tree with their names, and what makes a tree of others.

    Raises:
        ValueError: if two leaves have one name.
    """
    leaves, structure = jax.tree_util.tree_flatten_with_path(tree)
    named = [(name_of(path), leaf) for path, leaf in leaves]
    seen: set[str] = set()
    for name, _ in named:
        if name in seen:
            raise ValueError(f"two leaves are called {name!r}; names in a state are unique")
        seen.add(name)
    return named, structure


def structure_of(tree: Any) -> str:
    """The structure of a tree, whose names are known to be unique, as it stands in the metadata."""
    return json.dumps(_node(tree), separators=(",", ":"))


def _node(node: Any) -> Any:
    if node is None:
        return None
    children, _ = jax.tree_util.tree_flatten_with_path(node, is_leaf=lambda one: one is not node)
    if len(children) == 1 and not children[0][0]:
        return LEAF
    kind = type(node)
    below = [_node(child) for _, child in children]
    if kind in (list, tuple):
        return [kind.__name__, *below]
    keys = [path[0] for path, _ in children]
    if isinstance(node, Mapping) and all(hasattr(key, "key") for key in keys):
        return _mapping(kind, [key.key for key in keys], below)
    texts = [name_of((key,)) for key in keys]
    words = f"{kind.__module__}.{kind.__qualname__}"
    if all(hasattr(key, "idx") or type(key).__name__ == "FlattenedIndexKey" for key in keys):
        # Nodes without children have no keys that tell; the fields of a named tuple do.
        named = hasattr(node, "_fields") or (not keys and hasattr(node, "__dataclass_fields__"))
        if not named:
            return ["items", words, *below]
    return ["fields", words, *map(list, zip(texts, below, strict=True))]


def _mapping(kind: type[Any], keys: list[Any], below: list[Any]) -> Any:
    if kind is not OrderedDict and all(type(key) is str for key in keys):
        return dict(zip(keys, below, strict=True))
    # Keys that are no values of JSON come back as the texts that name the leaves.
    plain = (str, int, float, bool, type(None))
    kept = [key if type(key) in plain else name_of((jax.tree_util.DictKey(key),)) for key in keys]
    word = "ordered" if kind is OrderedDict else "dict"
    return [word, *map(list, zip(kept, below, strict=True))]


class _Unknown(Exception):
    """A structure that this build does not know."""


def tree_of(text: str | None, leaves: Mapping[str, Any]) -> Any:
    """The tree of a structure, whose leaves these are, by all their names.

    Without a structure, and where tensors of the state were taken away or added, nested dicts by
    the names.
    """
    if text is not None:
        try:
            structure = json.loads(text)
            taken: set[str] = set()
            tree = _made(structure, (), leaves, taken)
            if len(taken) == len(leaves):
                return tree
        except (_Unknown, ValueError, RecursionError):
            # Written by a newer build, or not for these leaves.
            pass
    return nested(leaves)


def _made(node: Any, path: tuple[str, ...], leaves: Mapping[str, Any], taken: set[str]) -> Any:
    if node is None:
        return None
    if node == LEAF:
        name = "/".join(path)
        if name not in leaves or name in taken:
            raise _Unknown
        taken.add(name)
        return leaves[name]
    if isinstance(node, dict):
        pairs = cast("dict[str, Any]", node).items()
        return {key: _made(child, (*path, key), leaves, taken) for key, child in pairs}
    if not isinstance(node, list) or not node:
        raise _Unknown
    kind, *rest = _list(node)
    if kind in ("list", "tuple"):
        made = _numbered(rest, path, leaves, taken)
        return made if kind == "list" else tuple(made)
    if kind in ("dict", "ordered"):
        found = OrderedDict[Any, Any]() if kind == "ordered" else dict[Any, Any]()
        for key, child in _pairs(rest):
            text = name_of((jax.tree_util.DictKey(key),))
            found[key] = _made(child, (*path, text), leaves, taken)
        return found
    if not rest or not isinstance(rest[0], str):
        raise _Unknown
    if kind == "items":
        return _numbered(rest[1:], path, leaves, taken)
    if kind == "fields":
        fields = {}
        for key, child in _pairs(rest[1:]):
            fields[key] = _made(child, (*path, str(key)), leaves, taken)
        return fields
    raise _Unknown


def _numbered(
    nodes: list[Any], path: tuple[str, ...], leaves: Mapping[str, Any], taken: set[str]
) -> list[Any]:
    return [_made(child, (*path, str(number)), leaves, taken) for number, child in enumerate(nodes)]


def _pairs(nodes: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    seen: set[Any] = set()
    for pair in nodes:
        both = _list(pair)
        if len(both) != 2:
            raise _Unknown
        key, child = both
        if isinstance(key, (list, dict)) or key in seen:
            raise _Unknown
        seen.add(key)
        yield key, child


def _list(found: Any) -> list[Any]:
    return found if isinstance(found, list) else []


def nested(leaves: Mapping[str, Any]) -> dict[str, Any]:
    """Nested dicts of leaves by their names, where ``/`` divides; what lies below the name of
    another leaf keeps the rest of its own name.
    """
    found: dict[str, Any] = {}
    # Those that were made here, and are no leaves.
    inner: set[int] = set()
    for name in sorted(leaves):
        parts = name.split("/")
        at, number = found, 0
        while number < len(parts) - 1:
            if parts[number] not in at:
                at[parts[number]] = {}
                inner.add(id(at[parts[number]]))
            if id(at[parts[number]]) not in inner:
                break
            at = at[parts[number]]
            number += 1
        at["/".join(parts[number:])] = leaves[name]
    return found
