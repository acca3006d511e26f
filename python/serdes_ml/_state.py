"""An open state: the names of its tensors, and what the package keeps in its metadata."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Sequence
from typing import Any, cast

import numpy as np

from . import _native
from ._arguments import flags, text, texts
from ._arrays import STRING, Array, array_of_strings, dtype_of
from ._errors import Corrupt, wrong_type
from ._mismatches import it_has, near_names
from ._paths import Path, place
from ._progress import Progress, listener

RESERVED = "serdes_ml."
"""What the keys of metadata begin with that the package keeps for itself."""

ALIASES = RESERVED + "aliases"
"""Names of tensors that are stored under another name: a JSON object of both."""

TREE = RESERVED + "tree"
"""The structure of the tree that was saved, as `serdes_ml._trees` describes it."""

LEAF = "*"
"""A leaf in a structure."""

LEAVES = RESERVED + "leaves"
"""Leaves of a tree that are no tensors: a JSON object of names and values."""


def _parsed(text: str) -> Any:
    """A value of JSON; None where the text is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


class State:
    """An open state with the names that the package gives to its tensors."""

    def __init__(self, reader: _native.Reader, name: str) -> None:
        self.reader, self.name = reader, name
        pairs = reader.metadata()
        self.own = {key: value for key, value in pairs if key.startswith(RESERVED)}
        self.metadata = {key: value for key, value in pairs if not key.startswith(RESERVED)}
        self.aliases = self._aliases()
        self.names_set = {*reader.names(), *self.aliases}
        self.names = sorted(self.names_set)

    @staticmethod
    def open(path: Path) -> State:
        """The state in a file."""
        found = place(path)
        return State(_native.Reader.open(found), _native.shown(found))

    @staticmethod
    def of_bytes(data: Any) -> State:
        """The state in bytes, or whatever has the buffer protocol."""
        try:
            view = memoryview(data)
        except TypeError:
            raise wrong_type("data", data, "bytes, or what has the buffer protocol") from None
        array = np.frombuffer(view, np.uint8) if view.nbytes else np.empty(0, np.uint8)
        return State(_native.Reader.of_bytes(array), "the bytes")

    def object(self, key: str) -> dict[str, Any]:
        """An object in the metadata that is the package's own; empty where there is none."""
        text = self.own.get(key)
        if text is None:
            return {}
        found = _parsed(text)
        if not isinstance(found, dict):
            raise Corrupt(f"the metadata {key} of the state is no object", "corrupt", text[:200])
        return cast("dict[str, Any]", found)

    def size(self, names: Iterable[str]) -> int:
        """Bytes of tensors of which `read` tells as progress: those that are stored under one name
        count once, and strings not at all.
        """
        own = {self.stored(name) for name in names}
        described = [self.reader.describe(name) for name in own]
        return sum(size for dtype, _, size in described if dtype != STRING)

    def _aliases(self) -> dict[str, str]:
        text = self.own.get(ALIASES)
        if text is None:
            return {}
        found = _parsed(text)
        known = set(self.reader.names())
        if not isinstance(found, dict) or not all(
            isinstance(name, str) and isinstance(stored, str) and stored in known
            for name, stored in cast("dict[object, object]", found).items()
        ):
            raise Corrupt(
                f"the metadata {ALIASES} of the state names tensors that are not there",
                "corrupt",
                text[:200],
                "a JSON object of names of tensors",
                "Take another copy, or save it again.",
            )
        aliases = cast("dict[str, str]", found)
        return {name: stored for name, stored in aliases.items() if name not in known}

    def stored(self, name: str) -> str:
        """The name under which a tensor is stored."""
        return self.aliases.get(name, name)

    def describe(self, name: str) -> tuple[str, tuple[int, ...]]:
        """Type, in the words of a state, and shape.

        Raises:
            KeyError: if there is no tensor of that name.
        """
        if text("the name of a tensor", name) not in self.names_set:
            has = it_has(near_names(name, self.names))
            raise KeyError(f"{self.name}: the state has no tensor {name!r}{has}")
        dtype, shape, _ = self.reader.describe(self.stored(name))
        return dtype, tuple(shape)

    def plain(self) -> dict[str, Any]:
        """The leaves of a tree that are no tensors."""
        return self.object(LEAVES)

    def select_with(
        self, only: str | Sequence[str] | None, leaves: bool | None
    ) -> tuple[list[str], dict[str, Any]]:
        """The names of tensors that one of the patterns matches, or of all; and the leaves that are
        no tensors, if those are wanted: with None they are left out with a warning.
        """
        if leaves is not None:
            flags(leaves=leaves)
        names, plain = self._select(texts("only", only), self.plain())
        if leaves is None and plain:
            few = ", ".join(map(repr, list(plain)[:10]))
            more = f" and {len(plain) - 10} more" if len(plain) > 10 else ""
            warnings.warn(
                f"{self.name} holds values that are no tensors, which are left out: {few}{more};"
                " leaves=True gives them, leaves=False says that they are not wanted",
                stacklevel=3,
            )
        return names, plain if leaves else {}

    def _select(
        self, patterns: list[str] | None, plain: dict[str, Any]
    ) -> tuple[list[str], dict[str, Any]]:
        if patterns is None:
            return self.names, plain
        chosen: set[str] = set()
        missing: list[str] = []
        for pattern in patterns:
            found = _native.matching(pattern, [*self.names, *plain])
            if not found:
                has = it_has(near_names(pattern, [*self.names, *plain]))
                missing.append(f"{pattern!r} matches no name of a tensor{has}")
            chosen.update(found)
        if missing:
            raise KeyError(f"{self.name}: {'; '.join(missing)}")
        return (
            [name for name in self.names if name in chosen],
            {name: value for name, value in plain.items() if name in chosen},
        )

    def read(self, names: Iterable[str], verify: bool, progress: Progress) -> dict[str, Array]:
        """Whole tensors; those that are stored under one name are one array."""
        stored: dict[str, Array] = {}
        numbers: list[tuple[str, Array]] = []
        names = list(names)
        for name in names:
            own = self.stored(name)
            if own in stored:
                continue
            dtype, shape = self.describe(own)
            if dtype == STRING:
                stored[own] = array_of_strings(self.reader.strings(own, verify), shape)
            else:
                stored[own] = np.empty(shape, dtype_of(own, dtype))
                numbers.append((own, stored[own]))
        self.reader.read_into(numbers, verify, listener(progress))
        return {name: stored[self.stored(name)] for name in names}

    def read_part(
        self, name: str, origin: Sequence[int], extent: Sequence[int], verify: bool
    ) -> Array:
        """A part of a tensor: the chunks that it crosses are read."""
        own = self.stored(name)
        dtype, shape = self.describe(own)
        if dtype == STRING:
            whole = array_of_strings(self.reader.strings(own, verify), shape)
            ends = zip(origin, extent, strict=True)
            return whole[tuple(slice(begin, begin + count) for begin, count in ends)].copy()
        array: Array = np.empty(tuple(extent), dtype_of(own, dtype))
        self.reader.read_parts([(own, list(origin), list(extent), array)], verify, None)
        return array
