"""Slices of tensors: equal to numpy's, and reading only the chunks that they cross."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest
import serdes_ml as sd

CUBE = np.arange(7 * 8 * 9, dtype=np.int16).reshape(7, 8, 9)

INDICES: list[Any] = [
    0,
    -1,
    slice(2, 5),
    slice(None),
    slice(10, 20),
    slice(-3, None),
    slice(None, None, 2),
    slice(6, 1, -2),
    slice(None, None, -1),
    slice(5, 2),
    ...,
    (..., 3),
    (0, ..., slice(1, 4)),
    (slice(1, 3), 2),
    (slice(1, 3), slice(2, 6), slice(3, 9)),
    (slice(None), slice(None), 4),
    (1, 2, 3),
    (-1, -1, -1),
    (slice(1, 6, 3), slice(7, None, -3), slice(0, 9, 4)),
    (np.int64(3), slice(np.int32(1), None)),
    (),
]


@pytest.fixture
def state(path: pathlib.Path) -> pathlib.Path:
    """Writes a state with a cube, a scalar and an empty tensor."""
    tensors = {"cube": CUBE, "scalar": np.array(5.0), "empty": np.empty((0, 4))}
    sd.save_file(tensors, path)
    return path


@pytest.mark.parametrize("index", INDICES, ids=str)
@pytest.mark.parametrize("verify", [True, False])
def test_a_part_is_what_numpy_says(state: pathlib.Path, index: Any, verify: bool) -> None:
    with sd.safe_open(state, verify=verify) as f:
        found = f.get_slice("cube")[index]
    expected = CUBE[index]
    assert found.dtype == CUBE.dtype
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found, expected)
    assert found.flags.writeable
    assert found.flags.c_contiguous


def test_scalars_and_nothing_have_parts(state: pathlib.Path) -> None:
    with sd.safe_open(state) as f:
        assert f.get_slice("scalar")[...] == 5.0
        assert f.get_slice("scalar")[()] == 5.0
        assert f.get_slice("empty")[:, 1:].shape == (0, 3)
        assert f.get_slice("cube").get_shape() == [7, 8, 9]
        assert f.get_slice("cube").get_dtype() == np.int16


@pytest.mark.parametrize("index", [7, -8, (0, 0, 0, 0), (..., ...), "a", (0, 1.5), None])
def test_indices_that_numpy_would_not_take_or_that_lie_outside(
    state: pathlib.Path, index: Any
) -> None:
    with sd.safe_open(state) as f, pytest.raises((IndexError, TypeError)):
        f.get_slice("cube")[index]


@pytest.mark.parametrize("index", [True, np.True_, np.array([0, 1]), [0, 1], (0, np.array([1]))])
def test_masks_and_lists_of_indices_are_refused_in_words(state: pathlib.Path, index: Any) -> None:
    # numpy copies scattered elements for these indices, and does not treat a bool as a number.
    with sd.safe_open(state) as f, pytest.raises(IndexError, match="expected numbers, slices"):
        f.get_slice("cube")[index]


def test_a_part_reads_only_the_chunks_that_it_crosses(path: pathlib.Path) -> None:
    rows = np.arange(64 << 20, dtype=np.uint8).reshape(64, 1 << 20)
    sd.save_file({"w": rows}, path, sync=False)
    with sd.safe_open(path) as f:
        reader = f._open().reader
        found = np.empty((1, 1 << 20), np.uint8)
        read = reader.read_parts([("w", [17, 0], [1, 1 << 20], found)], True, None)
    assert (found[0] == rows[17]).all()
    assert read <= 4 << 20


def test_damage_outside_of_a_part_does_not_concern_it(path: pathlib.Path) -> None:
    rows = np.zeros((16, 1 << 20), np.uint8)
    rows[9, 77] = 0xA5
    sd.save_file({"w": rows}, path)
    data = bytearray(path.read_bytes())
    data[data.index(0xA5, 8192)] = 0xA4
    path.write_bytes(data)
    with sd.safe_open(path) as f:
        assert f.get_slice("w")[:8].sum() == 0
        with pytest.raises(sd.Corrupt):
            f.get_slice("w")[9:10]
    with sd.safe_open(path, verify=False) as f:
        assert f.get_slice("w")[9, 77] == 0xA4
