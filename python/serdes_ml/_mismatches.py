"""What of a state does not fit the tree that it is to become: all of it in one error."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ._errors import SerdesError

# So many are listed in a message; the error has all.
_SHOWN = 100
# So many have names looked for that are near theirs, among so many names.
_SEARCHED, _CANDIDATES = 20, 2000


class Mismatch(NamedTuple):
    """A leaf that does not fit."""

    name: str
    """The leaf's name in the tree that was asked for."""

    message: str
    """The reason, with both values."""

    is_missing: bool
    """True if the state has no leaf of this name."""

    near: tuple[str, ...] = ()
    """Names in the state that are like the one that is missing."""


class TreeMismatch(SerdesError):
    """The state does not fit the tree that it is to become; ``mismatches`` has each leaf.

    It is a ``KeyError`` as well where leaves are not there, a ``ValueError`` where some are
    something else, and both where there are such and such.
    """

    def __init__(self, path: str = "", mismatches: Sequence[Mismatch] = ()) -> None:
        self.path, self.mismatches = path, tuple(map(Mismatch._make, mismatches))
        super().__init__(_message(path, self.mismatches), "unsupported")

    def __str__(self) -> str:
        return self._message

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path, [tuple(one) for one in self.mismatches])


class LeavesMissing(TreeMismatch, KeyError):
    """A `TreeMismatch` of leaves that are not there."""


class LeavesDiffer(TreeMismatch, ValueError):
    """A `TreeMismatch` of leaves that are something else."""


class LeavesMissingAndDiffer(LeavesMissing, LeavesDiffer):
    """A `TreeMismatch` of both."""


def _message(path: str, mismatches: Sequence[Mismatch]) -> str:
    words = [one.message for one in mismatches]
    if len(words) == 1:
        return f"{path}: {words[0]}"
    if len(words) > _SHOWN:
        words[_SHOWN:] = [f"and {len(words) - _SHOWN} more"]
    lines = "".join(f"\n  {one}" for one in words)
    return f"{path} does not fit the tree in {len(mismatches)} leaves:{lines}"


class Mismatches:
    """Those of one load, as they are found."""

    def __init__(self, path: str, names: Iterable[str]) -> None:
        self._path, self._names = path, list(names)
        self._found: list[Mismatch] = []

    def differs(self, name: str, message: str) -> None:
        """A leaf is something else."""
        self._found.append(Mismatch(name, message, False))

    def missing(self, name: str) -> None:
        """There is no leaf of a name."""
        self._found.append(Mismatch(name, "", True))

    def check(self, asked: Iterable[str]) -> None:
        """Raise if there are any; ``asked`` are the names of all leaves that are asked for.

        Raises:
            TreeMismatch: one of its three kinds.
        """
        if not self._found:
            return
        taken = set(asked)
        free = [name for name in self._names if name not in taken]
        searched = 0
        for number, one in enumerate(self._found):
            if not one.is_missing:
                continue
            searched += 1
            near = near_names(one.name, free) if searched <= _SEARCHED else ()
            message = f"the state has no leaf {one.name!r}{it_has(near)}"
            self._found[number] = Mismatch(one.name, message, True, near)
        kinds = {one.is_missing for one in self._found}
        if kinds == {True}:
            raise LeavesMissing(self._path, self._found)
        if kinds == {False}:
            raise LeavesDiffer(self._path, self._found)
        raise LeavesMissingAndDiffer(self._path, self._found)


def it_has(near: Sequence[str]) -> str:
    """The end of a message of a name that is not there: those that are near it."""
    return f"; it has {', '.join(map(repr, near))}" if near else ""


def near_names(name: str, names: Sequence[str]) -> tuple[str, ...]:
    """Names that are like one, those with the same parent first."""
    parent = name.rpartition("/")[0] + "/"
    brothers = [one for one in names if one.startswith(parent)]
    for among in (brothers, names):
        found = difflib.get_close_matches(name, among[:_CANDIDATES], 3, 0.6)
        if found:
            return tuple(found)
    return ()
