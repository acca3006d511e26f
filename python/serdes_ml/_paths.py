"""Places of files, as people name them."""

from __future__ import annotations

from os import PathLike, fspath
from typing import cast
from urllib.parse import urlsplit
from urllib.request import url2pathname

from ._errors import Unsupported

Path = str | PathLike[str]
"""A place of a file: a path, or an address (``s3://``, ``gs://``, ``az://``, ``file://``).

Addresses of the web (``https://``) can be read. Addresses are reached with the credentials of the
environment, as in the command.
"""

_REMOTE = ("s3", "gs", "az", "http", "https")


def place(path: Path) -> str:
    """The path or address of a file, as the extension takes it."""
    if isinstance(cast("object", path), bytes):
        raise TypeError("a path is a text or an os.PathLike, found bytes")
    return fspath(path)


def is_remote(path: Path) -> bool:
    """Whether a path is an address of object storage or of the web."""
    scheme, separator, _ = place(path).partition("://")
    return bool(separator) and scheme.lower() in _REMOTE


def local(path: Path) -> str:
    """The path in the file system that a path, or an address of the form ``file://``, names."""
    text = place(path)
    if is_remote(text):
        raise Unsupported(
            f"{text.partition('?')[0]} is an address, and this takes paths of the file system",
            "unsupported",
            text.partition("://")[0],
            "a path",
            "Name a path.",
        )
    scheme, separator, _ = text.partition("://")
    if separator and scheme == "file":
        return url2pathname(urlsplit(text).path)
    return text
