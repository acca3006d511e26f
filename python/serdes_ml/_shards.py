"""Shards of arrays of JAX: which parts they are, and how those of a state get onto devices."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ._arrays import Array, imported
from ._progress import Progress, Whole
from ._state import State

jax = imported("jax")

# The alignment of XLA's buffers in memory of the processor.
_ALIGNMENT = 64

# Bytes of shards that lie on the host at a time while a tree is loaded.
_BATCH_BYTES = 256 << 20


def words_of(sharding: Any, rank: int) -> str | None:
    """A sharding in XLA's words, as far as this jax tells them."""
    try:
        return str(sharding._to_xla_hlo_sharding(rank))
    except (AttributeError, NotImplementedError, TypeError, ValueError):
        return None


def part_of(index: Sequence[slice], shape: Sequence[int]) -> tuple[list[int], list[int]]:
    """First index and extent of each dimension."""
    steps = [one.indices(length) for one, length in zip(index, shape, strict=True)]
    return [begin for begin, _, _ in steps], [max(end - begin, 0) for begin, end, _ in steps]


class Wanted(NamedTuple):
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

    def place(self, device: Any) -> Any:
        """A device, or the memory of it that the sharding names."""
        kind = self.sharding.memory_kind
        if kind is None or kind == device.default_memory().kind:
            return device
        return jax.sharding.SingleDeviceSharding(device, memory_kind=kind)


def wanted_of(name: str, shape: tuple[int, ...], dtype: np.dtype[Any], sharding: Any) -> Wanted:
    """What this process needs of a leaf; without a sharding all of it, on jax's default device."""
    if sharding is None:
        sharding = jax.device_put(np.int8(0)).sharding
    parts: list[tuple[list[int], list[int]]] = []
    numbers: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
    devices: list[tuple[Any, int]] = []
    for device, index in sharding.addressable_devices_indices_map(shape).items():
        origin, extent = part_of(index or (), shape)
        key = tuple(origin), tuple(extent)
        if key not in numbers:
            numbers[key] = len(parts)
            parts.append((origin, extent))
        devices.append((device, numbers[key]))
    return Wanted(name, dtype, shape, sharding, devices, parts)


def _aligned(extent: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """An array without values, where clients of processors take one as it lies, without a copy."""
    size = math.prod(extent) * dtype.itemsize
    raw: Array = np.empty(size + _ALIGNMENT, np.uint8)
    first = -raw.ctypes.data % _ALIGNMENT
    return raw[first : first + size].view(dtype).reshape(extent)


class Loading:
    """A load of several leaves, some hundred megabytes of those for devices at a time."""

    def __init__(self, state: State, verify: bool) -> None:
        self._state, self._verify = state, verify
        self._for_devices: list[tuple[int, Wanted, np.dtype[Any]]] = []
        self._on_host: list[tuple[int, str, np.dtype[Any]]] = []

    def add(self, position: int, wanted: Wanted, stored: np.dtype[Any]) -> None:
        """Have parts of a leaf loaded onto devices."""
        self._for_devices.append((position, wanted, stored))

    def add_on_host(self, position: int, name: str, wants: np.dtype[Any]) -> None:
        """Have a leaf loaded as an array of numpy."""
        self._on_host.append((position, name, wants))

    def names(self) -> list[str]:
        """Names of the leaves for devices."""
        return [wanted.name for _, wanted, _ in self._for_devices]

    def needs(self) -> tuple[dict[Any, int], int]:
        """Bytes on each device of this process, and those that stay on the host but for strings."""
        devices: dict[Any, int] = {}
        on_host = self._state.size(name for _, name, _ in self._on_host)
        for _, wanted, _ in self._for_devices:
            for device, part in wanted.devices:
                size = math.prod(wanted.parts[part][1]) * wanted.dtype.itemsize
                devices.setdefault(device, 0)
                if wanted.place(device) is device:
                    devices[device] += size
                else:
                    on_host += size
        return devices, on_host

    def finish(self, progress: Progress) -> dict[int, Any]:
        """Read them all; the leaves by their positions."""
        names = [name for _, name, _ in self._on_host]
        on_host = self._state.size(names)
        for_devices = sum(wanted.bytes(stored) for _, wanted, stored in self._for_devices)
        whole = Whole(progress, on_host + for_devices)
        found: dict[int, Any] = {}
        if names:
            arrays = self._state.read(names, self._verify, whole.piece(on_host))
            for position, name, wants in self._on_host:
                found[position] = arrays[name].astype(wants, copy=False)
        batch: list[tuple[int, Wanted, np.dtype[Any]]] = []
        held = 0
        for one in self._for_devices:
            batch.append(one)
            held += one[1].bytes(one[2])
            if held >= _BATCH_BYTES:
                found.update(self._put(batch, whole.piece(held)))
                batch, held = [], 0
        found.update(self._put(batch, whole.piece(held)))
        return found

    def _put(
        self,
        batch: Sequence[tuple[int, Wanted, np.dtype[Any]]],
        told: Callable[[int, int], object] | None,
    ) -> dict[int, Any]:
        """Read parts of leaves, and put them onto the devices."""
        arrays: list[list[Array]] = [
            [_aligned(extent, stored) for _, extent in wanted.parts] for _, wanted, stored in batch
        ]
        parts = [
            (self._state.stored(wanted.name), origin, extent, array)
            for (_, wanted, _), own in zip(batch, arrays, strict=True)
            for (origin, extent), array in zip(wanted.parts, own, strict=True)
        ]
        if parts:
            self._state.reader.read_parts(parts, self._verify, told)
        found: dict[int, Any] = {}
        for (position, wanted, _), own in zip(batch, arrays, strict=True):
            cast_arrays = [array.astype(wanted.dtype, copy=False) for array in own]
            on_devices = [
                jax.device_put(cast_arrays[part], wanted.place(device))
                for device, part in wanted.devices
            ]
            found[position] = jax.make_array_from_single_device_arrays(
                wanted.shape, wanted.sharding, on_devices
            )
        return found
