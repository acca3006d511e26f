"""Work on another thread, whose failures are always reported."""

from __future__ import annotations

import atexit
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future as _Future
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as _TimeoutError
from concurrent.futures import wait as wait_for

from ._arguments import number


class Future:
    """The end of a save on another thread."""

    __module__ = "serdes_ml.jax"

    def __init__(self, what: str, future: _Future[None]) -> None:
        self._what, self._future, self._asked = what, future, False

    def __repr__(self) -> str:
        return f"<{self._what}: {self._state()}>"

    def _repr_html_(self) -> str:
        from ._html import heading

        return heading(f"{self._what}: {self._state()}")

    def _state(self) -> str:
        if not self._future.done():
            return "running" if self._future.running() else "waiting"
        error = self._future.exception()
        if error is None:
            return "done"
        line = str(error).partition("\n")[0]
        return f"failed, {type(error).__name__}: {line[:200]}"

    def result(self, timeout: float | None = None) -> None:
        """Wait for the end, ``timeout`` seconds at most, and raise what went wrong.

        Raises:
            TimeoutError: if it has not ended by then.
        """
        error = self.exception(timeout)
        if error is not None:
            raise error

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the end, and answer what went wrong."""
        if timeout is not None:
            number("timeout", timeout, "a number of seconds, or None")
        try:
            error = self._future.exception(timeout)
        except _TimeoutError:
            # That of concurrent.futures is not Python's own before 3.11.
            raise TimeoutError(f"{self._what} takes longer than {timeout} s") from None
        self._asked = True
        return error

    def wait(self) -> None:
        """Wait for the end, and leave what went wrong to be told at the end of the process."""
        wait_for([self._future])

    def ended_well(self) -> bool:
        """True if it has ended, and nothing went wrong."""
        return self._future.done() and self._future.exception() is None

    def done(self) -> bool:
        """Whether it has ended."""
        return self._future.done()

    def _tell(self) -> None:
        """Print a failure that no call has raised."""
        if self._asked or not self._future.done():
            return
        error = self._future.exception()
        if error is not None and sys.stderr is not None:
            print(f"serdes_ml: {self._what} failed: {error!r}", file=sys.stderr)


_lock = threading.Lock()
_worker: ThreadPoolExecutor | None = None
_futures: list[Future] = []


def in_background(what: str, work: Callable[[], None]) -> Future:
    """Do ``work`` behind whatever was asked for before; the end of the process waits for it."""
    global _worker
    with _lock:
        if _worker is None:
            _worker = ThreadPoolExecutor(1, "serdes_ml")
            # The thread has ended by then: the pool's own end comes first.
            atexit.register(_tell_all)
        future = Future(what, _worker.submit(work))
        # What has ended well, or was asked for, need not be kept.
        _futures[:] = [one for one in _futures if not (one._asked or one.ended_well())]
        _futures.append(future)
        return future


def _tell_all() -> None:
    for future in _futures:
        future._tell()
