"""Several processes that save one state together.

They agree through a store of keys and values that all of them reach: the first one names the save,
each says how its part went, and the first one makes the state of the parts, or nobody does.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

from . import _native
from ._arrays import imported
from ._errors import SerdesError

DEFAULT_TIMEOUT = 600.0
"""Seconds that a process waits for the others."""

# How long one question may take, so that Ctrl-C is heard.
_LOOK_EVERY_MS = 200

# Saves of this process, which are numbered alike in all: every process takes part in each.
_numbers = itertools.count()


class Processes:
    """This process among those that save together, at one save."""

    def __init__(self, index: int, count: int, timeout: float, client: Any) -> None:
        self.index, self.count = index, count
        self._timeout, self._client = timeout, client
        self._number = next(_numbers) if count > 1 else 0

    @staticmethod
    def of_jax(timeout: float) -> Processes:
        """The processes of ``jax.distributed``; this one alone, where it was not initialized."""
        jax = imported("jax")
        count = jax.process_count()
        if count == 1:
            return Processes(0, 1, timeout, None)
        # The one door to the store of jax.distributed, which orbax uses as well.
        client = imported("jax._src.distributed").global_state.client
        return Processes(jax.process_index(), count, timeout, client)

    def save(
        self,
        write: Callable[[tuple[bytes, int, int] | None], None],
        merge: Callable[[bytes], None],
    ) -> None:
        """Write the part of this process and have the state made of all.

        Raises:
            SerdesError: if another process failed, or said nothing in time.
        """
        if self.count == 1:
            write(None)
            return
        save = self._agree()
        failure: BaseException | None = None
        try:
            write((save, self.index, self.count))
        except BaseException as error:
            failure = error
        self._set(f"part/{self.index}", "" if failure is None else f"{failure!r}")
        if failure is not None:
            raise failure
        if self.index == 0:
            self._merge(save, merge)
            return
        said = self._get("state", "the first process")
        if said:
            raise SerdesError(f"the state was not made: {said}", "unsupported")

    def _agree(self) -> bytes:
        """The id of the save, which the first process chooses."""
        if self.index > 0:
            return bytes.fromhex(self._get("id", "the first process"))
        self._forget(self._number - 2)
        save = _native.new_save_id()
        self._set("id", save.hex())
        return save

    def _merge(self, save: bytes, merge: Callable[[bytes], None]) -> None:
        try:
            for index in range(1, self.count):
                said = self._get(f"part/{index}", f"process {index}")
                if said:
                    raise SerdesError(f"process {index} failed: {said}", "unsupported")
            merge(save)
        except BaseException as error:
            self._set("state", f"{error!r}")
            raise
        self._set("state", "")

    def _key(self, name: str) -> str:
        return f"serdes_ml/{self._number}/{name}"

    def _set(self, name: str, value: str) -> None:
        # A store may take an empty value for none.
        self._client.key_value_set(self._key(name), f"={value}")

    def _get(self, name: str, who: str) -> str:
        until = time.monotonic() + self._timeout
        while True:
            try:
                found: str = self._client.blocking_key_value_get(self._key(name), _LOOK_EVERY_MS)
                return found[1:]
            except Exception as error:
                if "DEADLINE_EXCEEDED" not in str(error):
                    raise
            if time.monotonic() >= until:
                raise SerdesError(
                    f"{who} said nothing for {self._timeout:g} s; the state was not made",
                    "unsupported",
                    remedy="Look whether it still runs, and save again.",
                )

    def _forget(self, number: int) -> None:
        """Remove what was said at an earlier save, which nobody asks for any more."""
        if number >= 0:
            self._client.key_value_delete(f"serdes_ml/{number}/")
