"""Arguments of functions: one of another type is refused with what was found and expected."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any, cast

from ._errors import wrong_type


def flag(what: str, given: object) -> bool:
    """True or False, of Python or of NumPy.

    Raises:
        WrongType: for anything else.
    """
    is_numpy = type(given).__module__ == "numpy" and type(given).__name__ in ("bool", "bool_")
    if not isinstance(given, bool) and not is_numpy:
        raise wrong_type(what, given, "True or False")
    return bool(given)


def flags(**given: object) -> None:
    """Check arguments that are True or False, by their names.

    Raises:
        WrongType: for the first that is neither.
    """
    for what, one in given.items():
        flag(what, one)


def text(what: str, given: object, expected: str = "a text") -> str:
    """A text.

    Raises:
        WrongType: for anything else.
    """
    if not isinstance(given, str):
        raise wrong_type(what, given, expected)
    return given


def whole(what: str, given: object, expected: str) -> int:
    """An integer, of Python or of NumPy.

    Raises:
        WrongType: for anything else, True and False among it.
    """
    try:
        if isinstance(given, bool):
            raise TypeError
        return operator.index(cast("Any", given))
    except TypeError:
        raise wrong_type(what, given, expected) from None


def number(what: str, given: object, expected: str = "a number") -> float:
    """A number, of Python or of NumPy.

    Raises:
        WrongType: for anything else, True and False and texts among it.
    """
    try:
        if isinstance(given, (bool, str, bytes)):
            raise TypeError
        return float(cast("Any", given))
    except (TypeError, ValueError):
        raise wrong_type(what, given, expected) from None


def texts(what: str, given: object) -> list[str] | None:
    """Several texts, of which one may stand alone; None stays.

    Raises:
        WrongType: for anything else.
    """
    expected = "a text, several, or None"
    if given is None:
        return None
    if isinstance(given, str):
        return [given]
    if not isinstance(given, Iterable) or isinstance(given, (bytes, bytearray)):
        raise wrong_type(what, given, expected)
    found = list(cast("Iterable[object]", given))
    return [text(f"{what}, one of which", one, expected) for one in found]
