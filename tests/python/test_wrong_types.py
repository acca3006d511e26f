"""Arguments of a wrong type: every public function says what was found and expected."""

from __future__ import annotations

import inspect
import os
import pathlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import serdes_ml as sd


class Case(NamedTuple):
    """A function, a correct call of it, and its parameters that accept any type."""

    function: Callable[..., Any]
    right: dict[str, Any]
    anything: frozenset[str] = frozenset()


def of_package(folder: pathlib.Path) -> dict[str, Case]:
    """Returns the functions that need no framework."""
    state, other = folder / "state.sds", folder / "other.sds"
    tensors = {"w": np.ones(2)}
    sd.save_file(tensors, state)
    opened = sd.safe_open(state)
    return {
        "save_file": Case(sd.save_file, {"tensors": tensors, "filename": other}),
        "save": Case(sd.save, {"tensors": tensors}),
        "load_file": Case(sd.load_file, {"filename": state}),
        "load": Case(sd.load, {"data": sd.save(tensors)}),
        "safe_open": Case(sd.safe_open, {"filename": state}),
        "get_tensor": Case(opened.get_tensor, {}),
        "get_slice": Case(opened.get_slice, {}),
        "get_shape": Case(opened.get_shape, {}),
        "get_dtype": Case(opened.get_dtype, {}),
        "convert": Case(sd.convert, {"source": state, "target": other}),
        "check": Case(sd.check, {"path": state}),
        "check_all": Case(sd.check_all, {"paths": state}),
        "inspect": Case(sd.inspect, {"path": state}),
        "versions": Case(sd.versions, {}),
        "explain": Case(sd.explain, {}),
        "diff": Case(sd.diff, {"a": state, "b": state}),
        "doctor": Case(sd.doctor, {}),
        "fits": Case(sd.fits, {"path": state}),
    }


def of_jax(folder: pathlib.Path) -> dict[str, Case]:
    """Returns the functions of `serdes_ml.jax`."""
    os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    pytest.importorskip("jax")
    from serdes_ml import jax as sdj

    state, other = folder / "state.sds", folder / "other.sds"
    tree = {"w": np.ones(2)}
    sdj.save(state, tree)
    steps = sdj.Steps(folder / "run", metric="loss")
    steps.save(1, tree)
    future = sdj.save_async(other, tree)
    trees = frozenset({"tree", "like"})
    return {
        "jax.load_file": Case(sd.load_file, {"filename": state, "framework": "jax"}),
        "jax.save": Case(sdj.save, {"path": other, "tree": tree}, trees),
        "jax.save_async": Case(sdj.save_async, {"path": other, "tree": tree}, trees),
        "jax.load": Case(sdj.load, {"path": state}),
        "jax.fits": Case(sdj.fits, {"path": state}),
        "Future.result": Case(future.result, {}),
        "Future.exception": Case(future.exception, {}),
        "Steps": Case(sdj.Steps, {"folder": folder / "run"}),
        "Steps.save": Case(steps.save, {"step": 2, "tree": tree}, trees),
        "Steps.save_async": Case(steps.save_async, {"step": 2, "tree": tree}, trees),
        "Steps.load": Case(steps.load, {"step": 1}),
        "Steps.path": Case(steps.path, {}),
        "Steps.existing": Case(steps.existing, {}),
        "Steps.latest": Case(steps.latest, {}),
        "Steps.metrics": Case(steps.metrics, {}),
        "Steps.delete": Case(steps.delete, {}),
        "connect": Case(sdj.connect, {"address": "localhost:1"}),
    }


def of_torch(folder: pathlib.Path) -> dict[str, Case]:
    """Returns the functions of `serdes_ml.torch`."""
    torch = pytest.importorskip("torch")
    from serdes_ml import torch as sdt

    state, other = folder / "state.sds", folder / "other.sds"
    tensors = {"w": torch.ones(2)}
    sdt.save_file(tensors, state)
    return {
        "torch.load_file of the package": Case(
            sd.load_file, {"filename": state, "framework": "torch"}
        ),
        "torch.save_file": Case(sdt.save_file, {"tensors": tensors, "filename": other}),
        "torch.load_file": Case(sdt.load_file, {"filename": state}),
        "StorageWriter": Case(sdt.StorageWriter, {}),
        "StorageReader": Case(sdt.StorageReader, {}),
    }


@pytest.mark.parametrize("cases", [of_package, of_jax, of_torch], ids=["package", "jax", "torch"])
def test_each_argument_says_what_was_found_and_expected(
    cases: Callable[[pathlib.Path], dict[str, Case]], tmp_path: pathlib.Path
) -> None:
    wrong = object()
    for name, case in cases(tmp_path).items():
        for parameter in inspect.signature(case.function).parameters:
            if parameter in case.anything:
                continue
            with pytest.raises(sd.WrongType) as caught:
                case.function(**{**case.right, parameter: wrong})
            error = caught.value
            assert error.found == "a value of type object", (name, parameter)
            assert error.expected, (name, parameter)
            assert error.expected in str(error), (name, parameter)
            # The error names an argument, and does not show exceptions of earlier attempts.
            assert error.__context__ is None or error.__suppress_context__, (name, parameter)


def test_the_functions_are_all_there_are(tmp_path: pathlib.Path) -> None:
    known = of_package(tmp_path)
    functions = {name for name in sd.__all__ if inspect.isroutine(getattr(sd, name))}
    assert functions - set(known) == set()
    if "jax" in sd.__dict__:
        functions = {name for name in sd.jax.__all__ if inspect.isfunction(getattr(sd.jax, name))}
        assert {f"jax.{name}" for name in functions - {"connect"}} <= set(of_jax(tmp_path))


def test_values_within_an_argument_are_named(tmp_path: pathlib.Path) -> None:
    state = tmp_path / "state.sds"
    sd.save_file({"w": np.ones(1)}, state)
    uses: list[tuple[Callable[[], object], str]] = [
        (lambda: sd.save({1: np.ones(1)}), "the name of a tensor is 1"),
        (lambda: sd.save({"w": 3}), "'w' is 3"),
        (lambda: sd.save({}, {1: "a"}), "a key of the metadata is 1"),
        (lambda: sd.save({}, {"a": 1}), "the metadata 'a' is 1"),
        (lambda: sd.load_file(state, only=[1]), "only, one of which is 1"),
        (lambda: sd.load_file(state, only=b"w"), "only is b'w'"),
        (lambda: sd.check_all([1]), "the path is 1"),
        (lambda: sd.check(state, consumer={"a": "1395"}), "consumer 'a' is '1395'"),
        (lambda: sd.check(state, tags=3), "tags is 3"),
        (lambda: sd.load_file(state, verify=1), "verify is 1"),
        (lambda: sd.save({}, serdes_version=True), "serdes_version is True"),
    ]
    for use, words in uses:
        with pytest.raises(sd.WrongType, match=f"^{words}; expected "):
            use()
    assert sd.load_file(state, verify=np.bool_(True))["w"].tolist() == [1.0]


def test_public_classes_are_called_by_public_names() -> None:
    modules: list[Any] = [sd]
    for name in ("jax", "torch", "orbax"):
        try:
            modules.append(__import__(f"serdes_ml.{name}", fromlist=["__all__"]))
        except ImportError:
            continue
    for module in modules:
        for name in module.__all__:
            found = getattr(module, name)
            if not inspect.isclass(found):
                continue
            public = __import__(found.__module__, fromlist=["__all__"])
            assert found.__module__.rpartition(".")[2][0] != "_", f"{module.__name__}.{name}"
            assert getattr(public, name) is found


def test_a_traceback_calls_a_tree_mismatch_by_its_public_name(tmp_path: pathlib.Path) -> None:
    import pickle
    import traceback

    from serdes_ml._mismatches import Mismatch, mismatch_of

    missing, differs = Mismatch("a", "no", True, ("b",)), Mismatch("b", "other", False)
    for leaves, kinds in (
        ([missing], (KeyError,)),
        ([differs], (ValueError,)),
        ([missing, differs], (KeyError, ValueError)),
    ):
        error = mismatch_of("state.sds", leaves)
        assert isinstance(error, sd.TreeMismatch)
        assert all(isinstance(error, kind) for kind in kinds)
        (line, *_) = traceback.format_exception_only(error)
        assert line.startswith("serdes_ml.TreeMismatch: state.sds")
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error)
        assert (again.path, again.mismatches) == (error.path, error.mismatches)
