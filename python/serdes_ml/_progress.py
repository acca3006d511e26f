"""How far a save or a load has come."""

from __future__ import annotations

import sys
from collections.abc import Callable

from ._errors import wrong_type

Progress = Callable[[int, int], object] | bool | None
"""True shows a bar on a terminal; a callable gets the bytes that are done, and all bytes."""

_WIDTH = 30


def _bar(done: int, total: int) -> None:
    part = done / total if total else 1.0
    full = round(_WIDTH * part)
    end = "\n" if done >= total else ""
    line = f"\r{'█' * full}{'░' * (_WIDTH - full)} {done / 1e6:,.0f} of {total / 1e6:,.0f} MB"
    sys.stderr.write(line + end)
    sys.stderr.flush()


def listener(progress: Progress) -> Callable[[int, int], object] | None:
    """Who is called."""
    if progress is True:
        return _bar if sys.stderr is not None and sys.stderr.isatty() else None
    if progress is None or progress is False:
        return None
    if not callable(progress):
        raise wrong_type("progress", progress, "True, a callable, or None")
    return progress


class Whole:
    """Several pieces of work, reported as one: bytes of all of them."""

    def __init__(self, progress: Progress, total: int) -> None:
        self._listener = listener(progress)
        self._before, self._total = 0, total

    def piece(self, size: int) -> Callable[[int, int], object] | None:
        """Who is called for the next piece of the work, of this many bytes."""
        told, before = self._listener, self._before
        self._before += size
        if told is None:
            return None
        return lambda done, _: told(before + done, self._total)
