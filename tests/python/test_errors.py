"""Errors: their classes and messages."""

from __future__ import annotations

import errno
import os
import pathlib
import pickle
import resource
import signal
import struct
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import serdes_ml as sd


def crc32c(data: bytes) -> int:
    """Computes the checksum of the format, bit by bit."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def of_format(data: bytes, number: int, min_consumer: int) -> bytes:
    """Returns the state with a header that says which build wrote it."""
    changed = bytearray(data)
    changed[8:20] = struct.pack("<iii", number, number, min_consumer)
    changed[28:32] = struct.pack("<I", crc32c(bytes(changed[:28])))
    return bytes(changed)


def test_a_state_of_a_newer_build_is_too_new_and_not_damaged(path: pathlib.Path) -> None:
    path.write_bytes(of_format(sd.save({"w": np.ones(3)}), 1 << 20, 1 << 20))
    with pytest.raises(sd.TooNew) as caught:
        sd.load_file(path)
    error = caught.value
    assert error.rule == "too_new"
    assert error.found == str(1 << 20)
    assert (error.expected or "").startswith("<= ")
    assert error.remedy
    assert "serdes_version=" in error.remedy
    assert "--" not in error.remedy
    assert isinstance(error, sd.SerdesError)
    assert not isinstance(error, sd.Corrupt)


def test_damaged_bytes_are_corrupt_and_name_the_tensor(path: pathlib.Path) -> None:
    tensor = np.arange(5000, dtype=np.int32)
    sd.save_file({"weights": tensor, "other": np.ones(4)}, path)
    data = bytearray(path.read_bytes())
    at = data.index(tensor[1000:1010].tobytes())
    data[at] ^= 1
    path.write_bytes(data)
    with pytest.raises(sd.Corrupt, match="weights") as caught:
        sd.load_file(path)
    assert caught.value.rule == "corrupt"
    assert "`serdes restore --salvage`" in str(caught.value)
    assert sd.load_file(path, only="other")["other"].sum() == 4
    assert (sd.load_file(path, verify=False)["weights"] != tensor).sum() == 1
    assert not sd.check(path, verify_data=True)


@pytest.mark.parametrize("length", [0, 1, 31, 64, 200, -1])
def test_what_is_cut_off_is_corrupt(path: pathlib.Path, length: int) -> None:
    data = sd.save({"w": np.ones(100)})
    path.write_bytes(data[:length])
    with pytest.raises(sd.Corrupt):
        sd.load_file(path)
    with pytest.raises(sd.Corrupt):
        sd.load(data[:length])


def test_a_whole_file_of_another_kind_is_not_corrupt(data: pathlib.Path) -> None:
    with pytest.raises(sd.Unsupported) as caught:
        sd.load_file(data / "safetensors" / "tiny.safetensors")
    assert caught.value.rule == "other_kind"


def test_a_file_that_is_not_there(path: pathlib.Path) -> None:
    with pytest.raises(sd.NotFound) as caught:
        sd.load_file(path)
    error = caught.value
    assert isinstance(error, FileNotFoundError)
    assert isinstance(error, sd.SerdesError)
    assert error.errno == errno.ENOENT
    assert error.filename == str(path)
    assert error.rule == "not_found"
    with pytest.raises(FileNotFoundError):
        sd.save_file({"w": np.ones(1)}, path / "below" / "it.sds")
    with pytest.raises(sd.NotFound):
        sd.inspect(path)


def test_what_the_system_says_is_an_os_error(tmp_path: pathlib.Path) -> None:
    with pytest.raises(IsADirectoryError) as caught:
        sd.load_file(tmp_path)
    assert caught.value.errno == errno.EISDIR
    with pytest.raises(OSError) as written:  # noqa: PT011
        sd.save_file({"w": np.ones(1)}, tmp_path)
    assert written.value.errno is not None
    file = tmp_path / "file"
    file.write_bytes(b"")
    with pytest.raises(OSError) as below:  # noqa: PT011
        sd.save_file({"w": np.ones(1)}, file / "state.sds")
    assert below.value.errno == errno.ENOTDIR


def test_a_missing_tensor_is_a_key_error_that_names_it(path: pathlib.Path) -> None:
    sd.save_file({"w": np.ones(1)}, path)
    with sd.safe_open(path) as f:
        for ask in (f.get_tensor, f.get_slice, f.get_shape, f.get_dtype):
            with pytest.raises(KeyError, match="weights"):
                ask("weights")
    sd.save_file({"params/w": np.ones(1), "params/bias": np.ones(1)}, path)
    with sd.safe_open(path) as f, pytest.raises(KeyError) as missing:
        f.get_tensor("params/bia")
    said = f"{path}: the state has no tensor 'params/bia'; it has 'params/bias', 'params/w'"
    assert missing.value.args == (said,)
    with pytest.raises(KeyError) as patterns:
        sd.load_file(path, only=["params/*", "param/w", "z*"])
    said = "'param/w' matches no name of a tensor; it has 'params/w', 'params/bias'"
    assert patterns.value.args[0].startswith(f"{path}: {said}; 'z*' matches no name")
    with pytest.raises(ValueError, match="closed"):
        f.keys()


def test_an_error_of_a_file_names_it_and_what_can_be_done(
    data: pathlib.Path, path: pathlib.Path
) -> None:
    other = data / "safetensors" / "tiny.safetensors"
    with pytest.raises(sd.Unsupported) as caught:
        sd.load_file(other)
    assert str(other) in str(caught.value)
    # The function that the message names converts the file to a state.
    assert "serdes_ml.convert" in str(caught.value)
    sd.convert(other, path)
    whole = path.read_bytes()
    path.with_name("plain.txt").write_text("no tensors at all, but a note to oneself\n")
    with pytest.raises(sd.Unsupported) as plain:
        sd.load_file(path.with_name("plain.txt"))
    assert "plain.txt" in str(plain.value)
    assert "convert" not in str(plain.value)
    for broken, kind in (
        (whole[:-1], sd.Corrupt),
        (of_format(whole, 1 << 20, 1 << 20), sd.TooNew),
    ):
        path.write_bytes(broken)
        with pytest.raises(kind) as named:
            sd.load_file(path)
        assert str(named.value).startswith(f"{path}: ")
        # For bytes there is no file to name.
        with pytest.raises(kind) as unnamed:
            sd.load(broken)
        assert str(path) not in str(unnamed.value)


NO_TENSORS: list[Any] = [
    [1, 2, 3],
    1.5,
    None,
    "text",
    np.array([object()]),
    np.array([1, None], dtype=object),
    np.zeros(2, "M8[s]"),
    np.zeros(2, [("a", "i4")]),
    np.zeros(2, np.longdouble),
    np.ma.masked_array([1, 2], [True, False]),
]


@pytest.mark.parametrize("value", NO_TENSORS, ids=lambda one: type(one).__name__)
def test_what_is_no_tensor_is_a_type_error_that_names_it(path: pathlib.Path, value: Any) -> None:
    with pytest.raises(TypeError, match="'weights'"):
        sd.save_file({"weights": value}, path)
    assert os.listdir(path.parent) == []


def test_wrong_arguments(path: pathlib.Path) -> None:
    tensors: Any = {"w": np.ones(1)}
    wrong: Any
    for wrong in ({1: np.ones(1)}, {b"w": np.ones(1)}):
        with pytest.raises(TypeError):
            sd.save_file(wrong, path)
    for wrong in ({"a": 1}, {1: "a"}, {"a": None}):
        with pytest.raises(TypeError):
            sd.save_file(tensors, path, metadata=wrong)
    with pytest.raises(ValueError, match="package"):
        sd.save_file(tensors, path, metadata={"serdes_ml.aliases": "{}"})
    wrong = 7
    with pytest.raises(TypeError):
        sd.save_file(tensors, path, progress=wrong)
    assert os.listdir(path.parent) == []
    sd.save_file(tensors, path)
    with pytest.raises(ValueError, match="framework"):
        sd.load_file(path, framework="keras")


ERRORS = [
    sd.SerdesError("words", "rule", "1", "2", "help"),
    sd.TooNew("words", "too_new", "7", "<= 1", "upgrade"),
    sd.TooOld("words"),
    sd.Corrupt("words", found="x"),
    sd.NotFound("words", path="/a/b"),
    sd.Unsupported("words", expected="y"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda one: type(one).__name__)
def test_errors_travel_between_processes(error: sd.SerdesError) -> None:
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        back = pickle.loads(pickle.dumps(error, protocol))
        assert type(back) is type(error)
        assert str(back) == str(error)
        for field in ("rule", "found", "expected", "remedy"):
            assert getattr(back, field) == getattr(error, field)
    if isinstance(error, sd.NotFound):
        back = pickle.loads(pickle.dumps(error))
        assert (back.errno, back.filename) == (errno.ENOENT, "/a/b")


def test_a_caught_error_of_a_file_travels_too(path: pathlib.Path) -> None:
    with pytest.raises(sd.NotFound) as caught:
        sd.load_file(path)
    back = pickle.loads(pickle.dumps(caught.value))
    assert str(back) == str(caught.value)
    assert back.filename == str(path)


def test_a_save_that_fails_leaves_what_was_there(path: pathlib.Path) -> None:
    sd.save_file({"w": np.zeros(10)}, path)
    with pytest.raises(TypeError):
        sd.save_file({"w": np.ones(10), "x": object()}, path)
    program = (
        "import resource, sys, numpy as np, serdes_ml as sd\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))\n"
        "try:\n"
        "    sd.save_file({'w': np.ones(1 << 20)}, sys.argv[1])\n"
        "except OSError as error:\n"
        "    print(error.errno)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True
    )
    assert int(ran.stdout) == errno.EFBIG, ran
    assert (sd.load_file(path)["w"] == 0).all()
    assert os.listdir(path.parent) == [path.name]
    assert resource.getrlimit(resource.RLIMIT_FSIZE)


@pytest.mark.parametrize("kind", ["save", "load"])
def test_ctrl_c_ends_the_work_soon_and_leaves_nothing(path: pathlib.Path, kind: str) -> None:
    big = path.with_name("big.sds")
    if kind == "load":
        np_array = np.zeros(1 << 20, np.uint8)
        sd.save_file({str(number): np_array for number in range(64)}, big, sync=False)
    program = (
        "import sys, time, numpy as np, serdes_ml as sd\n"
        "kind, path = sys.argv[1:]\n"
        "zeros = np.zeros(64 << 20, np.uint8)\n"
        "def started(done, total):\n"
        "    print('started', flush=True)\n"
        "    time.sleep(0.05)\n"
        "try:\n"
        "    while True:\n"
        "        if kind == 'save':\n"
        "            sd.save_file({str(n): zeros for n in range(64)}, path, sync=False,\n"
        "                         progress=started)\n"
        "        else:\n"
        "            sd.load_file(path, progress=started)\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', time.monotonic(), flush=True)\n"
    )
    target = path if kind == "save" else big
    process = subprocess.Popen(
        [sys.executable, "-c", program, kind, str(target)],
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=30)
    assert "interrupted" in rest
    assert process.returncode == 0
    left = [] if kind == "save" else [big.name]
    assert os.listdir(path.parent) == left


def test_an_address_that_names_no_bucket_says_what_is_expected() -> None:
    with pytest.raises(OSError, match="s3://bucket/key"):
        sd.load_file("s3:///state.sds")
