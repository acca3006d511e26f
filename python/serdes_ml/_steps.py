"""A folder with a state for each step of a run."""

from __future__ import annotations

import contextlib
import operator
import pathlib
import re
from types import TracebackType
from typing import TypeVar

from . import _native
from ._async import Future
from ._errors import NotFound
from ._paths import Path, inside, place, system_path

_Self = TypeVar("_Self", bound="Steps")
_NAME = re.compile(r"step-(\d{8,})\.sds(\.parts)?")


class Steps:
    """Names, lists and removes the states of steps; how they are written is up to subclasses."""

    def __init__(self, folder: Path, keep: int | None = None) -> None:
        self._keep = None if keep is None else operator.index(keep)
        if self._keep is not None and self._keep < 1:
            raise ValueError(f"keep: expected 1 or more, or None for all, found {keep}")
        self._pending: list[Future] = []
        found = system_path(folder)
        self._is_local = found is not None
        self._folder = place(folder) if found is None else found
        if self._is_local:
            pathlib.Path(self._folder).mkdir(parents=True, exist_ok=True)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._folder!r}, keep={self._keep})"

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

    def path(self, step: int) -> Path:
        """The place of the state of a step: a path, or an address under that of the run."""
        number = operator.index(step)
        if number < 0:
            raise ValueError(f"a step is 0 or more, found {number}")
        at = inside(self._folder, f"step-{number:08}.sds")
        return pathlib.Path(at) if self._is_local else at

    def existing(self, step: int | None) -> Path:
        """The same, of a step that has a state."""
        if step is None:
            raise NotFound(f"{self._folder} holds no state of a step", path=self._folder)
        return self.path(step)

    def all(self) -> list[int]:
        """The steps that have a state, in their order."""
        return sorted({step for step, is_state in self._names() if is_state})

    def _names(self) -> list[tuple[int, bool]]:
        """Steps of which there is something: the state, or no more than parts of it."""
        names = _native.names(self._folder, ["step-*.sds", "step-*.sds.parts"])
        found = (_NAME.fullmatch(name) for name in names)
        return [(int(match[1]), match[2] is None) for match in found if match]

    def latest(self) -> int | None:
        """The last step that has a state; None if there is none."""
        return max(self.all(), default=None)

    def pending(self, future: Future) -> Future:
        """Wait for a save at the end of the ``with`` block."""
        self._pending = [one for one in self._pending if not one._asked]
        self._pending.append(future)
        return future

    def delete(self, step: int) -> None:
        """Remove the state of a step; where there are several processes, the first one does.

        Raises:
            NotFound: if the step has none.
        """
        if self._prunes():
            _native.remove_state(self.path(step))

    def prune(self, saved: int) -> None:
        """Remove the states that are not kept, and parts that are left of older ones.

        What was ``saved`` right now stays: who goes back to an older step begins anew there.
        """
        if self._keep is None or not self._prunes():
            return
        names = self._names()
        kept = sorted({step for step, is_state in names if is_state})[-self._keep :]
        for step in sorted({step for step, _ in names}):
            if kept and step < kept[0] and step != saved:
                with contextlib.suppress(FileNotFoundError):
                    self.delete(step)

    def _prunes(self) -> bool:
        """Whether this process removes what is not kept."""
        return True
