"""Trees in the state of a server, by the names of their leaves.

jaxlib's client can neither name an array nor reach one that is on the server already. So arrays
pass through this process, in one session of the package's own client beside JAX's, which is open
from the first tree on for as long as the connection: the server keeps them as
``NAME.arrays/LEAF@SAVE``, and one array, ``NAME.arrays/.index``, is the JSON that says which save
is the last, what its leaves were, and how they lay. The server puts all of a save in the place of
the one before at once.
"""

from __future__ import annotations

import json
import secrets
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
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
    """The arrays that a server keeps under a name; from several threads one after the other."""

    def __init__(
        self, endpoint: Endpoint, name: str, token: str | None, previous_token: str | None
    ) -> None:
        self._endpoint, self._name = endpoint, f"{name}.arrays"
        self._token, self._previous_token = token, previous_token
        self._index = f"{self._name}/{_INDEX}"
        self._lock = threading.Lock()
        self._session: _native.Session | None = None

    def close(self) -> None:
        """End the session."""
        with self._lock:
            self._session = None

    def save(self, tree: Any, seconds: float) -> None:
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
        given.append(("U8", text.shape, [given[0][2][0] if given else 0], None, None, text))
        names = [*(f"{self._name}/{name}@{save}" for name in lie), self._index]
        with self._open(seconds) as (session, _):
            for array in given:
                session.put(array)
            try:
                session.keep(self._name, names, self._previous_token)
            except NotImplementedError:
                raise KeptNothing(
                    f"the server at {self._endpoint} keeps no arrays; start it with `--state FILE`"
                ) from None
            # Those of the token before are gone with this.
            self._previous_token = None

    def load(self, devices: Mapping[int, Any], like: Any, seconds: float) -> Any:
        """The tree that the server keeps, with its shardings; an empty dict if it keeps none."""
        with self._open(seconds) as (session, kept):
            if self._index in kept or self._previous_token is None:
                found = self._read(session, kept)
            else:
                session = self._new(self._previous_token, seconds)
                found = self._read(session, _described(session))
        return {} if found is None else self._tree(found, devices, like)

    def _read(self, session: _native.Session, kept: _Kept) -> _Found | None:
        """The index and the arrays of the last save; None if there is none."""

        def read(name: str) -> Array:
            if name not in kept:
                raise _corrupt(f"the server keeps no array {name!r}, which its index names")
            dtype, shape = kept[name]
            array: Array = np.empty(shape, dtype_of(name, dtype))
            session.read_into(name, array)
            return array

        if self._index not in kept:
            return None
        index = _parsed(read(self._index).tobytes())
        save = index["save"]
        return index, {name: read(f"{self._name}/{name}@{save}") for name in index["arrays"]}

    def _tree(self, found: _Found, devices: Mapping[int, Any], like: Any) -> Any:
        index, arrays = found
        keys = index["keys"]
        leaves: dict[str, Any] = dict(index["leaves"])
        for name, lies in index["arrays"].items():
            array = _put(arrays[name], lies, devices)
            leaves[name] = (
                jax.random.wrap_key_data(array, impl=keys[name]) if name in keys else array
            )
        return tree_of(index["tree"], leaves) if like is None else _like(like, leaves, self._name)

    @contextmanager
    def _open(self, seconds: float) -> Iterator[tuple[_native.Session, _Kept]]:
        """The session, and what the state has now. One that is over is opened anew."""
        with self._lock:
            session, kept = self._session, None
            if session is not None:
                with suppress(ConnectionError, RuntimeError):
                    kept = _described(session)
            if session is None or kept is None:
                self._session = None
                session = self._new(self._token, seconds)
                kept = _described(session)
                self._session = session
            try:
                yield session, kept
            finally:
                # What stays is no more than the index: the server ends a session that has nothing.
                session.release(self._index)

    def _new(self, token: str | None, seconds: float) -> _native.Session:
        end = self._endpoint
        authority = certificate = None
        if end.tls:
            found = end.ca or ssl.get_default_verify_paths().cafile
            authority = _contents(found) if found else b""
            if end.cert is not None and end.key is not None:
                certificate = (_contents(end.cert), _contents(end.key))
        scheme = "https" if end.tls else "http"
        address = f"{scheme}://{end.target}"
        # What a save leaves behind that breaks off is below the name, and goes with the next.
        own = f"{self._name}/.{secrets.token_hex(8)}"
        return _native.Session.open(address, own, token, authority, certificate, seconds)


# The arrays of a state by their names: types and shapes.
_Kept = dict[str, tuple[str, list[int]]]
# An index, and the arrays of its leaves.
_Found = tuple[dict[str, Any], dict[str, Array]]


def _described(session: _native.Session) -> _Kept:
    return {name: (dtype, shape) for name, dtype, shape in session.arrays()}


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
