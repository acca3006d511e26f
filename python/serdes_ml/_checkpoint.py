"""Checkpoints of ``torch.distributed.checkpoint`` as states.

The planner of torch says who writes which part of which tensor; each process writes its parts into
a file of its own, and the coordinator makes the state of them, last and in one step. Planners, and
what they pickle into entries of bytes, are torch's: nothing here runs what a file holds.
"""

from __future__ import annotations

import dataclasses
import io
import json
import math
import os
import pathlib
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple, cast

import numpy as np

from . import _native
from ._arguments import flag
from ._arrays import (
    STRING,
    Array,
    dtype_name,
    dtype_of,
    dtype_of_value,
    from_torch,
    hosted,
    imported,
    to_torch,
)
from ._errors import Corrupt, SerdesError, Unsupported
from ._files import metadata_of, version_of
from ._paths import Path, inside, place, system_path
from ._state import RESERVED, State
from ._types import Version

__all__ = ["FILE", "StorageReader", "StorageWriter"]

torch = imported("torch")
_metadata: Any = imported("torch.distributed.checkpoint.metadata")
_planner: Any = imported("torch.distributed.checkpoint.planner")
_storage: Any = imported("torch.distributed.checkpoint.storage")
_properties: Any = imported("torch.distributed._shard.sharded_tensor.metadata").TensorProperties
_Future: Any = imported("torch.futures").Future
_Writer: Any = _storage.StorageWriter
_Reader: Any = _storage.StorageReader

FILE = "state.sds"
"""The state in the folder of a checkpoint."""

CHECKPOINT = RESERVED + "checkpoint"
"""What a state says of itself as a checkpoint of torch: a JSON object.

``bytes`` are the entries that are no tensors, ``requires_grad`` the tensors of which that is true,
``paths`` where each entry stands in the nested state dict, as the planner tells.
"""

# Bytes of parts that lie on the host at a time while tensors of other devices are loaded.
_BATCH_BYTES = 256 << 20


class _Turn(NamedTuple):
    """What one process is to write: its part of a save, but for what others write."""

    save: bytes
    number: int
    parts: int
    left_out: frozenset[str]


# How often this process has saved by each of the plans that it got last: planners may keep theirs.
_uses: dict[bytes, int] = {}
_PLANS_KEPT = 64


def _save_id(plan: bytes) -> bytes:
    """The id of a save by this plan: every use of it is a save of its own.

    A part that is there may belong to a state, and must not be replaced by one of the same name.
    """
    used = _uses.pop(plan, 0)
    _uses[plan] = used + 1
    while len(_uses) > _PLANS_KEPT:
        del _uses[next(iter(_uses))]
    return blake2b(plan + used.to_bytes(8, "little"), digest_size=16).digest() if used else plan


def _done(value: Any) -> Any:
    future = _Future()
    future.set_result(value)
    return future


def _folder_of(folder: Path) -> str:
    text = place(folder)
    return text.rstrip("/") or "/"


class StorageWriter(_Writer):  # type: ignore[misc]
    """Where ``torch.distributed.checkpoint.save`` and ``async_save`` write a state.

    ``folder`` is where the state appears: ``state.sds`` and its parts. It may be left out where the
    checkpoint's id names it. Every process writes what the planner gave it; the state appears when
    all have, and what was there stays until then. ``metadata`` are words that are kept with it;
    ``serdes_version`` and ``sync`` are as in `serdes_ml.save_file`.

    >>> import tempfile, torch, torch.distributed.checkpoint as dcp
    >>> from serdes_ml import torch as sdt
    >>> folder = tempfile.mkdtemp()
    >>> _ = dcp.save({"w": torch.ones(2)}, storage_writer=sdt.StorageWriter(folder), no_dist=True)
    >>> state_dict = {"w": torch.zeros(2)}
    >>> dcp.load(state_dict, storage_reader=sdt.StorageReader(folder), no_dist=True)
    >>> state_dict["w"]
    tensor([1., 1.])
    """

    __module__ = "serdes_ml.torch"

    def __init__(
        self,
        folder: Path | None = None,
        metadata: Mapping[str, str] | None = None,
        *,
        serdes_version: Version = "current",
        sync: bool = True,
    ) -> None:
        super().__init__()
        self._folder = None if folder is None else _folder_of(folder)
        metadata_of(metadata)
        self._words, self._sync = dict(metadata or {}), flag("sync", sync)
        self._serdes_version = version_of(serdes_version)
        self._rank: int | None = None
        self._written: bytes | None = None

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Another checkpoint begins, in the folder ``checkpoint_id`` if that is given."""
        if checkpoint_id is not None:
            self._folder = _folder_of(checkpoint_id)
        self._written = None

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Make the folder."""
        self._rank = _rank_of_its_own(kwargs)
        path = system_path(self._path())
        if path is not None:
            pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)

    def storage_meta(self) -> Any:
        """What planners may know of this."""
        return _metadata.StorageMeta(checkpoint_id=self._folder)

    def prepare_local_plan(self, plan: Any) -> Any:
        """Leave a plan as it is."""
        return plan

    def prepare_global_plan(self, plans: list[Any]) -> list[Any]:
        """Tell each process which part it writes."""
        save = _native.new_save_id()
        return [
            dataclasses.replace(plan, storage_data=_Turn(save, number, len(plans), left_out))
            for number, (plan, left_out) in enumerate(zip(plans, _left_out(plans), strict=True))
        ]

    def write_data(self, plan: Any, planner: Any) -> Any:
        """Write the part of this process, to its end."""
        turn = plan.storage_data
        if not isinstance(turn, _Turn):
            raise TypeError("the plan was prepared for another storage")
        entries = [_Entry.of(item, planner) for item in plan.items]
        tensors = _tensors(entries, turn)
        save = self._written = _save_id(turn.save)
        part = (save, turn.number, turn.parts)
        _native.save(self._path(), tensors, None, self._serdes_version, self._sync, part, None)
        return _done([_storage.WriteResult(entry.index, entry.size, save) for entry in entries])

    def finish(self, metadata: Any, results: list[list[Any]]) -> None:
        """Make the state of all parts."""
        save = self._written
        if save is None or any(one.storage_data != save for found in results for one in found):
            raise Unsupported(
                "the processes saved by plans that were made at different times, so that their"
                " parts do not belong together; the state was not made",
                "unsupported",
                remedy="Save with a planner that keeps no plans (enable_plan_caching=False).",
            )
        own = {CHECKPOINT: json.dumps(_described(metadata))}
        pairs = metadata_of(self._words, own)
        _native.merge(self._path(), save, pairs, self._serdes_version, self._sync)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Whether it may name a folder."""
        return isinstance(cast("object", checkpoint_id), (str, os.PathLike))

    def _path(self) -> str:
        return _state_in(self._folder, self._rank)


def _rank_of_its_own(kwargs: Mapping[str, Any]) -> int | None:
    """The rank of a process that saves and loads by itself, without the others."""
    return kwargs.get("rank") if kwargs.get("use_collectives") is False else None


def _state_in(folder: str | None, rank: int | None) -> str:
    if folder is None:
        raise ValueError("no folder was given, and no checkpoint's id that names one")
    stem, dot, suffix = FILE.partition(".")
    name = FILE if rank is None else f"{stem}-{rank}{dot}{suffix}"
    return place(inside(folder, name))


class _Entry(NamedTuple):
    """What a planner gave to be written: on the host, or brought there when its turn comes."""

    index: Any
    array: Array | Callable[[], Array]
    dtype: np.dtype[Any]
    extent: tuple[int, ...]
    # Of a tensor: its shape, and the first index of the part; of bytes, nothing.
    shape: tuple[int, ...] | None
    origin: tuple[int, ...]
    # Whether others may hold parts of the same tensor.
    is_shard: bool

    @property
    def size(self) -> int:
        """Its bytes."""
        return math.prod(self.extent) * self.dtype.itemsize

    @staticmethod
    def of(item: Any, planner: Any) -> _Entry:
        kinds = _planner.WriteItemType
        found = planner.resolve_data(item)
        if item.type == kinds.BYTE_IO:
            data = found.getbuffer() if isinstance(found, io.BytesIO) else memoryview(found)
            words = np.frombuffer(data, np.uint8) if len(data) else np.empty(0, np.uint8)
            return _Entry(item.index, words, words.dtype, words.shape, None, (), False)
        chunk, shape = item.tensor_data.chunk, tuple(item.tensor_data.size)
        name, extent = item.index.fqn, tuple(found.shape)
        if extent != tuple(chunk.sizes):
            raise ValueError(
                f"the planner gave {list(extent)} elements of {name!r}, and"
                f" planned {list(chunk.sizes)}"
            )
        is_shard = item.type == kinds.SHARD
        array = hosted(name, found)
        dtype = dtype_of_value(name, found)
        return _Entry(item.index, array, dtype, extent, shape, tuple(chunk.offsets), is_shard)


def _left_out(plans: Sequence[Any]) -> list[frozenset[str]]:
    """For each process the tensors without elements that one before it writes.

    A state holds such a tensor once, and a planner has each of its empty parts written.
    """
    seen: set[str] = set()
    found: list[frozenset[str]] = []
    for plan in plans:
        empty = {
            item.index.fqn
            for item in plan.items
            if item.tensor_data is not None and 0 in item.tensor_data.size
        }
        found.append(frozenset(empty & seen))
        seen |= empty
    return found


def _tensors(entries: Sequence[_Entry], turn: _Turn) -> list[tuple[Any, ...]]:
    """What this process writes, as the extension takes it: each name once, with all its parts."""
    tensors: dict[str, tuple[Any, ...]] = {}
    # The devices are the processes: what each of them holds is in its part.
    devices = list(range(turn.parts))
    for entry in entries:
        name, array, shape = entry.index.fqn, entry.array, entry.shape
        if name in turn.left_out:
            continue
        dtype = dtype_name(name, entry.dtype)
        if shape is not None and 0 in shape:
            tensors[name] = (name, dtype, shape, np.empty(shape, entry.dtype))
        elif shape is None or not entry.is_shard:
            tensors[name] = (name, dtype, entry.extent, array)
        elif 0 not in entry.extent:
            # A process beyond the end of a tensor holds nothing of it.
            tensor = tensors.setdefault(name, (name, dtype, shape, devices, None, None, []))
            tensor[-1].append((turn.number, list(entry.origin), list(entry.extent), array))
    return list(tensors.values())


def _described(metadata: Any) -> dict[str, Any]:
    """What the state says of itself as a checkpoint."""
    found: dict[str, Any] = {"bytes": [], "requires_grad": []}
    for name, entry in metadata.state_dict_metadata.items():
        if isinstance(entry, _metadata.BytesStorageMetadata):
            found["bytes"].append(name)
        elif entry.properties.requires_grad:
            found["requires_grad"].append(name)
    if metadata.planner_data is not None:
        found["paths"] = _paths_of(metadata.planner_data)
    return found


def _paths_of(data: Any) -> dict[str, list[str | int]]:
    """Where each entry stands in the nested state dict, as the default planner knows it."""
    paths: dict[str, list[str | int]] = {}
    items = data.items() if isinstance(data, dict) else [("", None)]
    for name, path in items:
        steps = list(path) if isinstance(path, (tuple, list)) else [path]
        if not isinstance(name, str) or not all(type(one) in (str, int) for one in steps):
            raise Unsupported(
                "the planner keeps data of its own with the checkpoint, which no state holds",
                "unsupported",
                f"{name!r}: {path!r}"[:200] if name else type(data).__name__,
                "paths of names and numbers by the names of entries",
                "Save with a planner that keeps what torch's default planner keeps, or nothing.",
            )
        paths[name] = cast("list[str | int]", steps)
    return paths


class StorageReader(_Reader):  # type: ignore[misc]
    """Where ``torch.distributed.checkpoint.load`` reads a state.

    ``folder`` is that of a `StorageWriter`, or any file with a state: what ``serdes_ml.save_file``
    or the JAX of another team saved loads as well. Every process reads what its own tensors need,
    whatever the number of processes was that saved. ``verify=False`` compares no checksums.
    """

    __module__ = "serdes_ml.torch"

    def __init__(self, folder: Path | None = None, *, verify: bool = True) -> None:
        super().__init__()
        self._folder = None if folder is None else _folder_of(folder)
        self._verify = flag("verify", verify)
        self._rank: int | None = None
        self._state: State | None = None

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Another checkpoint is read, that in ``checkpoint_id`` if that is given."""
        if checkpoint_id is not None:
            self._folder = _folder_of(checkpoint_id)
        self._state = None

    def read_metadata(self, *args: Any, **kwargs: Any) -> Any:
        """What torch knows of the state: names, types and shapes."""
        self._rank = kwargs.get("rank")
        state = self._state = self._open()
        told = _told(state)
        entries: dict[str, Any] = {}
        for name in state.names:
            if name in told.bytes:
                entries[name] = _metadata.BytesStorageMetadata()
                continue
            dtype, shape = state.describe(name)
            known = _torch_dtype(name, dtype)
            if known is not None:
                entries[name] = _tensor_metadata(known, shape, name in told.requires_grad)
        return _metadata.Metadata(
            state_dict_metadata=entries,
            # A state without nesting has an empty one.
            planner_data=told.paths or {},
            storage_meta=_metadata.StorageMeta(checkpoint_id=self._folder),
        )

    def set_up_storage_reader(
        self, metadata: Any, is_coordinator: bool, *args: Any, **kwargs: Any
    ) -> None:
        """Nothing is left to do."""

    def prepare_local_plan(self, plan: Any) -> Any:
        """Leave a plan as it is."""
        return plan

    def prepare_global_plan(self, plans: list[Any]) -> list[Any]:
        """Leave the plans as they are."""
        return plans

    def read_data(self, plan: Any, planner: Any) -> Any:
        """Read what the plan asks for, to its end."""
        state = self._state or self._open()
        reading = _Reading(state, planner, self._verify)
        for item in plan.items:
            if item.type == _planner.LoadItemType.BYTE_IO:
                name = item.storage_index.fqn
                planner.load_bytes(
                    item, io.BytesIO(state.read([name], self._verify, None)[name].data)
                )
            else:
                reading.add(item)
        reading.finish()
        self._state = None
        return _done(None)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Whether it may name a folder, or a state."""
        return isinstance(cast("object", checkpoint_id), (str, os.PathLike))

    def _open(self) -> State:
        folder = self._folder
        if folder is not None:
            # An address that ends as states do is one; elsewhere the system knows what is a file.
            path = system_path(folder)
            if folder.endswith(".sds") if path is None else pathlib.Path(path).is_file():
                return State.open(folder)
        return State.open(_state_in(folder, self._rank))


class _Told(NamedTuple):
    """What a state says of itself as a checkpoint; see `CHECKPOINT`."""

    bytes: frozenset[str]
    requires_grad: frozenset[str]
    paths: dict[str, tuple[str | int, ...]] | None


def _told(state: State) -> _Told:
    """What a state says of itself as a checkpoint; of one that is none, nothing is special."""
    text = state.own.get(CHECKPOINT)
    if text is None:
        return _Told(frozenset(), frozenset(), None)
    try:
        found = json.loads(text)
        paths = found.get("paths")
        return _Told(
            frozenset(found["bytes"]),
            frozenset(found["requires_grad"]),
            None if paths is None else {name: tuple(path) for name, path in paths.items()},
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise Corrupt(
            f"the metadata {CHECKPOINT} of the state is not what a checkpoint says of itself",
            "corrupt",
            text[:200],
            "a JSON object of bytes, requires_grad and paths",
            "Take another copy, or save it again.",
        ) from None


def _torch_dtype(name: str, dtype: str) -> Any:
    """The type of torch for that of a state; None if torch has none."""
    if dtype == STRING:
        return None
    try:
        return to_torch(name, np.empty(0, dtype_of(name, dtype))).dtype
    except (TypeError, SerdesError):
        return None


def _tensor_metadata(dtype: Any, shape: tuple[int, ...], requires_grad: bool) -> Any:
    size = torch.Size(shape)
    # One part: whatever the pieces of the state are, each process reads just what it asks for.
    whole = _metadata.ChunkStorageMetadata(offsets=torch.Size([0] * len(shape)), sizes=size)
    properties = _properties(dtype=dtype, requires_grad=requires_grad)
    return _metadata.TensorStorageMetadata(properties=properties, size=size, chunks=[whole])


class _Reading:
    """Parts of tensors that are read together, into the memory of tensors where that can be."""

    def __init__(self, state: State, planner: Any, verify: bool) -> None:
        self._state, self._planner, self._verify = state, planner, verify
        self._parts: list[tuple[str, list[int], list[int], Array]] = []
        # What waits for its data, and the array that gets it in the tensor's place.
        self._pending: list[tuple[Any, Any, Array | None]] = []
        self._held = 0
        # First and last address of what is written to, in their order.
        self._begins: list[int] = []
        self._ends: list[int] = []

    def add(self, item: Any) -> None:
        """Have a part read."""
        name = item.storage_index.fqn
        dtype, _ = self._state.describe(name)
        stored = dtype_of(name, dtype)
        first = item.storage_index.offset or [0] * len(item.lengths)
        origin = [one + more for one, more in zip(first, item.storage_offsets, strict=True)]
        extent = [int(length) for length in item.lengths]
        target = self._planner.resolve_tensor(item).detach()
        array = _memory_of(name, target, stored)
        instead: Array | None = None
        if array is None:
            array = instead = np.empty(extent, stored)
            self._held += array.nbytes
        elif not self._claim(array):
            # Two names of one tensor: one after the other.
            self.finish()
            self._claim(array)
        self._parts.append((self._state.stored(name), origin, extent, array))
        self._pending.append((item, target, instead))
        if self._held >= _BATCH_BYTES:
            self.finish()

    def _claim(self, array: Array) -> bool:
        """Note that an array is written to; false if one before it shares its memory."""
        begin = array.__array_interface__["data"][0]
        end = begin + array.nbytes
        at = bisect_left(self._ends, begin + 1)
        if array.nbytes == 0:
            return True
        if at < len(self._begins) and self._begins[at] < end:
            return False
        self._begins.insert(at, begin)
        self._ends.insert(at, end)
        return True

    def finish(self) -> None:
        """Read what is pending, and bring it where it belongs."""
        if self._parts:
            self._state.reader.read_parts(self._parts, self._verify, None)
        for item, target, instead in self._pending:
            if instead is not None:
                target.copy_(to_torch(item.storage_index.fqn, instead))
            self._planner.commit_tensor(item, target)
        self._parts, self._pending, self._held = [], [], 0
        self._begins, self._ends = [], []


def _memory_of(name: str, tensor: Any, stored: np.dtype[Any]) -> Array | None:
    """The memory of a tensor that can be filled where it lies; None of any other."""
    plain = tensor.device.type == "cpu" and tensor.layout == torch.strided
    if not plain or not tensor.is_contiguous() or tensor.is_conj() or tensor.is_neg():
        return None
    if tensor.dtype != _torch_dtype(name, dtype_name(name, stored)):
        return None
    return from_torch(name, tensor)
