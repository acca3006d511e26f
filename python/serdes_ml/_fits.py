"""Fit of a state with devices: types, number of devices and memory, before anything is moved."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from . import _native
from ._arguments import number, text, texts, whole
from ._command import AGAIN
from ._errors import SerdesError, Unsupported
from ._paths import Path, place
from ._state import State
from ._words import count, size

# Rows of memory that are listed for people before the rest is only counted.
_LISTED = 8


class FitRow(NamedTuple):
    """A comparison: the need of a state, and the offer of the devices."""

    what: str
    """``types``, ``mesh``, ``memory``, or ``leaf`` for one that cannot lie there."""

    ok: bool | None
    """True if it fits; None if the devices do not say what they offer."""

    needed: Any
    """Names of types, the number of devices, or bytes."""

    offered: Any
    """The same of the devices; None if any will do, or they do not say."""

    device: int | None = None
    """The device whose memory it is, by its place among the devices; None if there are too few."""

    message: str = ""
    """Both values, as a text."""


FitRow.__module__ = "serdes_ml"


@dataclass(frozen=True, repr=False)
class Fit:
    """Comparison of a state with devices; true if nothing is known that does not fit."""

    __module__ = "serdes_ml"

    path: str
    """The state."""

    devices: str
    """The devices, or the platform of a plug-in."""

    ok: bool
    """True if nothing is known that does not fit."""

    tensors: int
    """The number of tensors."""

    bytes: int
    """Bytes of all arrays, each once."""

    rows: tuple[FitRow, ...]
    """The comparisons: types, number of devices, memory of each device."""

    _object: str = field(repr=False)

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        return "\n".join([self._title(), *(f"  {line}" for line in self._lines())])

    def __repr__(self) -> str:
        wrong = dict.fromkeys(row.what for row in self.rows if row.ok is False)
        return f"<{self._title()}{': ' if wrong else ''}{', '.join(wrong)}>"

    def _repr_html_(self) -> str:
        from ._html import heading, table

        rows = [
            (row.what, _WORDS[row.ok], "" if row.device is None else row.device, row.message)
            for row in self.rows
        ]
        return heading(self._title()) + table(("", "", "device", "needed and offered"), rows)

    def _title(self) -> str:
        tensors = f"{count(self.tensors, 'tensor')}, {size(self.bytes)}"
        return f"{self.path} {_WORDS[self.ok]} {self.devices}: {tensors}"

    def _lines(self) -> list[str]:
        # Those with the least room first.
        memory = sorted((row for row in self.rows if row.what == "memory"), key=_room)
        shown = [row for row in self.rows if row.what != "memory"] + memory[:_LISTED]
        width = max(len(row.what) for row in shown)
        lines = [f"{row.what:{width}}  {_WORDS[row.ok]}: {row.message}" for row in shown]
        if len(memory) > _LISTED:
            lines.append(f"{'memory':{width}}  {len(memory) - _LISTED} more, with more room")
        return lines

    def to_dict(self) -> dict[str, Any]:
        """The object that ``serdes restore --dry-run --json`` prints of a comparison."""
        return cast("dict[str, Any]", json.loads(self._object))


def _room(row: FitRow) -> int:
    offered = sys.maxsize if row.offered is None else row.offered
    return int(offered - row.needed)


_WORDS = {True: "fits", False: "does not fit", None: "unknown"}


def fit_of(path: str, devices: str, found: dict[str, Any], leaves: Sequence[FitRow] = ()) -> Fit:
    """A comparison by the object that the command prints; ``leaves`` are those that cannot lie
    there.
    """
    rows = [_types(found["types"]), _mesh(found["mesh"])]
    rows += map(_memory, found["memory"]["devices"])
    if found["host_bytes"]:
        held = found["host_bytes"]
        rows.append(FitRow("host", True, held, None, None, f"{size(held)} stay on the host"))
    rows += leaves
    ok = bool(found["fits"]) and not leaves
    return Fit(path, devices, ok, found["tensors"], found["bytes"], tuple(rows), json.dumps(found))


def _types(found: dict[str, Any]) -> FitRow:
    needed, missing = tuple(found["needed"]), found["missing"]
    offered = None if found["offered"] is None else tuple(found["offered"])
    has = "any" if offered is None else "all"
    rest = f"not offered: {', '.join(missing)}" if missing else f"{has} offered"
    message = f"{', '.join(needed) or 'none'} needed, {rest}"
    return FitRow("types", found["fits"], needed, offered, None, message)


def _mesh(found: dict[str, Any]) -> FitRow:
    needed, offered = found["needed"], found["offered"]
    message = f"{count(needed, 'device')} needed, {offered} offered"
    return FitRow("mesh", found["fits"], needed, offered, None, message)


def _memory(found: dict[str, Any]) -> FitRow:
    device, needed, offered = found["device"], found["needed"], found["offered"]
    where = "no device" if device is None else f"device {device}"
    free = "it does not say how much is free" if offered is None else f"{size(offered)} free"
    if device is None:
        free = f"for what was saved from device {found['saved_from']}"
    message = f"{where}: {size(needed)} needed, {free}"
    return FitRow("memory", found["fits"], needed, offered, device, message)


def fits(
    path: Path,
    plugin: str = "host",
    *,
    only: str | Sequence[str] | None = None,
    device: int = 0,
    timeout: float | None = None,
) -> Fit:
    """Compare the state ``path`` with the devices of a plug-in, and move nothing.

    ``plugin`` is a library of PJRT or StreamExecutor as the command takes it, ``PATH`` or
    ``PATH:KEY=VALUE,…``, or ``host``. It is loaded by a process of its own, which has ended when
    this returns: a device that only one process may have is free again. ``only`` are patterns of
    names; ``device`` would have all arrays as wholes; ``timeout`` is how many seconds it may take.
    `serdes_ml.jax.fits` compares with the devices that JAX has.

    >>> import tempfile, pathlib, numpy as np, serdes_ml as sd
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "state.sds"
    >>> sd.save_file({"w": np.ones(1000, np.float32)}, path)
    >>> fit = sd.fits(path, "host:devices=1,memory=3000")
    >>> fit.ok, [(row.what, row.needed, row.offered) for row in fit.rows if not row.ok]
    (False, [('memory', 4000, 3000)])

    Raises:
        NotFound: if there is no such file.
        TooNew, TooOld, Corrupt: if this build must not, or nobody can, read it.
        Unsupported: if the plug-in is refused, with the reason.
        TimeoutError: if the plug-in takes longer than ``timeout``.
    """
    import subprocess

    text("plugin", plugin, "a text, as --plugin of the command")
    device = whole("device", device, "an integer, 0 or more")
    if device < 0:
        raise ValueError(f"device is {device}; expected 0 or more")
    if timeout is not None:
        timeout = number("timeout", timeout, "a number of seconds, or None")
    state = State.open(path)
    at = place(path)
    arguments = ["restore", "--dry-run", "--json", f"--plugin={plugin}", f"--device={device}"]
    if only is not None:
        arguments += [f"--only={pattern}" for pattern in _patterns(state, only)]
    # A path of that name, and not standard input.
    arguments += ["--", "./-" if at == "-" else at]
    command = [sys.executable, "-c", AGAIN, *arguments]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"{plugin} takes longer than {timeout} s") from None
    found = _answer(ran.stdout)
    if "fits" not in found:
        said = found.get("error") or ran.stderr.strip() or f"it ended with {ran.returncode}"
        kind = Unsupported if ran.returncode == 1 else SerdesError
        raise kind(f"{plugin} gives no devices to compare with: {said}", "unsupported")
    return fit_of(state.name, str(found["plugin"]), found)


def _patterns(state: State, only: str | Sequence[str]) -> list[str]:
    """Patterns as the command takes them, which knows no other name of a tensor."""
    given = texts("only", only) or []
    names, _ = state.select_with(given, leaves=False)
    stored = state.reader.names()
    own = [pattern for pattern in given if _native.matching(pattern, stored)]
    aliased = dict.fromkeys(state.stored(name) for name in names if name in state.aliases)
    found = own + [re.sub(r"([*?[])", r"[\1]", name) for name in aliased]
    if not found:
        raise ValueError(f"only: {only!r} matches values that are no tensors, and no tensor")
    return found


def _answer(output: str) -> dict[str, Any]:
    lines = output.splitlines()
    try:
        found = json.loads(lines[-1])
    except (IndexError, ValueError):
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}
