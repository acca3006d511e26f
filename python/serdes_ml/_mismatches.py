"""What of a state does not fit the tree that it is to become: all of it in one error."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ._errors import SerdesError

# The most names that a message lists; the error has all.
_SHOWN = 100
# The most names for which similar ones are searched, and the most names that are compared.
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


Mismatch.__module__ = "serdes_ml"


class TreeMismatch(SerdesError):
    """The state does not fit the tree that it is to become; ``mismatches`` has each leaf.

    It is a ``KeyError`` as well where leaves are not there, a ``ValueError`` where some are
    something else, and both where there are such and such.
    """

    __module__ = "serdes_ml"

    def __init__(self, path: str = "", mismatches: Sequence[Mismatch] = ()) -> None:
        self.path, self.mismatches = path, tuple(map(Mismatch._make, mismatches))
        super().__init__(_message(path, self.mismatches), "unsupported")

    def __str__(self) -> str:
        return self._message

    def __reduce__(self) -> tuple[Any, ...]:
        return mismatch_of, (self.path, [tuple(one) for one in self.mismatches])


class _LeavesMissing(TreeMismatch, KeyError):
    """A `TreeMismatch` of leaves that are not there."""


class _LeavesDiffer(TreeMismatch, ValueError):
    """A `TreeMismatch` of leaves that are something else."""


class _LeavesMissingAndDiffer(_LeavesMissing, _LeavesDiffer):
    """A `TreeMismatch` of both."""


# What a traceback and `repr` call them.
for _kind in (_LeavesMissing, _LeavesDiffer, _LeavesMissingAndDiffer):
    _kind.__module__ = TreeMismatch.__module__
    _kind.__name__ = _kind.__qualname__ = TreeMismatch.__name__


def mismatch_of(path: str, mismatches: Sequence[Mismatch]) -> TreeMismatch:
    """The error of leaves that do not fit, which is of the kind that its leaves say."""
    kinds = {Mismatch(*one).is_missing for one in mismatches}
    if kinds == {True}:
        return _LeavesMissing(path, mismatches)
    if kinds == {False}:
        return _LeavesDiffer(path, mismatches)
    return _LeavesMissingAndDiffer(path, mismatches)


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

    def all(self, asked: Iterable[str]) -> list[Mismatch]:
        """All of them; ``asked`` are the names of all leaves that are asked for, and names that are
        near a missing one are among the others.
        """
        taken = set(asked)
        free = [name for name in self._names if name not in taken]
        searched = 0
        found: list[Mismatch] = []
        for one in self._found:
            if one.is_missing:
                searched += 1
                near = near_names(one.name, free) if searched <= _SEARCHED else ()
                message = f"the state has no leaf {one.name!r}{it_has(near)}"
                one = Mismatch(one.name, message, True, near)
            found.append(one)
        return found

    def check(self, asked: Iterable[str]) -> None:
        """Raise if there are any; ``asked`` as for `all`.

        Raises:
            TreeMismatch: a ``KeyError``, a ``ValueError``, or both.
        """
        if not self._found:
            return
        raise mismatch_of(self._path, self.all(asked))


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
