"""Arguments that people give by mistake: an error of the package says what is wrong."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import serdes_ml as sd

SECRET = "http://127.0.0.1:1/x.sds?X-Amz-Signature=secret"


@pytest.mark.parametrize(
    "use",
    [
        lambda path: sd.load_file(path),
        lambda path: sd.save_file({"w": np.ones(2)}, path),
        lambda path: sd.safe_open(path),
        lambda path: sd.inspect(path),
        lambda path: sd.diff(path, path),
    ],
    ids=["load_file", "save_file", "safe_open", "inspect", "diff"],
)
@pytest.mark.parametrize("address", [SECRET, "http://me:secret@127.0.0.1:1/x.sds"])
def test_what_is_secret_in_an_address_is_in_no_exception(
    use: Callable[[str], Any], address: str
) -> None:
    with pytest.raises((OSError, sd.SerdesError)) as caught:
        use(address)
    error = caught.value
    assert "secret" not in f"{error} {error!r} {error.args} {getattr(error, 'filename', '')}"
    assert "127.0.0.1:1/x.sds" in str(error)


def test_the_name_of_a_file_in_an_exception_is_a_text() -> None:
    with pytest.raises(OSError, match="/dev/null") as caught:
        sd.save_file({"w": np.ones(2)}, "/dev/null")
    assert caught.value.filename == "/dev/null"


@pytest.mark.parametrize("tensors", [[np.ones(2)], None, "x.sds"])
def test_tensors_that_have_no_names_are_a_type_error(tensors: Any, tmp_path: pathlib.Path) -> None:
    with pytest.raises(TypeError, match="arrays by their names"):
        sd.save_file(tensors, tmp_path / "x.sds")
    assert list(tmp_path.iterdir()) == []


def test_texts_without_a_form_in_utf_8_are_named() -> None:
    half = "\udc80"
    with pytest.raises(ValueError, match="the name of a tensor"):
        sd.save({half: np.ones(2)})
    with pytest.raises(ValueError, match="metadata 'key'"):
        sd.save({"w": np.ones(2)}, {"key": half})
    with pytest.raises(ValueError, match="'w' has a text"):
        sd.save({"w": np.array([half], dtype=object)})


def test_versions_and_metadata_of_another_kind_are_refused_in_words() -> None:
    metadata: Any = [("a", "b")]
    with pytest.raises(
        TypeError, match="metadata is a value of type list; expected texts by texts"
    ):
        sd.save({"w": np.ones(2)}, metadata)
    with pytest.raises(ValueError, match="no such version"):
        sd.save({"w": np.ones(2)}, serdes_version=10**30)


@pytest.mark.parametrize("use", [sd.load_file, sd.check, sd.inspect, lambda p: sd.check_all([p])])
def test_a_path_with_a_null_character_is_a_value_error(use: Callable[[str], Any]) -> None:
    with pytest.raises(ValueError, match="null character"):
        use("state.sds\0")


ASKED: list[dict[str, Any]] = [
    {"tensorflow": 2.16},
    {"tags": 3},
    {"custom_ops": [1]},
    {"consumer": ["graph_def"]},
    {"consumer": {"graph_def": "1395"}},
    {"consumer": {"graph_def": (1, 2, 3)}},
]


@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_what_is_asked_of_another_type_is_a_type_error_that_names_it(asked: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=f"{next(iter(asked))}.* is .*; expected "):
        sd.check("/nowhere", **asked)


@pytest.mark.parametrize(
    ("use", "found", "expected"),
    [
        (lambda sdj, at: sdj.Steps(at, keep="two"), "'two'", "an integer, 1 or more, or None"),
        (lambda sdj, at: sdj.Steps(at, keep=2.5), "2.5", "an integer, 1 or more, or None"),
        (lambda sdj, at: sdj.Steps(at, keep=1, metric=3), "3", "the name of a number, or None"),
        (lambda sdj, at: sdj.Steps(at).save("7", {}), "'7'", "an integer, 0 or more"),
        (lambda sdj, _: sdj.connect(7), "7", "a text, HOST:PORT"),
        (lambda sdj, _: sdj.connect("h:1", token=b"x"), "b'x'", "a text, or None"),
        (lambda sdj, _: sdj.connect("h:1", timeout="1"), "'1'", "a number of seconds, more than 0"),
    ],
    ids=["keep", "keep-float", "metric", "step", "address", "token", "timeout"],
)
def test_an_argument_of_another_type_says_what_was_expected(
    use: Callable[[Any, Any], Any], found: str, expected: str, tmp_path: pathlib.Path
) -> None:
    sdj = pytest.importorskip("serdes_ml.jax", exc_type=ImportError)
    with pytest.raises(TypeError, match=f"expected {expected}") as caught:
        use(sdj, tmp_path / "run")
    error = caught.value
    assert isinstance(error, sd.WrongType)
    assert (error.found, error.expected) == (found, expected)
