"""Files of tensors: saved values of every kind are restored."""

from __future__ import annotations

import array
import os
import pathlib
import threading
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import serdes_ml as sd
from serdes_ml import _arrays


def numbers(dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
    """Returns values that every type has, including narrow types."""
    count = int(np.prod(shape))
    values = np.arange(count) % 2
    return values.reshape(shape).astype(dtype)


@pytest.mark.parametrize("dtype", list(_arrays._TO_NUMPY.values()), ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (5,), (4, 3, 2)], ids=str)
def test_every_type_comes_back_bit_for_bit(
    path: pathlib.Path, dtype: np.dtype[Any], shape: tuple[int, ...]
) -> None:
    tensor = numbers(dtype, shape)
    sd.save_file({"w": tensor}, path)
    loaded = sd.load_file(path)["w"]
    assert loaded.dtype == dtype
    assert loaded.shape == shape
    assert loaded.tobytes() == tensor.tobytes()
    assert loaded.flags.writeable
    assert loaded.flags.owndata
    assert sd.load(sd.save({"w": tensor}))["w"].tobytes() == tensor.tobytes()


def test_bits_that_are_no_numbers_stay(path: pathlib.Path) -> None:
    bits = np.arange(1 << 16, dtype=np.uint16)
    halves = {"bf16": bits.view(ml_dtypes.bfloat16), "f16": bits.view(np.float16)}
    sd.save_file(halves, path)
    loaded = sd.load_file(path)
    assert all((loaded[name].view(np.uint16) == bits).all() for name in halves)


def test_arrays_in_any_order_of_memory_come_back_in_rows(path: pathlib.Path) -> None:
    rows = np.arange(60, dtype=np.int32).reshape(5, 12)
    given = {
        "fortran": np.asfortranarray(rows),
        "transposed": rows.T,
        "every second": rows[::2, ::3],
        "backwards": rows[:, ::-1],
        "big endian": rows.astype(">i4"),
        "read only": np.frombuffer(rows.tobytes(), np.int32),
        "broadcast": np.broadcast_to(rows[:1], (5, 12)),
        "scalar": np.float32(7),
    }
    sd.save_file(given, path)
    loaded = sd.load_file(path)
    for name, tensor in given.items():
        np.testing.assert_array_equal(loaded[name], np.asarray(tensor))
        assert loaded[name].dtype == np.asarray(tensor).dtype.newbyteorder("=")


class OnlyDlpack:
    """An array of a framework that this package does not support."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()


def test_whatever_has_a_buffer_is_a_tensor() -> None:
    floats = np.arange(6, dtype=np.float32).reshape(2, 3)
    given = {
        "bytes": b"\x01\x02",
        "bytearray": bytearray(b"\x03"),
        "memoryview": memoryview(floats),
        "array": array.array("d", [1.5, 2.5]),
        "dlpack": OnlyDlpack(floats),
    }
    loaded = sd.load(sd.save(given))
    assert loaded["bytes"].tolist() == [1, 2]
    assert loaded["bytearray"].tolist() == [3]
    np.testing.assert_array_equal(loaded["memoryview"], floats)
    assert loaded["array"].dtype == np.float64
    np.testing.assert_array_equal(loaded["dlpack"], floats)


STRINGS: list[Any] = [
    np.array([["a", "ü"], ["", "long" * 100]]),
    np.array([[b"a", "ü".encode()], [b"", b"long" * 100]], dtype=object),
    np.array([["a", b"\xc3\xbc"], ["", "long" * 100]], dtype=object),
]
if hasattr(np.dtypes, "StringDType"):
    STRINGS.append(np.array(STRINGS[0], dtype=np.dtypes.StringDType()))


@pytest.mark.parametrize("strings", STRINGS, ids=lambda one: str(one.dtype))
def test_strings_come_back_as_bytes(path: pathlib.Path, strings: Any) -> None:
    sd.save_file({"s": strings, "none": np.empty((0, 3), "U1"), "one": np.array(b"x")}, path)
    loaded = sd.load_file(path)
    assert loaded["s"].dtype == object
    assert loaded["s"].tolist() == [[b"a", "ü".encode()], [b"", b"long" * 100]]
    assert loaded["none"].shape == (0, 3)
    assert loaded["one"].shape == ()
    assert loaded["one"].item() == b"x"
    assert all(array.flags.owndata for array in loaded.values())
    with sd.safe_open(path) as f:
        assert f.get_dtype("s") == np.dtype(object)
        assert f.get_slice("s")[1, :].tolist() == [b"", b"long" * 100]
        assert f.get_slice("s")[0, 0] == b"a"


def test_strings_keep_every_byte() -> None:
    strings = np.empty(3, object)
    strings[:] = [b"zeros\0\0", b"\xff\xfe", b""]
    loaded = sd.load(sd.save({"s": strings}))["s"]
    assert loaded.tolist() == strings.tolist()


def test_a_state_says_what_it_was_told(path: pathlib.Path) -> None:
    metadata = {"step": "7", "ü": "ß", "empty": ""}
    sd.save_file({}, path, metadata=metadata)
    with sd.safe_open(path) as f:
        assert f.keys() == []
        assert f.metadata() == metadata
        assert list(f.metadata()) == list(metadata)
    sd.save_file({"w": np.ones(1)}, path)
    with sd.safe_open(path) as f:
        assert f.metadata() == {}
        assert list(f) == ["w"]
        assert "w" in f
        assert len(f) == 1


def test_an_open_state_says_what_it_is(path: pathlib.Path) -> None:
    sd.save_file({"w": np.zeros((2, 3), np.int8)}, path)
    with sd.safe_open(path) as f:
        assert repr(f) == f"<state {str(path)!r}: 1 tensor, 6 B>"
        assert repr(f.get_slice("w")) == "<slice of 'w': int8[2, 3]>"
    assert repr(f) == f"<closed state {str(path)!r}>"


def test_notebooks_show_a_state_as_a_table_of_escaped_texts(path: pathlib.Path) -> None:
    tensors = {f"<b>{number:03}": np.zeros(1000) for number in range(60)}
    sd.save_file(tensors, path)
    with sd.safe_open(path) as f:
        assert repr(f).endswith("60 tensors, 480.0 kB>")
        shown = f._repr_html_()
    assert "&lt;b&gt;000" in shown
    assert "<b>000" not in shown
    assert "and 10 more" in shown
    assert "closed" in f._repr_html_()


def test_a_device_is_taken_as_safetensors_takes_it(path: pathlib.Path) -> None:
    sd.save_file({"w": np.arange(6).reshape(2, 3)}, path)
    with sd.safe_open(path, framework="np", device="cpu") as f:
        assert f.get_tensor("w").tolist() == [[0, 1, 2], [3, 4, 5]]
    assert sd.load_file(path, device="cpu")["w"].shape == (2, 3)
    for load in (sd.load_file, sd.safe_open):
        with pytest.raises(ValueError, match="'cuda:0': arrays of numpy"):
            load(path, device="cuda:0")


def test_patterns_choose_tensors(path: pathlib.Path) -> None:
    names = ["decoder/w", "encoder/b", "encoder/w", "step"]
    sd.save_file({name: np.ones(2) for name in names}, path)
    assert list(sd.load_file(path)) == names
    assert list(sd.load_file(path, only=["encoder/*", "ste[p]"])) == names[1:]
    assert list(sd.load_file(path, only="*/?")) == names[:3]
    with pytest.raises(KeyError, match="nothing/"):
        sd.load_file(path, only=["step", "nothing/*"])


@pytest.mark.parametrize("version", ["current", "week-4-old", "minimum", 0, 1, np.int64(2)])
def test_a_state_is_written_for_whom_it_is_meant(path: pathlib.Path, version: str | int) -> None:
    sd.save_file({"w": np.ones(2)}, path, serdes_version=version)
    np.testing.assert_array_equal(sd.load_file(path)["w"], np.ones(2))
    requested = int(sd.inspect(path)["details"]["requested"])
    known = {
        "current": lambda one: one["current"],
        "week-4-old": lambda one: one["week_4_old"],
        "minimum": lambda one: one["minimum"],
    }
    if isinstance(version, str):
        lines = [one for one in sd.versions() if one["line"] == "ifrt_serdes"]
        assert [one["number"] for one in lines if known[version](one)] == [requested]
    else:
        assert requested == version


@pytest.mark.parametrize(
    ("version", "error"),
    [("newest", ValueError), (-1, ValueError), (10**6, ValueError), (True, TypeError)],
)
def test_versions_that_do_not_exist_are_refused(
    path: pathlib.Path, version: Any, error: type[Exception]
) -> None:
    with pytest.raises(error):
        sd.save_file({"w": np.ones(2)}, path, serdes_version=version)
    assert not path.exists()


def test_files_and_bytes_are_the_same(path: pathlib.Path) -> None:
    tensors = {"w": np.arange(300_000, dtype=np.float32), "b": np.ones(3, np.int8)}
    sd.save_file(tensors, path, metadata={"a": "b"})
    data = sd.save(tensors, metadata={"a": "b"})
    assert path.read_bytes() == data
    for form in (data, bytearray(data), memoryview(data)):
        np.testing.assert_array_equal(sd.load(form)["w"], tensors["w"])


def test_addresses_of_files_are_paths(path: pathlib.Path) -> None:
    sd.save_file({"w": np.ones(2)}, path.as_uri())
    assert list(sd.load_file(path.as_uri())) == ["w"]
    assert list(sd.load_file(str(path))) == ["w"]


def test_progress_is_told_up_to_the_end(path: pathlib.Path) -> None:
    tensors = {str(number): np.ones(1 << 20, np.uint8) for number in range(20)}
    told: list[tuple[int, int]] = []

    def listen(done: int, total: int) -> None:
        told.append((done, total))

    sd.save_file(tensors, path, sync=False, progress=listen)
    assert told[-1] == (20 << 20, 20 << 20)
    assert told == sorted(told)
    told.clear()
    sd.load_file(path, progress=listen)
    assert told[-1] == (20 << 20, 20 << 20)
    sd.load_file(path, progress=True)


def test_a_listener_that_raises_stops_the_work(path: pathlib.Path) -> None:
    sd.save_file({"old": np.ones(1)}, path)

    def stop(done: int, total: int) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        sd.save_file({"new": np.ones(1 << 20)}, path, progress=stop)


def test_saves_and_loads_let_other_threads_run(path: pathlib.Path) -> None:
    tensors = {str(number): np.ones(8 << 20, np.uint8) for number in range(8)}
    turns = 0
    stop = threading.Event()

    def count() -> None:
        nonlocal turns
        while not stop.is_set():
            turns += 1

    other = threading.Thread(target=count)
    other.start()
    try:
        before = turns
        sd.save_file(tensors, path, sync=False)
        assert turns > before + 100
        before = turns
        sd.load_file(path)
        assert turns > before + 100
    finally:
        stop.set()
        other.join()


def test_many_threads_save_and_load(tmp_path: pathlib.Path) -> None:
    wrong: list[BaseException] = []

    def work(number: int) -> None:
        try:
            tensors = {"w": np.full(100_000, number)}
            for _ in range(5):
                sd.save_file(tensors, tmp_path / f"{number}.sds", sync=False)
                loaded = sd.load_file(tmp_path / f"{number}.sds")
                np.testing.assert_array_equal(loaded["w"], tensors["w"])
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=[number]) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_saving_over_a_state_that_is_read_leaves_the_reader_the_old_one(
    path: pathlib.Path,
) -> None:
    sd.save_file({"w": np.zeros(1000)}, path)
    with sd.safe_open(path) as f:
        sd.save_file({"w": np.ones(1000)}, path)
        assert (f.get_tensor("w") == 0).all()
    assert (sd.load_file(path)["w"] == 1).all()
    assert os.listdir(path.parent) == [path.name]


def test_readers_of_other_builds_states(golden: pathlib.Path) -> None:
    states = sorted(golden.rglob("*.sds"))
    assert states
    for state in states:
        verdict = sd.check(state)
        if verdict:
            with sd.safe_open(state) as f:
                assert f.keys()


def test_parts_of_strings_own_their_memory(path: pathlib.Path) -> None:
    sd.save_file({"s": np.array([["a", "b"], ["c", "d"]])}, path)
    with sd.safe_open(path) as f:
        for part in (f.get_slice("s")[...], f.get_slice("s")[:, 1], f.get_tensor("s")):
            assert part.flags.owndata
            assert part.flags.writeable


@pytest.mark.parametrize("count", [3, 200_000])
def test_strings_are_verified_unless_one_says_otherwise(path: pathlib.Path, count: int) -> None:
    strings = np.array([b"word%d" % number for number in range(count)], dtype=object)
    sd.save_file({"s": strings}, path, sync=False)
    data = bytearray(path.read_bytes())
    data[data.rindex(b"word2")] ^= 1
    path.write_bytes(data)
    with pytest.raises(sd.Corrupt, match='"s"'):
        sd.load_file(path)
    taken = sd.load_file(path, verify=False)["s"]
    assert (taken != strings).sum() == 1
    with sd.safe_open(path, verify=False) as f:
        assert (f.get_slice("s")[:] == taken).all()
