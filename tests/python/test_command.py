"""The command that the package installs, and the modules that the package imports."""

from __future__ import annotations

import pathlib
import shutil
import signal
import subprocess
import sys
import sysconfig

import numpy as np
import pytest
import serdes_ml as sd


@pytest.fixture
def command() -> str:
    """Returns the path of the installed command."""
    found = shutil.which("serdes", path=sysconfig.get_path("scripts"))
    assert found is not None
    return found


def test_the_command_is_the_one_of_the_package(command: str) -> None:
    ran = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["serdes", sd.__version__]


def test_a_status_is_that_of_the_answer(command: str, path: pathlib.Path) -> None:
    sd.save_file({"w": np.ones(3)}, path)
    nowhere = str(path.with_name("nowhere"))
    expected = [(["check", str(path)], 0), (["check", nowhere], 2), (["nosuch"], 2)]
    for arguments, status in expected:
        assert subprocess.run([command, *arguments], capture_output=True).returncode == status
    other = path.with_name("other.sds")
    sd.save_file({"w": np.zeros(3)}, other)
    assert subprocess.run([command, "diff", path, other], capture_output=True).returncode == 1


def test_an_inspection_has_a_line_for_the_arrays_of_a_session(path: pathlib.Path) -> None:
    names = ["run.arrays/a@1", "run.arrays/b/c@1", "run/7"]
    metadata = {f"serdes.state.owner/{name}": "client:73" for name in names}
    sd.save_file({"a": np.ones(1)}, path, {**metadata, "note": "x"})
    command = [sys.executable, "-m", "serdes_ml", "inspect", str(path)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "2 arrays of run.arrays: client:73" in said
    assert "1 array of run: client:73" in said
    assert "note = x" in said
    assert "serdes.state.owner" not in said
    assert sd.inspect(path)["metadata"] == {**metadata, "note": "x"}


def test_a_plugin_is_worked_with_in_a_process_of_its_own(
    command: str, tmp_path: pathlib.Path
) -> None:
    # The command starts itself again, even with another serdes_ml in the working directory.
    (tmp_path / "serdes_ml.py").write_text("raise SystemExit(99)")
    library = tmp_path / "nothing.so"
    library.write_bytes(b"\x7fELF")
    ran = subprocess.run(
        [command, "plugin", "check", str(library)], capture_output=True, text=True, cwd=tmp_path
    )
    assert ran.returncode in (1, 2), ran
    assert "Traceback" not in ran.stderr
    assert "nothing.so" in ran.stdout + ran.stderr


def test_ctrl_c_ends_the_command_as_a_command(command: str) -> None:
    process = subprocess.Popen(
        [command, "serve", "--listen", "127.0.0.1:0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("listening on")
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert "Traceback" not in said
    assert "KeyboardInterrupt" not in said
    assert process.returncode == 0


def test_verdicts_need_no_numpy() -> None:
    program = (
        "import sys, serdes_ml as sd\n"
        "sd.check('/dev/null/nowhere')\n"
        "print('numpy' in sys.modules)\n"
        "sd.save_file\n"
        "print('numpy' in sys.modules, 'jax' in sys.modules, 'torch' in sys.modules)\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.stdout.split() == ["False", "True", "False", "False"], ran


def test_what_is_public_is_listed() -> None:
    assert sorted(sd.__all__) == sd.__all__
    assert all(getattr(sd, name) is not None for name in sd.__all__)
    assert set(dir(sd)) >= set(sd.__all__)
    with pytest.raises(AttributeError, match="nosuch"):
        _ = sd.nosuch  # type: ignore[attr-defined]
