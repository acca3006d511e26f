"""Places of files, as people name them."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike, fspath
from typing import cast

from . import _native
from ._errors import wrong_type

Path = str | PathLike[str]
"""A place of a file: a path, or an address (``s3://``, ``gs://``, ``az://``, ``file://``).

Addresses of the web (``https://``) can be read. Addresses are reached with the credentials of the
environment, as in the command.
"""


def place(path: Path) -> str:
    """The path or address of a file, as the extension takes it."""
    given: object = path
    found = fspath(path) if isinstance(given, (str, PathLike)) else given
    if not isinstance(found, str):
        raise wrong_type("the path", path, "a text or an os.PathLike of one")
    if "\0" in found:
        raise ValueError(f"no path has a null character: {found!r}")
    return found


def paths_of(what: str, given: object) -> list[Path]:
    """Several paths, of which one may stand alone.

    Raises:
        WrongType: for anything else.
    """
    if isinstance(given, (str, PathLike)):
        return [cast("Path", given)]
    if not isinstance(given, Iterable) or isinstance(given, (bytes, bytearray)):
        raise wrong_type(what, given, "a path, or several")
    return list(cast("Iterable[Path]", given))


def system_path(path: Path) -> str | None:
    """The path in the file system that a path, or an address of the form ``file://``, names; None
    of an address of object storage or of the web.
    """
    found = _native.system_path(place(path))
    return None if found is None else fspath(found)


def inside(folder: str, name: str) -> str:
    """The place of a file in a folder, or under an address."""
    return f"{folder.rstrip('/')}/{name}"
