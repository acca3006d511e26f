"""Places of files, as people name them."""

from __future__ import annotations

from os import PathLike, fspath
from typing import cast
from urllib.parse import urlsplit
from urllib.request import url2pathname

from ._errors import Unsupported

Path = str | PathLike[str]
"""A place of a file."""

_REMOTE = ("s3", "gs", "az", "http", "https")


def local(path: Path) -> str:
    """The file that a path, or an address of the form ``file://``, names."""
    if isinstance(cast("object", path), bytes):
        raise TypeError("a path is a text or an os.PathLike, found bytes")
    text = fspath(path)
    scheme, separator, _ = text.partition("://")
    if not separator:
        return text
    if scheme == "file":
        return url2pathname(urlsplit(text).path)
    if scheme in _REMOTE:
        raise Unsupported(
            f"{text} is an address in object storage, which this build does not reach",
            "unsupported",
            scheme,
            "a file",
            "Copy it to a file, or mount the bucket.",
        )
    return text
