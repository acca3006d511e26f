"""Arrays of devices on their way to the host: few at a time, so that a state need not fit there."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from ._arrays import Array

AHEAD_BYTES = 256 << 20
"""Bytes that are on the host, or on their way to it, beside those that are waited for."""


class Transfers:
    """Copies that are made in their order, each when somebody asks for it.

    While one is used, those behind it are under way, ``ahead`` bytes of them at most. What was
    asked for before is let go by then.
    """

    def __init__(self, ahead: float = AHEAD_BYTES) -> None:
        self._ahead, self._held = ahead, 0
        self._in_use = 0
        self._waiting: deque[_Copy] = deque()
        self._lock = threading.Lock()

    def later(self, value: Any, size: int, make: Callable[[Any], Array]) -> Callable[[], Array]:
        """A function that copies ``value``, of ``size`` bytes on the host: ``make`` does it, and
        ``value.copy_to_host_async()`` begins to, where there is such a thing.
        """
        copy = _Copy(self, value, size, make)
        self._waiting.append(copy)
        return copy

    def begin(self, wanted: _Copy) -> None:
        """Begin the copy that is wanted, and those behind it as far as there is room."""
        with self._lock:
            # The one before it is written.
            self._held -= self._in_use
            if not wanted.begun:
                wanted.begin()
                self._held += wanted.size
            self._in_use = wanted.size
            while self._waiting:
                following = self._waiting[0]
                if not following.begun:
                    if self._held - self._in_use + following.size > self._ahead:
                        break
                    following.begin()
                    self._held += following.size
                self._waiting.popleft()


class _Copy:
    """One of them."""

    def __init__(
        self, transfers: Transfers, value: Any, size: int, make: Callable[[Any], Array]
    ) -> None:
        self._transfers, self._value, self._make = transfers, value, make
        self.size, self.begun = size, False

    def begin(self) -> None:
        """Have the device send it."""
        self.begun = True
        send = getattr(self._value, "copy_to_host_async", None)
        if send is not None:
            send()

    def __call__(self) -> Array:
        self._transfers.begin(self)
        # What keeps the copy goes with the value.
        value, self._value = self._value, None
        return self._make(value)
