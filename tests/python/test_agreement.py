"""Processes that save together agree on whether the state exists, even if one fails or ends."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
import serdes_ml as sd
from serdes_ml._processes import Processes

numbers = itertools.count(1_000_000)


class Store:
    """A key-value store like that of jax.distributed, which accepts one value for a key."""

    def __init__(self) -> None:
        self.words: dict[str, str] = {}
        self.changed = threading.Condition()
        self.gone = False

    def look(self) -> None:
        if self.gone:
            raise RuntimeError("UNAVAILABLE: connection refused")

    def key_value_set(self, key: str, word: str) -> None:
        with self.changed:
            self.look()
            if key in self.words:
                raise RuntimeError(f"ALREADY_EXISTS: {key}")
            self.words[key] = word
            self.changed.notify_all()

    def blocking_key_value_get(self, key: str, milliseconds: int) -> str:
        with self.changed:
            self.look()
            if not self.changed.wait_for(lambda: key in self.words, milliseconds / 1000):
                raise RuntimeError("DEADLINE_EXCEEDED: it is not there")
            return self.words[key]

    def key_value_dir_get(self, prefix: str) -> list[tuple[str, str]]:
        with self.changed:
            self.look()
            return [(key, word) for key, word in self.words.items() if key.startswith(prefix)]

    def key_value_delete(self, prefix: str) -> None:
        with self.changed:
            for key in [key for key in self.words if key.startswith(prefix)]:
                del self.words[key]


class Job:
    """Processes, on threads, that save once; records their changes to the parts and the state."""

    def __init__(self, *timeouts: float) -> None:
        self.store, self.events = Store(), list[str]()
        number = next(numbers)
        self.processes: list[Processes] = []
        for index, timeout in enumerate(timeouts):
            process = Processes(index, len(timeouts), timeout, self.store)
            process._number = number
            self.processes.append(process)
        self.write: Callable[[int], None] = lambda index: None
        self.merge: Callable[[], None] = lambda: None
        self.raised: dict[int, BaseException | None] = {}

    def one(self, index: int) -> None:
        """Runs one process."""

        def write(part: Any) -> None:
            self.write(index)
            self.events.append(f"part {index}")

        def merge(save: bytes) -> None:
            self.merge()
            self.events.append("state")

        def discard(save: bytes) -> None:
            self.events.append(f"discarded by {index}")

        try:
            self.processes[index].save(write, merge, discard)
            self.raised[index] = None
        except BaseException as error:
            self.raised[index] = error

    def run(self) -> None:
        """Runs all processes until they end."""
        threads = [
            threading.Thread(target=self.one, args=(index,)) for index in range(len(self.processes))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=30)
            assert not thread.is_alive()


def test_a_state_is_made_when_all_have_written() -> None:
    job = Job(20, 20, 20)
    job.run()
    assert job.events[-1] == "state"
    assert sorted(job.events[:-1]) == ["part 0", "part 1", "part 2"]
    assert set(job.raised.values()) == {None}


def test_who_fails_takes_all_with_it() -> None:
    job = Job(20, 20, 20)

    def write(index: int) -> None:
        if index == 2:
            raise OSError(28, "full")

    job.write = write
    job.run()
    assert "state" not in job.events
    assert {f"discarded by {index}" for index in range(3)} <= set(job.events)
    assert isinstance(job.raised[2], OSError)
    for index in (0, 1):
        assert isinstance(job.raised[index], sd.SerdesError)
        assert "process 2 failed" in str(job.raised[index])


def test_nobody_makes_a_state_for_which_somebody_no_longer_waited() -> None:
    job = Job(20, 0.1, 20)
    # The last part is late: the second process has ended by then.
    job.write = lambda index: time.sleep(1.0) if index == 2 else None
    job.run()
    assert "state" not in job.events
    assert "discarded by 1" in job.events
    assert "said nothing for 0.1 s" in str(job.raised[1])
    assert "another process did not wait" in str(job.raised[0])
    assert all(isinstance(error, sd.SerdesError) for error in job.raised.values())


def test_the_parts_stay_while_the_state_is_made_of_them() -> None:
    job = Job(20, 0.1)
    # The second process stops waiting during the merge.
    job.merge = lambda: time.sleep(1.0)
    job.run()
    assert sorted(job.events) == ["part 0", "part 1", "state"]
    assert job.raised[0] is None
    assert isinstance(job.raised[1], sd.SerdesError)


def test_where_the_store_is_gone_the_parts_stay_for_who_may_make_the_state() -> None:
    job = Job(20, 20)

    def merge() -> None:
        job.store.gone = True
        time.sleep(0.5)
        raise KeyboardInterrupt

    job.merge = merge
    job.run()
    assert "discarded by 1" not in job.events
    assert "cannot be reached" in str(job.raised[1])
    assert isinstance(job.raised[0], KeyboardInterrupt)


def test_a_first_process_that_cannot_ask_makes_no_state() -> None:
    job = Job(0.5, 20)
    found = job.store.key_value_dir_get

    def gone_behind_it(prefix: str) -> list[tuple[str, str]]:
        said = found(prefix)
        job.store.gone = len(said) == 1
        return said

    job.store.key_value_dir_get = gone_behind_it  # type: ignore[method-assign]
    job.run()
    assert "state" not in job.events
    assert isinstance(job.raised[0], sd.SerdesError)
    assert "UNAVAILABLE" in str(job.raised[0])


@pytest.mark.parametrize("index", [1, 2])
def test_a_process_that_cannot_reach_the_first_one_says_so(index: int) -> None:
    job = Job(0.5, 0.5, 0.5)

    def write(number: int) -> None:
        # The first process dies while the others write.
        job.store.gone = True

    job.write = write
    job.run()
    assert "state" not in job.events
    error = job.raised[index]
    assert isinstance(error, sd.SerdesError)
    assert "the first process cannot be reached" in str(error)
