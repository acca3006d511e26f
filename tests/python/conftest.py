"""What several tests need."""

from __future__ import annotations

import pathlib

import pytest

REPOSITORY = pathlib.Path(__file__).parents[2]


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    """A place for a state."""
    return tmp_path / "state.sds"


@pytest.fixture
def data() -> pathlib.Path:
    """The artifacts of the repository's own tests."""
    return REPOSITORY / "tests" / "data"


@pytest.fixture
def golden() -> pathlib.Path:
    """States that were written once and are kept."""
    return REPOSITORY / "tests" / "golden" / "device_state"
