"""A folder with a state for each step of a run."""

from __future__ import annotations

import contextlib
import pathlib
import re
import shutil
from types import TracebackType
from typing import TypeVar

from ._async import Future
from ._errors import NotFound
from ._paths import Path, local

_Self = TypeVar("_Self", bound="Steps")
_NAME = re.compile(r"step-(\d{8,})\.sds")


class Steps:
    """Names, lists and removes the states of steps; how they are written is up to subclasses."""

    def __init__(self, folder: Path, keep: int | None = None) -> None:
        if keep is not None and keep < 1:
            raise ValueError(f"keep: expected 1 or more, or None for all, found {keep}")
        self._folder = pathlib.Path(local(folder))
        self._keep = keep
        self._pending: list[Future] = []
        self._folder.mkdir(parents=True, exist_ok=True)

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pending, self._pending = self._pending, []
        if error is None:
            for future in pending:
                future.result()

    def path(self, step: int) -> pathlib.Path:
        """The place of the state of a step."""
        if step < 0:
            raise ValueError(f"a step is 0 or more, found {step}")
        return self._folder / f"step-{step:08}.sds"

    def existing(self, step: int | None) -> pathlib.Path:
        """The same, of a step that has a state."""
        if step is None:
            raise NotFound(f"{self._folder} holds no state of a step", path=str(self._folder))
        return self.path(step)

    def all(self) -> list[int]:
        """The steps that have a state, in their order."""
        found = (_NAME.fullmatch(entry.name) for entry in self._folder.iterdir())
        return sorted({int(match[1]) for match in found if match})

    def latest(self) -> int | None:
        """The last step that has a state; None if there is none."""
        return max(self.all(), default=None)

    def pending(self, future: Future) -> Future:
        """Wait for a save at the end of the ``with`` block."""
        self._pending = [one for one in self._pending if not one._asked]
        self._pending.append(future)
        return future

    def prune(self) -> None:
        """Remove the states that are not kept."""
        if self._keep is None or not self._prunes():
            return
        for step in self.all()[: -self._keep]:
            path = self.path(step)
            # The state first: nobody opens parts that are half gone.
            with contextlib.suppress(FileNotFoundError):
                path.unlink()
            shutil.rmtree(path.with_name(path.name + ".parts"), ignore_errors=True)

    def _prunes(self) -> bool:
        """Whether this process removes what is not kept."""
        return True
