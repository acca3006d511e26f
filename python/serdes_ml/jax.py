"""Pytrees of JAX with their shardings, saved and restored by any number of processes.

Every process of ``jax.distributed`` calls the same function with the same tree; each writes the
shards that it owns, once for replicas, and reads what its own shards need, whatever the mesh and
the number of processes were.

>>> import tempfile, pathlib, jax.numpy as jnp
>>> from serdes_ml import jax as sdj
>>> path = pathlib.Path(tempfile.mkdtemp()) / "state.sds"
>>> sdj.save(path, {"params": {"w": jnp.ones((2, 2))}, "step": 7})
>>> sorted(sdj.load(path))
['params/w', 'step']
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from . import _native
from ._arrays import (
    STRING,
    Array,
    check_alive,
    dtype_name,
    dtype_of,
    imported,
    strings_of,
    to_numpy,
)
from ._async import Future, in_background
from ._connect import (
    ConnectError,
    Connection,
    SessionRefused,
    TokenRefused,
    Unreachable,
    VersionMismatch,
    connect,
)
from ._files import RESERVED, State, metadata_of, version_of
from ._paths import Path, place
from ._processes import DEFAULT_TIMEOUT, Processes
from ._progress import Progress, listener
from ._random_keys import KEYS, Keys, generator_of, is_keys
from ._shards import Loading, part_of, wanted_of, words_of
from ._steps import Steps as _Steps
from ._transfers import AHEAD_BYTES, Transfers

__all__ = [
    "ConnectError",
    "Connection",
    "Future",
    "SessionRefused",
    "Steps",
    "TokenRefused",
    "Unreachable",
    "VersionMismatch",
    "connect",
    "load",
    "save",
    "save_async",
]

jax = imported("jax")

LEAVES = RESERVED + "leaves"
"""Leaves that are no arrays: a JSON object of names and values."""


class _Leaves(NamedTuple):
    """A tree as the extension takes it."""

    tensors: list[tuple[Any, ...]]
    plain: dict[str, int | float | bool | str]
    # The generator of typed random keys, by the names of the leaves.
    keys: dict[str, str]


def _name(path: Any) -> str:
    return str(jax.tree_util.keystr(path, simple=True, separator="/"))


def _flatten(tree: Any) -> tuple[list[tuple[str, Any]], Any]:
    leaves, structure = jax.tree_util.tree_flatten_with_path(tree)
    named = [(_name(path), leaf) for path, leaf in leaves]
    seen: set[str] = set()
    for name, _ in named:
        if name in seen:
            raise ValueError(f"two leaves are called {name!r}; names in a state are unique")
        seen.add(name)
    return named, structure


def _is_on_host(data: Any) -> bool:
    """Whether an array of one device lies in memory of the processor."""
    (device,) = data.devices()
    return bool(device.platform == "cpu")


class _Hosting:
    """How the leaves of a tree get to the host: with ``copy`` into memory of their own, now."""

    def __init__(self, copy: bool) -> None:
        self._copy = copy
        self._transfers = Transfers(math.inf if copy else AHEAD_BYTES)

    def array(self, name: str, value: Any) -> Array:
        """A leaf that is no array of jax."""
        array = to_numpy(name, value)
        return np.array(array, order="C") if self._copy else array

    def shard(self, name: str, data: Any) -> Array | Callable[[], Array]:
        """A shard of this process, or what copies it when its turn comes."""
        if _is_on_host(data):
            return self.array(name, data)
        # Another array over the same memory: what jax keeps of the copy goes with it.
        alone = jax.make_array_from_single_device_arrays(data.shape, data.sharding, [data])
        size = math.prod(data.shape) * np.dtype(data.dtype).itemsize
        return self._transfers.later(alone, size, lambda value: to_numpy(name, value))

    def finish(self, tensors: list[tuple[Any, ...]]) -> None:
        """Wait for the copies that are made now."""
        if not self._copy:
            return
        for tensor in tensors:
            shards = tensor[-1] if len(tensor) == 7 else []
            for number, (*where, array) in enumerate(shards):
                shards[number] = (*where, array() if callable(array) else array)


def _tensor(
    name: str, value: Any, hosting: _Hosting, processes: Processes
) -> tuple[Any, ...] | None:
    """What this process writes of an array; None if that is nothing."""
    if isinstance(value, jax.Array):
        check_alive(name, value)
        if value.is_fully_addressable and processes.count > 1 and processes.index > 0:
            # Every process has it all: the first one writes it.
            return None
        sharding, shape = value.sharding, value.shape
        dtype = dtype_name(name, np.dtype(value.dtype))
        shards: list[tuple[int, list[int], list[int], Array | Callable[[], Array]]] = []
        for shard in value.addressable_shards:
            if shard.replica_id == 0:
                origin, extent = part_of(shard.index, shape)
                shards.append((shard.device.id, origin, extent, hosting.shard(name, shard.data)))
        if not shards:
            return None
        devices = [device.id for device in sharding.devices_indices_map(shape)]
        words = words_of(sharding, value.ndim)
        return (name, dtype, shape, devices, words, sharding.memory_kind, shards)
    if processes.index > 0:
        return None
    array = hosting.array(name, value)
    if array.dtype.kind in "OUST":
        return (name, STRING, array.shape, strings_of(name, array))
    return (name, dtype_name(name, array.dtype), array.shape, array)


def _leaves_of(tree: Any, copy: bool, processes: Processes) -> _Leaves:
    named, _ = _flatten(tree)
    keys = {name: generator_of(name, leaf) for name, leaf in named if is_keys(leaf)}
    named = [(name, jax.random.key_data(leaf) if name in keys else leaf) for name, leaf in named]
    hosting = _Hosting(copy)
    tensors: list[tuple[Any, ...]] = []
    plain: dict[str, int | float | bool | str] = {}
    for name, leaf in named:
        if isinstance(leaf, (bool, int, float, str)) and not isinstance(leaf, np.generic):
            plain[name] = leaf
            continue
        tensor = _tensor(name, leaf, hosting, processes)
        if tensor is not None:
            tensors.append(tensor)
    hosting.finish(tensors)
    return _Leaves(tensors, plain, keys)


class _Save(NamedTuple):
    """A save that is ready to be written, here or on another thread."""

    path: str
    leaves: _Leaves
    metadata: list[tuple[str, str]] | None
    serdes_version: str | int
    sync: bool
    processes: Processes

    def run(self, progress: Progress = None) -> None:
        """Write the state, or this process's part of it."""

        def write(part: tuple[bytes, int, int] | None) -> None:
            _native.save(
                self.path,
                self.leaves.tensors,
                self.metadata,
                self.serdes_version,
                self.sync,
                part,
                listener(progress),
            )

        def merge(save: bytes) -> None:
            _native.merge(self.path, save, self.metadata, self.serdes_version, self.sync)

        def discard(save: bytes) -> None:
            _native.discard(self.path, save)

        self.processes.save(write, merge, discard)


def _prepare(
    path: Path,
    tree: Any,
    metadata: Mapping[str, str] | None,
    serdes_version: str | int,
    sync: bool,
    timeout: float,
    copy: bool,
) -> _Save:
    processes = Processes.of_jax(timeout)
    with processes.preparing():
        leaves = _leaves_of(tree, copy, processes)
        words = ((LEAVES, leaves.plain), (KEYS, leaves.keys))
        own = {key: json.dumps(found) for key, found in words if found}
        pairs = metadata_of(metadata, own)
        return _Save(place(path), leaves, pairs, version_of(serdes_version), sync, processes)


def save(
    path: Path,
    tree: Any,
    metadata: Mapping[str, str] | None = None,
    *,
    serdes_version: str | int = "current",
    sync: bool = True,
    progress: Progress = None,
    timeout: float = DEFAULT_TIMEOUT,
) -> None:
    """Save a pytree of arrays with their shardings into the state ``path``.

    Leaves are named by their paths, ``params/w``. Leaves that are no arrays (int, float, bool, str)
    are kept as they are, and so are typed random keys. Where there are several processes, each
    calls this with the same tree and a path of one file system, or an address; the state appears
    when all have written their part, and if one of them fails, or says nothing for ``timeout``
    seconds, all of them raise and what was there stays. What lies on accelerators is copied to the
    host while it is written, some of it ahead.

    >>> import tempfile, pathlib, jax.numpy as jnp, serdes_ml as sd
    >>> from serdes_ml import jax as sdj
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "state.sds"
    >>> sdj.save(path, {"layers": [{"w": jnp.ones(2)}], "step": 7}, {"run": "a"})
    >>> sorted(sd.load_file(path))
    ['layers/0/w']

    Raises:
        ValueError: if two leaves have one name.
        TypeError: if a leaf is of a type that no state holds.
        SerdesError: if another process failed, or said nothing in time.
    """
    prepared = _prepare(path, tree, metadata, serdes_version, sync, timeout, copy=False)
    prepared.run(progress)


def save_async(
    path: Path,
    tree: Any,
    metadata: Mapping[str, str] | None = None,
    *,
    serdes_version: str | int = "current",
    sync: bool = True,
    timeout: float = DEFAULT_TIMEOUT,
) -> Future:
    """As `save`, on another thread: it returns as soon as the arrays may change.

    ``result()`` of what it answers waits for the end, and raises what went wrong; a failure that
    nobody asked for is printed when the process ends. Saves of a process are done one after the
    other, in the order in which they were asked for.

    >>> import tempfile, pathlib, jax.numpy as jnp
    >>> from serdes_ml import jax as sdj
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "state.sds"
    >>> future = sdj.save_async(path, {"w": jnp.ones(2)})
    >>> future.result(timeout=60)
    >>> future.done()
    True
    """
    prepared = _prepare(path, tree, metadata, serdes_version, sync, timeout, copy=True)
    return in_background(f"the save of {prepared.path}", prepared.run)


def load(
    path: Path,
    like: Any = None,
    *,
    cast: bool = False,
    verify: bool = True,
    progress: Progress = None,
) -> Any:
    """Load a pytree from the state ``path``.

    ``like`` is a pytree of ``jax.ShapeDtypeStruct`` or of arrays: it gives the structure, and each
    leaf its sharding, which need not be the one that was saved; without a sharding a leaf goes onto
    jax's default device. Leaves that are numpy arrays come as such. ``None`` gives a dict of all
    leaves by their names, on the default device; those of types that this process of jax does not
    have, as 64 bits without ``jax_enable_x64``, stay on the host as numpy arrays.

    >>> import tempfile, pathlib, jax, jax.numpy as jnp
    >>> from serdes_ml import jax as sdj
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "state.sds"
    >>> tree = {"params": {"w": jnp.ones((2, 2))}, "step": 7}
    >>> sdj.save(path, tree)
    >>> abstract = {"params": {"w": jax.ShapeDtypeStruct((2, 2), jnp.bfloat16)}, "step": 0}
    >>> loaded = sdj.load(path, like=abstract, cast=True)
    >>> loaded["params"]["w"].dtype, loaded["step"]
    (dtype(bfloat16), 7)

    Raises:
        KeyError: if a leaf is not in the state.
        ValueError: if a leaf has another shape, or another type and ``cast`` is not true.
    """
    state = State.open(path)
    plain, keys = state.object(LEAVES), Keys(state)
    if like is None:
        return _load_all(state, plain, keys, verify, progress)
    named, structure = _flatten(like)
    found: dict[int, Any] = {}
    loading = Loading(state, verify)
    for position, (name, leaf) in enumerate(named):
        if isinstance(leaf, (bool, int, float, str)) and not isinstance(leaf, np.generic):
            if name not in plain:
                raise _missing(state, name, "a plain value")
            found[position] = plain[name]
            continue
        dtype, shape = _described(state, plain, name)
        if is_keys(leaf):
            sharding = keys.wanted(name, leaf, shape)
            stored = dtype_of(name, dtype)
            loading.add(position, wanted_of(name, shape, stored, sharding), stored)
        else:
            stored, wants = _fitting(name, leaf, dtype_of(name, dtype), shape, cast)
            if stored.kind == "O" or isinstance(leaf, (np.ndarray, np.generic)):
                loading.add_on_host(position, name, wants)
            else:
                sharding = getattr(leaf, "sharding", None)
                loading.add(position, wanted_of(name, shape, wants, sharding), stored)
    found.update(loading.finish(progress))
    for position, (name, leaf) in enumerate(named):
        if is_keys(leaf):
            found[position] = keys.wrapped(name, found[position], getattr(leaf, "sharding", None))
    leaves = [found[position] for position in range(len(named))]
    return jax.tree_util.tree_unflatten(structure, leaves)


def _fitting(
    name: str, leaf: Any, stored: np.dtype[Any], shape: tuple[int, ...], cast: bool
) -> tuple[np.dtype[Any], np.dtype[Any]]:
    """The type that a leaf has in the state, and the one that it is to have."""
    if not hasattr(leaf, "dtype") or not hasattr(leaf, "shape"):
        raise TypeError(
            f"{name!r} of like is a {type(leaf).__name__}; expected an array, a"
            " jax.ShapeDtypeStruct, or a plain value"
        )
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
    if stored != wants and not cast:
        raise ValueError(
            f"{name!r} is {stored} in the state, and not {wants}; cast=True converts it"
        )
    on_host = isinstance(leaf, (np.ndarray, np.generic)) or stored.kind == "O"
    if not (on_host or cast) and jax.dtypes.canonicalize_dtype(wants) != wants:
        raise ValueError(
            f"{name!r} is {stored} in the state, which this process of jax does not have; set"
            " jax_enable_x64, load it like an array of numpy, or convert it with cast=True"
        )
    return stored, wants


def _words(dtype: np.dtype[Any]) -> str:
    return "strings" if dtype.kind in "OUST" else str(dtype)


def _missing(state: State, name: str, what: str) -> Exception:
    if name in state.names:
        return ValueError(f"{name!r} is an array in the state, and not {what}")
    return KeyError(f"the state has no leaf {name!r}")


def _described(state: State, plain: Mapping[str, Any], name: str) -> tuple[str, tuple[int, ...]]:
    if name in plain:
        found = type(plain[name]).__name__
        raise ValueError(f"{name!r} is a plain {found} in the state, and not an array")
    if name not in state.names:
        raise KeyError(f"the state has no leaf {name!r}")
    return state.describe(name)


def _load_all(
    state: State, plain: Mapping[str, Any], keys: Keys, verify: bool, progress: Progress
) -> dict[str, Any]:
    loading = Loading(state, verify)
    for position, name in enumerate(state.names):
        dtype, shape = state.describe(name)
        stored = dtype_of(name, dtype)
        if dtype == STRING or jax.dtypes.canonicalize_dtype(stored) != stored:
            loading.add_on_host(position, name, stored)
        else:
            loading.add(position, wanted_of(name, shape, stored, None), stored)
    names = dict(enumerate(state.names))
    found: dict[str, Any] = {}
    for position, leaf in loading.finish(progress).items():
        name = names[position]
        found[name] = keys.wrapped(name, leaf, None) if name in keys else leaf
    found.update(plain)
    return dict(sorted(found.items()))


class Steps(_Steps):
    """The states of a run, one for each step: ``run/step-00000010.sds`` and so on.

    ``keep`` is how many of the newest stay; all, if it is None.

    >>> import tempfile, jax.numpy as jnp
    >>> from serdes_ml import jax as sdj
    >>> with sdj.Steps(tempfile.mkdtemp(), keep=2) as steps:
    ...     for step in (10, 20, 30):
    ...         steps.save(step, {"w": jnp.full(3, step)})
    ...     steps.all(), steps.latest()
    ([20, 30], 30)
    """

    def save(
        self,
        step: int,
        tree: Any,
        metadata: Mapping[str, str] | None = None,
        *,
        serdes_version: str | int = "current",
        sync: bool = True,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> None:
        """Save the state of a step, as `save`, and remove those that are not kept."""
        save(
            self.path(step),
            tree,
            metadata,
            serdes_version=serdes_version,
            sync=sync,
            timeout=timeout,
        )
        self.prune(step)

    def save_async(
        self,
        step: int,
        tree: Any,
        metadata: Mapping[str, str] | None = None,
        *,
        serdes_version: str | int = "current",
        sync: bool = True,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> Future:
        """As `Steps.save`, on another thread; the end of the ``with`` block waits for it."""
        prepared = _prepare(
            self.path(step), tree, metadata, serdes_version, sync, timeout, copy=True
        )

        def run() -> None:
            prepared.run()
            self.prune(step)

        return self.pending(in_background(f"the save of {prepared.path}", run))

    def load(
        self,
        step: int | None,
        like: Any = None,
        *,
        cast: bool = False,
        verify: bool = True,
        progress: Progress = None,
    ) -> Any:
        """Load the state of a step, as `load`."""
        return load(self.existing(step), like, cast=cast, verify=verify, progress=progress)

    def _prunes(self) -> bool:
        return bool(jax.process_index() == 0)
