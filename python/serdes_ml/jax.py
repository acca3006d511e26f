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
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from typing import cast as _cast

import numpy as np

from . import _native
from ._arrays import STRING, Array, dtype_name, dtype_of, imported, strings_of, to_numpy
from ._async import Future, in_background
from ._errors import Corrupt, Unsupported
from ._files import RESERVED, State, metadata_of
from ._paths import Path, is_remote, local, place
from ._processes import DEFAULT_TIMEOUT, Processes
from ._progress import Progress, listener
from ._steps import Steps as _Steps

__all__ = ["Future", "Steps", "load", "save", "save_async"]

jax = imported("jax")

LEAVES = RESERVED + "leaves"
"""Leaves that are no arrays: a JSON object of names and values."""

KEYS = RESERVED + "random_keys"
"""Leaves that are typed random keys: a JSON object of names and generators.

What is stored of such a leaf is the data of its keys, an array of numbers with more dimensions.
"""

# Bytes of shards that lie on the host at a time while a tree is loaded.
_BATCH_BYTES = 256 << 20


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


def _words_of(sharding: Any, rank: int) -> str | None:
    """A sharding in XLA's words, as far as this jax tells them."""
    try:
        return str(sharding._to_xla_hlo_sharding(rank))
    except (AttributeError, NotImplementedError, TypeError, ValueError):
        return None


def _part(index: Sequence[slice], shape: Sequence[int]) -> tuple[list[int], list[int]]:
    """First index and extent of each dimension."""
    steps = [one.indices(length) for one, length in zip(index, shape, strict=True)]
    return [begin for begin, _, _ in steps], [max(end - begin, 0) for begin, end, _ in steps]


def _host(name: str, value: Any, copy: bool) -> Array:
    array = to_numpy(name, value)
    return np.array(array, order="C") if copy else array


def _tensor(name: str, value: Any, copy: bool, processes: Processes) -> tuple[Any, ...] | None:
    """What this process writes of an array; None if that is nothing."""
    if isinstance(value, jax.Array):
        if value.is_fully_addressable and processes.count > 1 and processes.index > 0:
            # Every process has it all: the first one writes it.
            return None
        sharding, shape = value.sharding, value.shape
        shards: list[tuple[int, list[int], list[int], Array]] = []
        for shard in value.addressable_shards:
            if shard.replica_id == 0:
                origin, extent = _part(shard.index, shape)
                shards.append((shard.device.id, origin, extent, _host(name, shard.data, copy)))
        if not shards:
            return None
        devices = [device.id for device in sharding.devices_indices_map(shape)]
        kind = sharding.memory_kind
        words = _words_of(sharding, value.ndim)
        dtype = dtype_name(name, np.dtype(value.dtype))
        return (name, dtype, shape, devices, words, kind, shards)
    if processes.index > 0:
        return None
    array = _host(name, value, copy)
    if array.dtype.kind in "OUST":
        return (name, STRING, array.shape, strings_of(name, array))
    return (name, dtype_name(name, array.dtype), array.shape, array)


def _is_keys(leaf: Any) -> bool:
    """Whether a leaf, or what describes one, is an array of typed random keys."""
    dtype = getattr(leaf, "dtype", None)
    return dtype is not None and bool(jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key))


def _generator(name: str, keys: Any) -> str:
    found = jax.random.key_impl(keys)
    if not isinstance(found, str):
        raise TypeError(
            f"{name!r} holds random keys of {found}, which jax knows by no name; save"
            " jax.random.key_data(...) of it"
        )
    return found


def _leaves_of(tree: Any, copy: bool, processes: Processes) -> _Leaves:
    named, _ = _flatten(tree)
    keys = {name: _generator(name, leaf) for name, leaf in named if _is_keys(leaf)}
    named = [(name, jax.random.key_data(leaf) if name in keys else leaf) for name, leaf in named]
    for _, leaf in named:
        # All copies to the host are under way before the first is waited for.
        if isinstance(leaf, jax.Array):
            for shard in leaf.addressable_shards:
                if shard.replica_id == 0:
                    shard.data.copy_to_host_async()
    tensors: list[tuple[Any, ...]] = []
    plain: dict[str, int | float | bool | str] = {}
    for name, leaf in named:
        if isinstance(leaf, (bool, int, float, str)) and not isinstance(leaf, np.generic):
            plain[name] = leaf
            continue
        tensor = _tensor(name, leaf, copy, processes)
        if tensor is not None:
            tensors.append(tensor)
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
            # Object storage has no locks: there the next saves remove what has become old.
            if not is_remote(self.path):
                _native.discard(local(self.path), save)

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
        return _Save(place(path), leaves, pairs, serdes_version, sync, processes)


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
    seconds, all of them raise and what was there stays.

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
    """
    prepared = _prepare(path, tree, metadata, serdes_version, sync, timeout, copy=True)
    return in_background(f"the save of {prepared.path}", prepared.run)


class _Wanted(NamedTuple):
    """Parts of one leaf that this process needs."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    sharding: Any
    # The device, and the number of its part.
    devices: list[tuple[Any, int]]
    parts: list[tuple[list[int], list[int]]]

    def bytes(self, stored: np.dtype[Any]) -> int:
        """Bytes of the parts."""
        return sum(int(np.prod(extent)) for _, extent in self.parts) * stored.itemsize


def _wanted(name: str, shape: tuple[int, ...], dtype: np.dtype[Any], sharding: Any) -> _Wanted:
    if sharding is None:
        sharding = jax.sharding.SingleDeviceSharding(jax.local_devices()[0])
    parts: list[tuple[list[int], list[int]]] = []
    numbers: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
    devices: list[tuple[Any, int]] = []
    for device, index in sharding.addressable_devices_indices_map(shape).items():
        origin, extent = _part(index or (), shape)
        key = tuple(origin), tuple(extent)
        if key not in numbers:
            numbers[key] = len(parts)
            parts.append((origin, extent))
        devices.append((device, numbers[key]))
    return _Wanted(name, dtype, shape, sharding, devices, parts)


class _Loading:
    """A load of several leaves, some hundred megabytes at a time."""

    def __init__(self, state: State, verify: bool, progress: Progress) -> None:
        self._state, self._verify, self._progress = state, verify, progress
        self._pending: list[tuple[int, _Wanted, list[Array]]] = []
        self._bytes = 0
        self.found: dict[int, Any] = {}

    def add(self, position: int, wanted: _Wanted, stored: np.dtype[Any]) -> None:
        """Have a leaf loaded."""
        arrays: list[Array] = [np.empty(extent, stored) for _, extent in wanted.parts]
        self._pending.append((position, wanted, arrays))
        self._bytes += wanted.bytes(stored)
        if self._bytes >= _BATCH_BYTES:
            self.finish()

    def finish(self) -> None:
        """Read what is pending, and put it onto the devices."""
        parts = [
            (self._state.stored(wanted.name), origin, extent, array)
            for _, wanted, arrays in self._pending
            for (origin, extent), array in zip(wanted.parts, arrays, strict=True)
        ]
        if parts:
            self._state.reader.read_parts(parts, self._verify, listener(self._progress))
        for position, wanted, arrays in self._pending:
            cast_arrays = [array.astype(wanted.dtype, copy=False) for array in arrays]
            on_devices = [jax.device_put(cast_arrays[part], dev) for dev, part in wanted.devices]
            self.found[position] = jax.make_array_from_single_device_arrays(
                wanted.shape, wanted.sharding, on_devices
            )
        self._pending, self._bytes = [], 0


def _object(state: State, key: str) -> dict[str, Any]:
    """An object in the metadata that the package keeps for itself; empty where there is none."""
    text = state.own.get(key)
    if text is None:
        return {}
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Corrupt(f"the metadata {key} of the state is no object", "corrupt", text[:200])
    return _cast("dict[str, Any]", found)


class _Keys:
    """The leaves of a state that are typed random keys."""

    def __init__(self, state: State) -> None:
        self._generators = _object(state, KEYS)
        known = set(state.names)
        for name, generator in self._generators.items():
            fits = isinstance(generator, str) and name in known
            if not fits or state.describe(name)[0] != "U32":
                raise Corrupt(
                    f"the metadata {KEYS} of the state names keys that are not there",
                    "corrupt",
                    f"{name!r}: {generator!r}"[:200],
                    "names of arrays of U32, and of generators",
                    "Take another copy, or save it again.",
                )

    def __contains__(self, name: object) -> bool:
        return name in self._generators

    def dtype(self, name: str) -> Any:
        """The type of keys that a leaf has."""
        generator = self._generators[name]
        try:
            return jax.random.key(0, impl=generator).dtype
        except (TypeError, ValueError):
            raise Unsupported(
                f"{name!r} holds random keys of {generator!r}, which this jax does not know",
                "unsupported",
                str(generator),
                remedy="Load it with a jax that has this generator.",
            ) from None

    def wrapped(self, name: str, data: Any, sharding: Any) -> Any:
        """The keys whose data these are, with a sharding if there is one."""
        found = jax.random.wrap_key_data(data, impl=self._generators[name])
        if sharding is None or found.sharding == sharding:
            return found
        if not found.is_fully_addressable and found.sharding.is_equivalent_to(sharding, found.ndim):
            return found
        return jax.device_put(found, sharding)

    def wanted(self, name: str, leaf: Any, shape: tuple[int, ...]) -> Any:
        """The sharding of the data for keys like ``leaf``, where ``shape`` is that of the data."""
        if name not in self:
            raise ValueError(f"{name!r} holds no random keys in the state, and not {leaf.dtype}")
        known = self.dtype(name)
        if leaf.dtype != known:
            raise ValueError(f"{name!r} is {known} in the state, and not {leaf.dtype}")
        keys = jax.eval_shape(
            lambda data: jax.random.wrap_key_data(data, impl=self._generators[name]),
            jax.ShapeDtypeStruct(shape, np.uint32),
        )
        if tuple(leaf.shape) != keys.shape:
            raise ValueError(
                f"{name!r} is {known}{list(keys.shape)} in the state, and not {list(leaf.shape)}"
            )
        sharding = getattr(leaf, "sharding", None)
        if sharding is None or isinstance(
            sharding, (jax.sharding.NamedSharding, jax.sharding.SingleDeviceSharding)
        ):
            # Dimensions that a specification does not name are whole, as those of the data are.
            return sharding
        raise ValueError(f"{name!r}: keys are loaded with a NamedSharding, not with {sharding}")


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
    the first device of the process. Leaves that are numpy arrays come as such. ``None`` gives a
    dict of all leaves by their names, on the first device; those of types that this process of jax
    does not have, as 64 bits without ``jax_enable_x64``, stay on the host as numpy arrays.

    Raises:
        KeyError: if a leaf is not in the state.
        ValueError: if a leaf has another shape, or another type and ``cast`` is not true.
    """
    state = State.open(path)
    plain, keys = _object(state, LEAVES), _Keys(state)
    if like is None:
        return _load_all(state, plain, keys, verify, progress)
    named, structure = _flatten(like)
    loading = _Loading(state, verify, progress)
    found: dict[int, Any] = {}
    for position, (name, leaf) in enumerate(named):
        if isinstance(leaf, (bool, int, float, str)) and not isinstance(leaf, np.generic):
            if name not in plain:
                raise _missing(state, name, "a plain value")
            found[position] = plain[name]
            continue
        dtype, shape = _described(state, plain, name)
        stored = dtype_of(name, dtype)
        if _is_keys(leaf):
            sharding = keys.wanted(name, leaf, shape)
            loading.add(position, _wanted(name, shape, stored, sharding), stored)
            continue
        if dtype == STRING:
            found[position] = state.read([name], verify, progress)[name]
            continue
        wants = np.dtype(leaf.dtype)
        if tuple(leaf.shape) != shape:
            raise ValueError(
                f"{name!r} is {stored}{list(shape)} in the state, and not {wants}{list(leaf.shape)}"
            )
        if stored != wants and not cast:
            raise ValueError(
                f"{name!r} is {stored} in the state, and not {wants}; cast=True converts it"
            )
        if isinstance(leaf, (np.ndarray, np.generic)):
            array = state.read([name], verify, progress)[name]
            found[position] = array.astype(wants, copy=False)
            continue
        sharding = getattr(leaf, "sharding", None)
        loading.add(position, _wanted(name, shape, wants, sharding), stored)
    loading.finish()
    found.update(loading.found)
    for position, (name, leaf) in enumerate(named):
        if _is_keys(leaf):
            found[position] = keys.wrapped(name, found[position], getattr(leaf, "sharding", None))
    leaves = [found[position] for position in range(len(named))]
    return jax.tree_util.tree_unflatten(structure, leaves)


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
    state: State, plain: Mapping[str, Any], keys: _Keys, verify: bool, progress: Progress
) -> dict[str, Any]:
    loading = _Loading(state, verify, progress)
    on_host: list[str] = []
    for position, name in enumerate(state.names):
        dtype, shape = state.describe(name)
        stored = dtype_of(name, dtype)
        if dtype == STRING or jax.dtypes.canonicalize_dtype(stored) != stored:
            on_host.append(name)
        else:
            loading.add(position, _wanted(name, shape, stored, None), stored)
    loading.finish()
    found = dict(state.read(on_host, verify, progress))
    names = dict(enumerate(state.names))
    for position, leaf in loading.found.items():
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
        self.prune()

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
            self.prune()

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
