"""Arrays on devices are copied to the host one after the other, with few copies at a time."""

from __future__ import annotations

import gc
import math
import os
import pathlib
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import serdes_ml as sd
from serdes_ml import _native
from serdes_ml._transfers import Transfers

SIZE = 1 << 20


class Device:
    """A device that counts its arrays on the host, or on the way to it."""

    def __init__(self) -> None:
        self.there = self.most = 0
        self.begun: list[int] = []

    def arrived(self) -> None:
        self.there += 1
        self.most = max(self.most, self.there)

    def left(self) -> None:
        self.there -= 1


class OnDevice:
    """An array of one mebibyte on a device, whose copy exists as soon as it is begun."""

    def __init__(self, device: Device, number: int) -> None:
        self.device, self.number = device, number
        self.copy: np.ndarray[Any, Any] | None = None

    def copy_to_host_async(self) -> None:
        self.device.begun.append(self.number)
        self.copy = np.full(SIZE, self.number, np.uint8)
        weakref.finalize(self.copy, self.device.left)
        self.device.arrived()


def taken(value: OnDevice) -> np.ndarray[Any, Any]:
    """Returns the copy that was begun."""
    assert value.copy is not None
    return value.copy


def functions(device: Device, transfers: Transfers, count: int) -> list[Callable[[], Any]]:
    """Returns the functions that make the copies."""
    return [transfers.later(OnDevice(device, number), SIZE, taken) for number in range(count)]


def test_copies_are_under_way_ahead_of_who_uses_them_and_no_more_than_the_bound() -> None:
    device = Device()
    copies = functions(device, Transfers(ahead=3 * SIZE), 8)
    assert device.begun == []
    array = copies[0]()
    assert device.begun == [0, 1, 2, 3]
    for number in range(1, 8):
        del array
        gc.collect()
        array = copies[number]()
        assert array[0] == number
        assert device.begun == list(range(min(number + 4, 8)))
    assert device.most <= 5


def test_copies_may_be_asked_for_in_any_order_and_left_out() -> None:
    device = Device()
    copies = functions(device, Transfers(ahead=0), 6)
    for number in (4, 1, 5):
        assert copies[number]()[0] == number
    assert device.begun == [4, 1, 5]


def test_without_a_bound_all_are_under_way_at_once() -> None:
    device = Device()
    copies = functions(device, Transfers(math.inf), 6)
    copies[0]()
    assert device.begun == list(range(6))


@pytest.mark.parametrize("sharded", [False, True])
def test_a_save_holds_few_copies_and_writes_all(path: pathlib.Path, sharded: bool) -> None:
    device, count = Device(), 16
    copies = functions(device, Transfers(ahead=2 * SIZE), count)
    tensors: list[tuple[Any, ...]]
    if sharded:
        shards = [(n, [n, 0], [1, SIZE], copy) for n, copy in enumerate(copies)]
        tensors = [("w", "U8", (count, SIZE), list(range(count)), None, None, shards)]
    else:
        tensors = [(f"w{n:02}", "U8", (SIZE,), copy) for n, copy in enumerate(copies)]
    told: list[tuple[int, int]] = []
    _native.save(str(path), tensors, None, "current", False, None, lambda *at: told.append(at))
    # One copy is being written, and the one before it may not have been released yet.
    assert device.most <= 2 + 2
    assert told[-1] == (count * SIZE, count * SIZE)
    loaded = sd.load_file(path)
    rows = loaded["w"] if sharded else [loaded[name] for name in sorted(loaded)]
    assert [int(row[0]) for row in rows] == list(range(count))


def test_what_a_copy_raises_is_raised_and_the_old_state_stays(path: pathlib.Path) -> None:
    sd.save_file({"old": np.ones(2)}, path)

    def lost() -> Any:
        raise LookupError("the device is gone")

    whole = ("w", "U8", (SIZE,), lost)
    sharded = ("w", "U8", (2, 4), [0], None, None, [(0, [0, 0], [2, 4], lost)])
    for tensor in (whole, sharded):
        with pytest.raises(LookupError, match="gone"):
            _native.save(str(path), [tensor], None, "current", False, None, None)
    short = ("w", "U8", (SIZE,), lambda: np.zeros(3, np.uint8))
    with pytest.raises(ValueError, match=f"{SIZE} bytes has 3"):
        _native.save(str(path), [short], None, "current", False, None, None)
    strange = ("w", "U8", (SIZE,), lambda: "no array")
    with pytest.raises(TypeError):
        _native.save(str(path), [strange], None, "current", False, None, None)
    assert list(sd.load_file(path)) == ["old"]
    assert os.listdir(path.parent) == [path.name]


def test_what_is_not_contiguous_is_copied_when_its_turn_comes(
    path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from serdes_ml import _arrays

    there: list[str] = []
    plain = _arrays.to_numpy

    def counting(name: str, value: object) -> Any:
        there.append(name)
        return plain(name, value)

    monkeypatch.setattr(_arrays, "to_numpy", counting)
    from serdes_ml._files import given

    grid = np.arange(12, dtype=np.int32).reshape(3, 4)
    tensors = {"t": grid.T, "big": grid.astype(">i4"), "plain": grid, "odd": grid[:, ::2]}
    found = {one[0]: one for one in given(tensors)}
    assert there == ["plain"]
    assert [callable(found[name][3]) for name in tensors] == [True, True, False, True]
    sd.save_file(tensors, path)
    for name, array in sd.load_file(path).items():
        np.testing.assert_array_equal(array, tensors[name])
        assert array.dtype == np.int32
    with pytest.raises(TypeError, match="'when'"):
        sd.save_file({"when": np.zeros((2, 2), "M8[s]").T}, path)
