"""Fixtures that several tests share."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
from collections.abc import Iterator

import pytest

REPOSITORY = pathlib.Path(__file__).parents[2]


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    """Returns a path for a state."""
    return tmp_path / "state.sds"


@pytest.fixture
def data() -> pathlib.Path:
    """Returns the folder of the artifacts for tests."""
    return REPOSITORY / "tests" / "data"


@pytest.fixture
def golden() -> pathlib.Path:
    """Returns the folder of frozen states."""
    return REPOSITORY / "tests" / "golden" / "device_state"


@pytest.fixture
def small_disk(tmp_path: pathlib.Path) -> Iterator[pathlib.Path]:
    """Mounts a file system of 1 MiB and returns its folder, if this user may mount one."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = shutil.which("mount")
    command = [mount or "", "-t", "tmpfs", "-o", "size=1m", "none", str(folder)]
    if mount is None or subprocess.run(command, capture_output=True).returncode != 0:
        pytest.skip("this user mounts no file systems")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)
