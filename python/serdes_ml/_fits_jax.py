"""Fit of a state with the devices that JAX has."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ._arrays import STRING, imported
from ._fits import Fit, FitRow, fit_of
from ._mismatches import Mismatches
from ._restoring import plan_all, plan_like
from ._shards import Loading
from ._state import State
from ._trees import flatten
from ._words import count

jax = imported("jax")


def as_saved(state: State, devices: Sequence[Any]) -> Fit:
    """The fit with devices of which the first has what the first one had that was saved from."""
    text = state.reader.fit(state.reader.names(), None, 0, [_free(device) for device in devices])
    return fit_of(state.name, _words(devices), json.loads(text))


def as_loaded(state: State, like: Any, mesh: Any, cast: bool) -> Fit:
    """The fit with the devices onto which a load of these arguments puts the leaves."""
    if like is None:
        loading, mismatches = plan_all(state, mesh, True)
        return _planned(state, loading, mismatches, state.names)
    named, _ = flatten(like)
    plan = plan_like(state, named, mesh, cast, True)
    return _planned(state, plan.fitting.loading, plan.mismatches, [name for name, _ in named])


def _planned(state: State, loading: Loading, mismatches: Mismatches, asked: Sequence[str]) -> Fit:
    needs, on_host = loading.needs()
    devices = sorted(needs, key=lambda device: device.id)
    names = list(dict.fromkeys(map(state.stored, loading.names())))
    strings = [name for name in asked if name in state.names_set]
    strings = [name for name in strings if state.describe(name)[0] == STRING]
    text = state.reader.fit(
        [*names, *dict.fromkeys(map(state.stored, strings))],
        [(device.id, needs[device]) for device in devices],
        on_host,
        [_free(device) for device in devices],
    )
    leaves = [
        FitRow("leaf", False, one.name, None, None, one.message) for one in mismatches.all(asked)
    ]
    return fit_of(state.name, _words(devices), json.loads(text), leaves)


def _free(device: Any) -> int | None:
    """Bytes that are free on a device, where it says so."""
    try:
        found = device.memory_stats() or {}
        free = int(found["bytes_limit"]) - int(found["bytes_in_use"])
    except (KeyError, TypeError, ValueError, NotImplementedError, RuntimeError):
        # Devices of processors, of servers and of other processes do not say.
        return None
    return max(free, 0)


def _words(devices: Sequence[Any]) -> str:
    platforms = "/".join(sorted({str(device.platform) for device in devices})) or "no"
    return count(len(devices), f"{platforms} device")
