"""Several processes that save one state together.

They agree through a store of keys and values that all of them reach: the first one names the save,
each says how its part went, and the first one makes the state of the parts, or none does. Before
that it is decided, once and for all, whether the state is made: who no longer waits says that it is
not, and only then may the parts be removed.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any

from . import _native
from ._arrays import imported
from ._errors import SerdesError

DEFAULT_TIMEOUT = 600.0
"""Seconds that a process waits for the others."""

# How long one question to the store may take, so that Ctrl-C is heard.
_LOOK_EVERY_MS = 200
# How long the first process waits between two looks at the others, which may be thousands.
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.002, 0.25
# What begins a word about a failure; any other begins with "=", as a store may take an empty one
# for none.
_FAILED = "!"
# The word that the state is made of the parts.
_MAKE = "="

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

    @contextlib.contextmanager
    def preparing(self) -> Iterator[None]:
        """What this process does before it saves; if it fails, the others need not wait for it."""
        try:
            yield
        except BaseException as error:
            if self.count > 1:
                self._set_failure("id" if self.index == 0 else f"part/{self.index}", error)
            raise

    def save(
        self,
        write: Callable[[tuple[bytes, int, int] | None], None],
        merge: Callable[[bytes], None],
        discard: Callable[[bytes], None],
    ) -> None:
        """Write the part of this process and have the state made of all.

        ``discard`` removes the parts of a save that no state is made of; the last of the processes
        that notices the failure removes all.

        Raises:
            SerdesError: if another process failed, or said nothing in time.
        """
        if self.count == 1:
            write(None)
            return
        save = self._agree()
        try:
            write((save, self.index, self.count))
        except BaseException as error:
            self._set_failure("state" if self.index == 0 else f"part/{self.index}", error)
            discard(save)
            raise
        if self.index == 0:
            self._make(save, merge, discard)
            return
        try:
            self._set(f"part/{self.index}")
            made = self._get("state")
        except BaseException as error:
            # The first process may be making the state, and then needs what this one wrote.
            if self._decide(f"{_FAILED}{error!r}") != _MAKE:
                discard(save)
            raise
        if made.startswith(_FAILED):
            discard(save)
        self._accept(made)

    def _agree(self) -> bytes:
        """The id of the save, which the first process chooses."""
        if self.index > 0:
            return bytes.fromhex(self._accept(self._get("id")))
        self._forget(self._number - 2)
        save = _native.new_save_id()
        self._set("id", save.hex())
        return save

    def _make(
        self, save: bytes, merge: Callable[[bytes], None], discard: Callable[[bytes], None]
    ) -> None:
        try:
            self._wait_for_parts()
            decided = self._decide(_MAKE)
            if decided != _MAKE:
                raise SerdesError(f"another process did not wait: {decided[1:]}", "unsupported")
            merge(save)
        except BaseException as error:
            self._set_failure("state", error)
            discard(save)
            raise
        self._set("state")

    def _wait_for_parts(self) -> None:
        """Wait until every process has written its part."""
        until = time.monotonic() + self._timeout
        pause = _SHORTEST_PAUSE
        while True:
            said = self._all("part")
            for index, word in sorted(said.items()):
                if word.startswith(_FAILED):
                    raise SerdesError(f"process {index} failed: {word[1:]}", "unsupported")
            missing = set(range(1, self.count)) - said.keys()
            if not missing:
                break
            if time.monotonic() >= until:
                raise self._silence(f"process {min(missing)}", len(missing) - 1)
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _decide(self, word: str) -> str:
        """Say whether the state is made of the parts, and answer what was decided: the first word
        counts, from any process. Where the store cannot be asked, it may be made.
        """
        try:
            # The store takes no second word for a key.
            self._client.key_value_set(self._key("decision"), word)
            return word
        except Exception:
            try:
                key = self._key("decision")
                return str(self._client.blocking_key_value_get(key, _LOOK_EVERY_MS))
            except Exception as error:
                if self.index == 0:
                    raise self._unreachable(error) from error
                return _MAKE

    def _key(self, name: str) -> str:
        return f"serdes_ml/{self._number}/{name}"

    def _set(self, name: str, word: str = "") -> None:
        try:
            self._client.key_value_set(self._key(name), f"={word}")
        except Exception as error:
            raise self._unreachable(error) from error

    def _set_failure(self, name: str, error: BaseException) -> None:
        """Tell the others; where the store is gone as well, they find out by themselves."""
        with contextlib.suppress(Exception):
            self._client.key_value_set(self._key(name), f"{_FAILED}{error!r}")

    def _all(self, kind: str) -> dict[int, str]:
        """What all processes have said of one kind, by their numbers."""
        try:
            found = self._client.key_value_dir_get(self._key(f"{kind}/"))
        except Exception as error:
            raise self._unreachable(error) from error
        return {int(key.rpartition("/")[2]): word for key, word in found}

    def _get(self, name: str) -> str:
        """What the first process says; it is waited for."""
        until = time.monotonic() + self._timeout
        while True:
            try:
                found: str = self._client.blocking_key_value_get(self._key(name), _LOOK_EVERY_MS)
                break
            except Exception as error:
                if "DEADLINE_EXCEEDED" not in str(error):
                    raise self._unreachable(error) from error
            if time.monotonic() >= until:
                raise self._silence("the first process", 0)
        return found

    @staticmethod
    def _accept(word: str) -> str:
        """What a word says that tells of no failure."""
        if word.startswith(_FAILED):
            raise SerdesError(f"the state was not made: {word[1:]}", "unsupported")
        return word[1:]

    def _outcome(self) -> str:
        """What this process knows of the state when it gives up."""
        return "it is not known whether there is a new state" if self.index else "no state was made"

    def _unreachable(self, error: Exception) -> SerdesError:
        who = "the first process" if self.index else "the store of the processes"
        return SerdesError(
            f"{who} cannot be reached; {self._outcome()}: {error}",
            "unsupported",
            remedy="Look whether it still runs, and save again.",
        )

    def _silence(self, who: str, others: int) -> SerdesError:
        more = f" and {others} others" if others else ""
        return SerdesError(
            f"{who}{more} said nothing for {self._timeout:g} s; {self._outcome()}",
            "unsupported",
            remedy="Look whether it still runs, and save again.",
        )

    def _forget(self, number: int) -> None:
        """Remove the keys of an earlier save, which no process reads any more."""
        if number >= 0:
            # Keys that stay do no harm.
            with contextlib.suppress(Exception):
                self._client.key_value_delete(f"serdes_ml/{number}/")
