"""What can go wrong with a state or an artifact, by the rule that says so."""

from __future__ import annotations

import errno
import os
from typing import Any


class SerdesError(Exception):
    """The base of what this package raises about states and artifacts.

    ``rule`` names the rule as verdicts do (``explain(rule)`` says what it means); ``found`` and
    ``expected`` are what broke it, as texts, where there are such; ``remedy`` says what to do.

    >>> import serdes_ml as sd
    >>> error = sd.TooNew("the state is newer", "too_new", "7", "<= 1", "Upgrade the reader.")
    >>> error.rule, error.found, error.expected
    ('too_new', '7', '<= 1')
    """

    __module__ = "serdes_ml"

    rule: str | None
    found: str | None
    expected: str | None
    remedy: str | None

    def __init__(
        self,
        message: str = "",
        rule: str | None = None,
        found: str | None = None,
        expected: str | None = None,
        remedy: str | None = None,
    ) -> None:
        Exception.__init__(self, message)
        self._tell(message, rule, found, expected, remedy)

    def _tell(
        self,
        message: str,
        rule: str | None,
        found: str | None,
        expected: str | None,
        remedy: str | None,
    ) -> None:
        self._message = message
        self.rule, self.found, self.expected, self.remedy = rule, found, expected, remedy

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._message, self.rule, self.found, self.expected, self.remedy)


class WrongType(SerdesError, TypeError):
    """An argument has a type that is not taken: also a ``TypeError``.

    >>> import serdes_ml as sd
    >>> error = sd.WrongType("keep is 'two'; expected an integer", None, "'two'", "an integer")
    >>> error.found, error.expected, isinstance(error, TypeError)
    ("'two'", 'an integer', True)
    """

    __module__ = "serdes_ml"


def wrong_type(what: str, given: object, expected: str) -> WrongType:
    """The error of an argument that has another type than is expected."""
    # Values of other types may be large, or lie on a device.
    is_plain = isinstance(given, (str, bytes, int, float, complex, type(None)))
    found = repr(given) if is_plain else f"a value of type {type(given).__name__}"
    if len(found) > 100:
        found = f"{found[:100]}…"
    return WrongType(f"{what} is {found}; expected {expected}", None, found, expected)


class TooNew(SerdesError):
    """A newer build wrote it, and this one must not read it: nothing is damaged."""

    __module__ = "serdes_ml"


class TooOld(SerdesError):
    """It is older than what this build reads."""

    __module__ = "serdes_ml"


class Corrupt(SerdesError):
    """Its bytes are no longer, or never were, those of such a file."""

    __module__ = "serdes_ml"


class NotFound(SerdesError, FileNotFoundError):
    """A file is not there: also a ``FileNotFoundError``, with ``errno`` and ``filename``.

    >>> import serdes_ml as sd
    >>> isinstance(sd.NotFound("no file"), FileNotFoundError)
    True
    """

    __module__ = "serdes_ml"

    def __init__(
        self,
        message: str = "",
        rule: str | None = "not_found",
        found: str | None = None,
        expected: str | None = None,
        remedy: str | None = None,
        path: str | os.PathLike[str] | None = None,
    ) -> None:
        if path is None:
            FileNotFoundError.__init__(self, errno.ENOENT, message)
        else:
            FileNotFoundError.__init__(self, errno.ENOENT, message, os.fspath(path))
        self._tell(message, rule, found, expected, remedy)

    def __reduce__(self) -> tuple[Any, ...]:
        said = (self._message, self.rule, self.found, self.expected, self.remedy)
        return type(self), (*said, self.filename)


class Unsupported(SerdesError):
    """It is whole, and this build, or the version that was asked for, cannot hold or read it."""

    __module__ = "serdes_ml"
