"""A folder with a state for each step of a run."""

from __future__ import annotations

import contextlib
import json
import math
import pathlib
import re
import warnings
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Literal, TypeVar, cast

from . import _native
from ._arguments import flag, number, text, whole
from ._async import Future
from ._errors import NotFound, SerdesError, wrong_type
from ._paths import Path, inside, place, system_path
from ._state import RESERVED, State
from ._verdicts import check

METRICS = RESERVED + "metrics"
"""Numbers that were saved with the state of a step: a JSON object."""

_Self = TypeVar("_Self", bound="Steps")
_NAME = re.compile(r"(\.?)step-(\d{8,})\.sds(\.parts|\.[0-9a-f]{16}\.partial)?")
_PATTERNS = ["step-*.sds", "step-*.sds.parts", ".step-*.sds.*.partial"]


def _count(what: str, given: int | None) -> int | None:
    if given is None:
        return None
    found = whole(what, given, "an integer, 1 or more, or None")
    if found < 1:
        raise ValueError(f"{what}: expected 1 or more, or None, found {given}")
    return found


class Steps:
    """Names, lists and removes the states of steps; how they are written is up to subclasses."""

    def __init__(
        self,
        folder: Path,
        keep: int | None = None,
        *,
        keep_every: int | None = None,
        keep_best: int | None = None,
        metric: str | None = None,
        mode: Literal["min", "max"] = "min",
    ) -> None:
        self._keep = _count("keep", keep)
        self._every = _count("keep_every", keep_every)
        self._best, self._metric = _count("keep_best", keep_best), metric
        if text("mode", mode, "'min' or 'max'") not in ("min", "max"):
            raise ValueError(f"mode {mode!r}: expected 'min' or 'max'")
        if keep is None and (keep_every is not None or keep_best is not None):
            raise ValueError("keep_every and keep_best are beside the newest; give keep, too")
        if keep_best is not None and metric is None:
            raise ValueError("keep_best: which are the best? give metric, the name of a number")
        if not isinstance(metric, (str, type(None))):
            raise wrong_type("metric", metric, "the name of a number, or None")
        self._sign = 1.0 if mode == "min" else -1.0
        # The metric of states that were opened for it.
        self._metrics: dict[int, float | None] = {}
        self._pending: list[Future] = []
        found = system_path(folder)
        self._is_local = found is not None
        self._folder = place(folder) if found is None else found
        if self._is_local:
            pathlib.Path(self._folder).mkdir(parents=True, exist_ok=True)

    def __repr__(self) -> str:
        options = (
            ("keep", self._keep),
            ("keep_every", self._every),
            ("keep_best", self._best),
            ("metric", self._metric),
        )
        given = [f"{name}={value!r}" for name, value in options if value is not None]
        return f"{type(self).__name__}({', '.join([repr(self._folder), *given])})"

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pending, self._pending = self._pending, []
        for future in pending:
            if error is None:
                future.result()
            elif isinstance(error, Exception):
                # The error of the block is the one that is raised.
                future.wait()

    def path(self, step: int) -> Path:
        """The place of the state of a step: a path, or an address under that of the run."""
        found = whole("step", step, "an integer, 0 or more")
        if found < 0:
            raise ValueError(f"a step is 0 or more, found {found}")
        at = inside(self._folder, f"step-{found:08}.sds")
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
        """Steps of which there is something: the state, or no more than parts and partial files."""
        found = map(_NAME.fullmatch, _native.names(self._folder, _PATTERNS))
        return [(int(match[2]), not (match[1] or match[3])) for match in found if match]

    def latest(self, *, valid: bool = False) -> int | None:
        """The last step that has a state; None if there is none.

        With ``valid`` the last whose state is whole: all of it is read, newest first, until one
        is. A ``UserWarning`` says of each that is passed over what is wrong with it.
        """
        if not flag("valid", valid):
            return max(self.all(), default=None)
        for step in reversed(self.all()):
            verdict = check(self.path(step), kind="device_state", verify_data=True)
            if verdict:
                return step
            reasons = "; ".join(map(str, verdict.reasons)) or verdict.verdict
            warnings.warn(f"step {step} of {self._folder} is passed over: {reasons}", stacklevel=2)
        return None

    def metrics(self, step: int) -> dict[str, float]:
        """The numbers that were saved with the state of a step.

        Raises:
            NotFound: if the step has no state.
        """
        found = State.open(self.path(step)).object(METRICS)
        is_number = (int, float)
        return {name: float(one) for name, one in found.items() if isinstance(one, is_number)}

    def best(self) -> int | None:
        """The step whose ``metric`` is the best, the newest of several; None if none has one."""
        if self._metric is None:
            raise ValueError("Steps without a metric know no best one; Steps(…, metric=NAME)")
        return next(iter(self._ranked(self.all())), None)

    def _ranked(self, steps: Iterable[int]) -> list[int]:
        """Those steps that have a metric, the best first."""
        found: list[tuple[float, int]] = []
        for step in steps:
            if step not in self._metrics:
                with contextlib.suppress(SerdesError, FileNotFoundError):
                    self._metrics[step] = self.metrics(step).get(self._metric or "")
            value = self._metrics.get(step)
            if value is not None and not math.isnan(value):
                found.append((self._sign * value, -step))
        return [-step for _, step in sorted(found)]

    def pending(self, future: Future) -> Future:
        """Wait for a save at the end of the ``with`` block."""
        self._pending = [one for one in self._pending if not (one._asked or one.ended_well())]
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
        """Remove the states that are not kept, and what dead savers have left of older ones.

        What was ``saved`` right now stays: who goes back to an older step begins anew there.
        """
        self._metrics.pop(saved, None)
        if self._keep is None or not self._prunes():
            return
        names = self._names()
        states = sorted({step for step, is_state in names if is_state})
        kept = states[-self._keep :]
        stay = {saved}
        if self._every is not None:
            stay.update(step for step in states if step % self._every == 0)
        if self._best is not None:
            stay.update(self._ranked(states)[: self._best])
        for step in sorted({step for step, _ in names}):
            if kept and step < kept[0] and step not in stay:
                with contextlib.suppress(FileNotFoundError):
                    self.delete(step)

    def given_metrics(self, metrics: Mapping[str, float] | None) -> dict[str, str]:
        """Numbers as they stand in the metadata of a state.

        Raises:
            ValueError: if the one that decides what is kept is missing.
        """
        if not isinstance(cast("object", metrics), (Mapping, type(None))):
            raise wrong_type("metrics", metrics, "numbers by their names, or None")
        if self._best is not None and self._metric not in (metrics or {}):
            raise ValueError(f"keep_best: save with metrics={{{self._metric!r}: …}}")
        if not metrics:
            return {}
        found = {
            text("a name of metrics", name): number(f"the metric {name!r}", one)
            for name, one in metrics.items()
        }
        return {METRICS: json.dumps(found)}

    def _prunes(self) -> bool:
        """Whether this process removes what is not kept."""
        return True
