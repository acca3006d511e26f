"""Environments: whether their packages fit one another, without importing any of them."""

from __future__ import annotations

import pathlib
import pickle
import subprocess
import sys
import time

import pytest
import serdes_ml as sd

KINDS = pathlib.Path(__file__).parent.parent / "data" / "kinds"


@pytest.fixture
def venv(tmp_path: pathlib.Path) -> pathlib.Path:
    """Creates a virtual environment with a jaxlib that is newer than jax."""
    (tmp_path / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.12.4\n")
    install(tmp_path, "jax", "0.10.0")
    install(tmp_path, "jaxlib", "0.10.2")
    return tmp_path


def install(environment: pathlib.Path, name: str, version: str) -> None:
    """Writes the metadata of a package, and nothing else."""
    site = environment / "lib/python3.12/site-packages"
    folder = site / f"{name}-{version}.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n")


def test_the_cause_is_named_with_what_mends_it(venv: pathlib.Path) -> None:
    diagnosis = sd.doctor(venv)
    assert not diagnosis
    assert diagnosis.verdict == "does_not_fit"
    assert diagnosis.python == "3.12"
    [problem] = diagnosis.problems
    assert problem.rule == "jaxlib_too_new"
    assert problem.remedies[0].command == "pip install 'jaxlib==0.10.0'"
    change = problem.remedies[0].changes[0]
    assert (change.package, change.from_, change.to) == ("jaxlib", "0.10.2", "0.10.0")
    assert "jaxlib_too_new" in str(diagnosis)
    assert diagnosis.to_dict()["problems"][0]["rule"] == "jaxlib_too_new"
    assert [component.name for component in diagnosis.components] == ["jax", "jaxlib"]


def test_a_broken_environment_is_raised(venv: pathlib.Path) -> None:
    with pytest.raises(sd.DoesNotFit, match="newer than jax") as raised:
        sd.doctor(venv).raise_if_broken()
    assert raised.value.problems[0].rule == raised.value.rule == "jaxlib_too_new"
    again = pickle.loads(pickle.dumps(raised.value))
    assert again.problems == raised.value.problems


def test_a_diagnosis_pickles(venv: pathlib.Path) -> None:
    diagnosis = sd.doctor(venv)
    assert pickle.loads(pickle.dumps(diagnosis)) == diagnosis


def test_locks_and_interpreters_are_read(venv: pathlib.Path, tmp_path: pathlib.Path) -> None:
    lock = tmp_path / "requirements.txt"
    lock.write_text("jax==0.10.2\njaxlib==0.10.2\n")
    assert sd.doctor(lock=lock)
    assert sd.doctor(lock=lock).kind == "lock"
    assert sd.doctor(python=venv / "bin" / "python").verdict == "does_not_fit"
    with pytest.raises(TypeError):
        sd.doctor(venv, lock=lock)
    with pytest.raises(OSError, match="none"):
        sd.doctor(tmp_path / "none")
    lock.write_text("[[package]]\nname = 1\n")
    with pytest.raises(ValueError, match=r"requirements\.txt"):
        sd.doctor(lock=lock)


def test_artifacts_are_judged_for_the_frameworks_that_are_found(tmp_path: pathlib.Path) -> None:
    file = str(KINDS / "f-0.8.0.jaxexport")
    lock = tmp_path / "requirements.txt"
    lock.write_text("jax==0.12.0.1\njaxlib==0.12.0.1\n")
    [verdict] = sd.doctor(lock=lock, artifacts=file).artifacts
    assert verdict.kind == "jax_export"
    assert verdict.release == "0.12.0.1"
    lock.write_text("numpy==2.2.0\n")
    assert sd.doctor(lock=lock, artifacts=file).artifacts == ()
    lock.write_text("jax==0.7.2\njaxlib==0.7.2\n")
    diagnosis = sd.doctor(lock=lock, artifacts=file)
    assert diagnosis.verdict == "unknown"
    assert "jaxlib" in diagnosis.unknown[-1].name


def test_the_running_environment_is_judged_without_importing_it() -> None:
    script = (
        "import sys, serdes_ml as sd; sd.doctor();"
        "print(sorted({'jax', 'jaxlib', 'torch', 'tensorflow', 'numpy'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_the_first_line_of_a_script_is_quick(venv: pathlib.Path) -> None:
    for at in range(300):
        install(venv, f"other{at}", "1.0")
    took = []
    for _ in range(5):
        began = time.perf_counter()
        sd.doctor(venv)
        took.append(time.perf_counter() - began)
    # The best of several runs, as other tests run beside this one. The limit is 50 ms.
    assert min(took) < 0.5
