"""Trees in the state of a server, by the names of their leaves.

jaxlib's client can neither name an array nor reach one that is on the server already. So arrays
pass through this process, in a session of the package's own client beside JAX's: the server keeps
them as ``NAME.arrays/LEAF@SAVE``, and one array, ``NAME.arrays/.index``, is the JSON that says
which save is the last, what its leaves were, and how they lay. It comes after the leaves, so that
a state that the server writes meanwhile has all of one save.
"""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from . import _native
from ._arrays import Array, check_alive, dtype_name, dtype_of, imported
from ._endpoint import Endpoint
from ._errors import Corrupt
from ._meshes import spec_of, words_of_spec
from ._mismatches import Mismatches
from ._random_keys import generator_of, is_keys
from ._restoring import is_plain
from ._shards import words_of
from ._trees import flatten, structure_of, tree_of

jax = imported("jax")

_INDEX = ".index"


class KeptNothing(Exception):
    """The server has nothing of a tree that was saved."""


class Keeper:
    """The arrays that a server keeps under a name."""

    def __init__(self, endpoint: Endpoint, name: str, token: str | None, seconds: float) -> None:
        self._endpoint, self._name = endpoint, f"{name}.arrays"
        self._token, self._seconds = token, seconds

    def save(self, tree: Any) -> None:
        """Have the server keep a tree in place of the one before."""
        named, _ = flatten(tree)
        save = f"{time.time_ns():x}"
        plain: dict[str, Any] = {}
        keys: dict[str, str] = {}
        lie: dict[str, Any] = {}
        given: list[tuple[Any, ...]] = []
        for name, leaf in named:
            if is_plain(leaf):
                plain[name] = leaf
                continue
            if is_keys(leaf):
                keys[name] = generator_of(name, leaf)
                leaf = jax.random.key_data(leaf)
            given.append(_given(name, leaf))
            lie[name] = _lying(leaf)
        index = {
            "save": save,
            "tree": structure_of(tree),
            "leaves": plain,
            "keys": keys,
            "arrays": lie,
        }
        text = np.frombuffer(json.dumps(index).encode(), np.uint8)
        own = [f"{self._name}/{name}@{save}" for name in lie]
        session = self._open([*own, f"{self._name}/{_INDEX}"])
        for array in given:
            session.put(array)
        session.put(("U8", text.shape, [given[0][2][0] if given else 0], None, None, text))
        before = [
            name
            for name, _, _ in session.arrays()
            if name.startswith(f"{self._name}/") and not name.endswith(f"/{_INDEX}")
        ]
        session.delete(before)
        session.leave()
        # A server without a state takes arrays, and has them no longer when their session ends. The
        # names are this session's until then.
        del session
        if all(name != f"{self._name}/{_INDEX}" for name, _, _ in self._open([]).arrays()):
            raise KeptNothing(
                f"the server at {self._endpoint} keeps no arrays; start it with `--state FILE`"
            )

    def load(self, devices: Mapping[int, Any], like: Any) -> Any:
        """The tree that the server keeps, with its shardings; an empty dict if it keeps none."""
        session = self._open([])
        kept = {name: (dtype, shape) for name, dtype, shape in session.arrays()}

        def read(name: str) -> Array:
            dtype, shape = kept[name]
            array: Array = np.empty(shape, dtype_of(name, dtype))
            session.read_into(name, array)
            return array

        at = f"{self._name}/{_INDEX}"
        if at not in kept:
            return {}
        index = _parsed(read(at).tobytes())
        save, lie, keys = index["save"], index["arrays"], index["keys"]
        leaves: dict[str, Any] = dict(index["leaves"])
        for name, one in lie.items():
            stored = f"{self._name}/{name}@{save}"
            if stored not in kept:
                raise _corrupt(f"the server keeps no array {stored!r}, which its index names")
            array = _put(read(stored), one, devices)
            leaves[name] = (
                jax.random.wrap_key_data(array, impl=keys[name]) if name in keys else array
            )
        return tree_of(index["tree"], leaves) if like is None else _like(like, leaves, self._name)

    def _open(self, names: list[str]) -> _native.Session:
        end = self._endpoint
        authority = certificate = None
        if end.tls:
            found = end.ca or ssl.get_default_verify_paths().cafile
            authority = _contents(found) if found else b""
            if end.cert is not None and end.key is not None:
                certificate = (_contents(end.cert), _contents(end.key))
        scheme = "https" if end.tls else "http"
        address = f"{scheme}://{end.target}"
        return _native.Session.open(
            address, self._name, names, self._token, authority, certificate, self._seconds
        )


def _contents(path: str) -> bytes:
    with open(path, "rb") as file:  # noqa: PTH123
        return file.read()


def _given(name: str, leaf: Any) -> tuple[Any, ...]:
    """An array as the extension puts it onto the server."""
    if not isinstance(leaf, jax.Array):
        array = np.asarray(leaf, order="C")
        return (dtype_name(name, array.dtype), array.shape, [0], None, None, array)
    check_alive(name, leaf)
    array = np.ascontiguousarray(np.asarray(leaf)).reshape(leaf.shape)
    sharding = leaf.sharding
    devices = [device.id for device in sharding.devices_indices_map(leaf.shape)]
    words = words_of(sharding, leaf.ndim)
    dtype = dtype_name(name, array.dtype)
    return (dtype, array.shape, devices, words, sharding.memory_kind, array)


def _lying(leaf: Any) -> dict[str, Any]:
    """How an array lies on the devices, as JSON."""
    if not isinstance(leaf, jax.Array):
        return {"host": True}
    sharding = leaf.sharding
    found: dict[str, Any] = {"kind": sharding.memory_kind}
    if isinstance(sharding, jax.sharding.NamedSharding):
        spec = words_of_spec(sharding.spec)
        axes = [[str(name), size] for name, size in sharding.mesh.shape.items()]
        if spec is not None:
            devices = [device.id for device in sharding.mesh.devices.flat]
            return {**found, "axes": axes, "devices": devices, "spec": spec}
    return {**found, "devices": [min(device.id for device in sharding.device_set)]}


def _put(array: Array, lies: Any, devices: Mapping[int, Any]) -> Any:
    """An array on the devices where it lay; where they are not there, on the default one."""
    if lies.get("host"):
        return array
    found = [devices.get(number) for number in lies["devices"]]
    if None in found:
        return jax.device_put(array)
    kind = lies.get("kind")
    if "axes" not in lies:
        return jax.device_put(array, jax.sharding.SingleDeviceSharding(found[0], memory_kind=kind))
    names = [name for name, _ in lies["axes"]]
    shape = [size for _, size in lies["axes"]]
    mesh = jax.sharding.Mesh(np.array(found, dtype=object).reshape(shape), names)
    spec = jax.sharding.PartitionSpec(*spec_of(lies["spec"]))
    sharding = jax.sharding.NamedSharding(mesh, spec, memory_kind=kind)
    return jax.device_put(array, sharding)


def _like(like: Any, leaves: Mapping[str, Any], where: str) -> Any:
    """The leaves in the structure of another tree."""
    named, structure = flatten(like)
    mismatches = Mismatches(where, leaves)
    for name, _ in named:
        if name not in leaves:
            mismatches.missing(name)
    mismatches.check(name for name, _ in named)
    return jax.tree_util.tree_unflatten(structure, [leaves[name] for name, _ in named])


def _parsed(text: bytes) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _corrupt(f"the index of the arrays is no JSON: {error}") from None
    words = {"save": str, "tree": str, "leaves": dict, "keys": dict, "arrays": dict}
    if not isinstance(found, dict) or not all(
        isinstance(found.get(key), kind) for key, kind in words.items()
    ):
        raise _corrupt("the index of the arrays has not the fields of one")
    return cast("dict[str, Any]", found)


def _corrupt(message: str) -> Corrupt:
    return Corrupt(message, "corrupt", remedy="Save the arrays again.")
