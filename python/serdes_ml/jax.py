"""Pytrees of JAX with their shardings, saved and restored by any number of processes.

Every process of ``jax.distributed`` calls the same function with the same tree; each writes the
shards that it owns, once for replicas, and reads what its own shards need, whatever the mesh and
the number of processes were.

>>> import tempfile, pathlib, jax.numpy as jnp
>>> from serdes_ml import jax as sdj
>>> path = pathlib.Path(tempfile.mkdtemp()) / "state.sds"
>>> sdj.save(path, {"params": {"w": jnp.ones((2, 2))}, "step": 7})
>>> tree = sdj.load(path)
>>> tree["params"]["w"].shape, tree["step"]
((2, 2), 7)
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from . import _native
from ._arguments import flags, number
from ._arrays import (
    STRING,
    Array,
    check_alive,
    dtype_name,
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
from ._errors import wrong_type
from ._files import metadata_of, version_of
from ._fits import Fit
from ._fits_jax import as_loaded, as_saved
from ._meshes import MESHES, meshes_of
from ._mismatches import Mismatch, TreeMismatch
from ._paths import Path, place
from ._processes import DEFAULT_TIMEOUT, Processes
from ._progress import Progress, listener
from ._random_keys import KEYS, generator_of, is_keys
from ._restoring import is_plain, load_all, load_like
from ._shards import part_of, words_of
from ._state import LEAVES, TREE, State
from ._steps import Steps as _Steps
from ._transfers import AHEAD_BYTES, Transfers
from ._trees import flatten, structure_of, tree_of
from ._types import Version

__all__ = [
    "ConnectError",
    "Connection",
    "Future",
    "Mismatch",
    "SessionRefused",
    "Steps",
    "TokenRefused",
    "TreeMismatch",
    "Unreachable",
    "VersionMismatch",
    "connect",
    "fits",
    "load",
    "save",
    "save_async",
]

jax = imported("jax")


class _Leaves(NamedTuple):
    """A tree as the extension takes it."""

    tensors: list[tuple[Any, ...]]
    plain: dict[str, int | float | bool | str]
    # The generator of typed random keys, by the names of the leaves.
    keys: dict[str, str]
    # The structure of the tree, and the meshes of its leaves, as JSON.
    structure: str
    meshes: str | None


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
            for at, (*where, array) in enumerate(shards):
                shards[at] = (*where, array() if callable(array) else array)


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
    named, _ = flatten(tree)
    structure, meshes = structure_of(tree), meshes_of(named)
    keys = {name: generator_of(name, leaf) for name, leaf in named if is_keys(leaf)}
    named = [(name, jax.random.key_data(leaf) if name in keys else leaf) for name, leaf in named]
    hosting = _Hosting(copy)
    tensors: list[tuple[Any, ...]] = []
    plain: dict[str, int | float | bool | str] = {}
    for name, leaf in named:
        if is_plain(leaf):
            plain[name] = leaf
            continue
        tensor = _tensor(name, leaf, hosting, processes)
        if tensor is not None:
            tensors.append(tensor)
    hosting.finish(tensors)
    return _Leaves(tensors, plain, keys, structure, meshes)


class _Save(NamedTuple):
    """A save that is ready to be written, here or on another thread."""

    path: str
    leaves: _Leaves
    metadata: list[tuple[str, str]] | None
    serdes_version: Version
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
    serdes_version: Version,
    sync: bool,
    timeout: float,
    copy: bool,
    said: Mapping[str, str] | None = None,
) -> _Save:
    flags(sync=sync)
    processes = Processes.of_jax(number("timeout", timeout, "a number of seconds"))
    with processes.preparing():
        leaves = _leaves_of(tree, copy, processes)
        words = ((LEAVES, leaves.plain), (KEYS, leaves.keys))
        own = {key: json.dumps(found) for key, found in words if found}
        own[TREE] = leaves.structure
        own.update(said or {})
        if leaves.meshes is not None:
            own[MESHES] = leaves.meshes
        pairs = metadata_of(metadata, own)
        return _Save(place(path), leaves, pairs, version_of(serdes_version), sync, processes)


def save(
    path: Path,
    tree: Any,
    metadata: Mapping[str, str] | None = None,
    *,
    serdes_version: Version = "current",
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
    >>> sorted(sd.load_file(path, leaves=True))
    ['layers/0/w', 'step']

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
    serdes_version: Version = "current",
    sync: bool = True,
    timeout: float = DEFAULT_TIMEOUT,
) -> Future:
    """As `save`, on another thread: it returns as soon as the arrays may change.

    ``result()`` of what it answers waits for the end, and raises what went wrong; a failure that
    was never raised is printed when the process ends. Saves of a process are done one after the
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
    flat: bool = False,
    mesh: Any = None,
    cast: bool = False,
    verify: bool = True,
    progress: Progress = None,
) -> Any:
    """Load a pytree from the state ``path``.

    ``like`` is a pytree of ``jax.ShapeDtypeStruct`` or of arrays: it gives the structure, and each
    leaf its sharding, which need not be the one that was saved; without a sharding a leaf goes onto
    jax's default device. Leaves that are numpy arrays come as such.

    Without ``like`` the tree comes as it was saved: dicts, lists, tuples, ``OrderedDict``, None.
    Nothing is imported for it, so that a named tuple, a dataclass or another class of somebody's
    own comes as a dict of its fields, or as a list if they have no names. States that hold no
    structure come as nested dicts by the names of their tensors; ``flat=True`` gives one dict by
    the names, as ``params/w``. Leaves of types that this process of jax does not have, as 64 bits
    without ``jax_enable_x64``, stay on the host as numpy arrays.

    With ``mesh`` leaves that have no sharding in ``like`` lie over this mesh as they lay over the
    one that was saved, by the names of its axes; those that lay over none are on every device.

    >>> import tempfile, pathlib, jax, jax.numpy as jnp
    >>> from serdes_ml import jax as sdj
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "state.sds"
    >>> tree = {"params": {"w": jnp.ones((2, 2))}, "steps": (7, [8, None])}
    >>> sdj.save(path, tree)
    >>> loaded = sdj.load(path)
    >>> loaded["steps"], sorted(sdj.load(path, flat=True))
    ((7, [8, None]), ['params/w', 'steps/0', 'steps/1/0'])
    >>> abstract = {"params": {"w": jax.ShapeDtypeStruct((2, 2), jnp.bfloat16)}}
    >>> sdj.load(path, like=abstract, cast=True)["params"]["w"].dtype
    dtype(bfloat16)
    >>> mesh = jax.sharding.Mesh(jax.devices()[:1], "x")
    >>> sdj.load(path, mesh=mesh)["params"]["w"].sharding.mesh == mesh
    True

    Raises:
        TreeMismatch: if leaves of ``like`` are not in the state, or are something else there: of
            another shape, or of another type where ``cast`` is not true. All are named. It is a
            ``KeyError`` in the first case, and a ``ValueError`` in the second.
    """
    flags(flat=flat, cast=cast, verify=verify)
    _check_mesh(mesh)
    state = State.open(path)
    if like is None:
        leaves = load_all(state, mesh, verify, progress)
        return leaves if flat else tree_of(state.own.get(TREE), leaves)
    if flat:
        raise ValueError("flat=True gives a dict by names, and like another tree; choose one")
    named, structure = flatten(like)
    found = load_like(state, named, mesh, cast, verify, progress)
    return jax.tree_util.tree_unflatten(structure, found)


def _check_mesh(mesh: object) -> None:
    if not isinstance(mesh, (jax.sharding.Mesh, type(None))):
        raise wrong_type("mesh", mesh, "a jax.sharding.Mesh, or None")


def _devices(given: object) -> list[Any]:
    expected = "several of jax.devices(), or None"
    if not isinstance(given, Iterable):
        raise wrong_type("devices", given, expected)
    found = list(given)
    for one in found:
        if not isinstance(one, jax.Device):
            raise wrong_type("devices, one of which", one, expected)
    return found


def fits(
    path: Path,
    like: Any = None,
    *,
    mesh: Any = None,
    devices: Sequence[Any] | None = None,
    cast: bool = False,
) -> Fit:
    """Compare the state ``path`` with the devices that JAX has, and move nothing.

    It answers for what ``load(path, like, mesh=mesh, cast=cast)`` would put on each device of this
    process: types, number of devices, and memory, by what each device says is free. Leaves that
    cannot lie there are rows of their own. With ``devices`` in place of ``like`` and ``mesh`` the
    state lies over them as it was saved: the first has what the first one had.
    `serdes_ml.fits` compares with the devices of a plug-in.

    >>> import tempfile, pathlib, jax, jax.numpy as jnp
    >>> from serdes_ml import jax as sdj
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "state.sds"
    >>> sdj.save(path, {"w": jnp.ones((4, 2)), "step": 7})
    >>> fit = sdj.fits(path, devices=jax.devices()[:1])
    >>> fit.ok, [(row.what, row.needed) for row in fit.rows]
    (True, [('types', ('F32',)), ('mesh', 1), ('memory', 32)])
    >>> fit = sdj.fits(path, like={"w": jax.ShapeDtypeStruct((2, 4), jnp.float32)})
    >>> fit.ok, fit.rows[-1].message
    (False, "'w' is float32[4, 2] in the state, and not float32[2, 4]")

    Raises:
        NotFound: if there is no such file.
        TooNew, TooOld, Corrupt: if this build must not, or nobody can, read it.
    """
    flags(cast=cast)
    _check_mesh(mesh)
    if devices is None:
        return as_loaded(State.open(path), like, mesh, cast)
    if like is not None or mesh is not None:
        raise ValueError("devices have the state as it was saved, and like and mesh do not; choose")
    return as_saved(State.open(path), _devices(devices))


class Steps(_Steps):
    """The states of a run, one for each step: ``run/step-00000010.sds`` and so on.

    ``keep`` is how many of the newest stay; all, if it is None. Beside them stay the steps that
    ``keep_every`` divides, and the ``keep_best`` best ones by the number ``metric`` of those that
    were saved with each: the least, or with ``mode="max"`` the greatest.

    >>> import tempfile, jax.numpy as jnp
    >>> from serdes_ml import jax as sdj
    >>> with sdj.Steps(tempfile.mkdtemp(), keep=2) as steps:
    ...     for step in (10, 20, 30):
    ...         steps.save(step, {"w": jnp.full(3, step)})
    ...     steps.all(), steps.latest()
    ([20, 30], 30)
    >>> folder = tempfile.mkdtemp()
    >>> with sdj.Steps(folder, keep=1, keep_every=100, keep_best=1, metric="loss") as steps:
    ...     for step, loss in ((100, 3.0), (110, 0.5), (120, 0.7), (130, 0.6)):
    ...         steps.save(step, {"w": jnp.zeros(1)}, metrics={"loss": loss})
    ...     steps.all(), steps.best(), steps.latest(valid=True)
    ([100, 110, 130], 110, 130)
    """

    def save(
        self,
        step: int,
        tree: Any,
        metadata: Mapping[str, str] | None = None,
        *,
        metrics: Mapping[str, float] | None = None,
        serdes_version: Version = "current",
        sync: bool = True,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> None:
        """Save the state of a step, as `save`, and remove those that are not kept.

        ``metrics`` are numbers that are kept with the state; one of them may decide what stays.
        """
        prepared = _prepare(
            self.path(step),
            tree,
            metadata,
            serdes_version,
            sync,
            timeout,
            copy=False,
            said=self.given_metrics(metrics),
        )
        prepared.run()
        self.prune(step)

    def save_async(
        self,
        step: int,
        tree: Any,
        metadata: Mapping[str, str] | None = None,
        *,
        metrics: Mapping[str, float] | None = None,
        serdes_version: Version = "current",
        sync: bool = True,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> Future:
        """As `Steps.save`, on another thread; the end of the ``with`` block waits for it."""
        prepared = _prepare(
            self.path(step),
            tree,
            metadata,
            serdes_version,
            sync,
            timeout,
            copy=True,
            said=self.given_metrics(metrics),
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
        flat: bool = False,
        mesh: Any = None,
        cast: bool = False,
        verify: bool = True,
        progress: Progress = None,
    ) -> Any:
        """Load the state of a step, as `load`."""
        return load(
            self.existing(step),
            like,
            flat=flat,
            mesh=mesh,
            cast=cast,
            verify=verify,
            progress=progress,
        )

    def _prunes(self) -> bool:
        return bool(jax.process_index() == 0)
