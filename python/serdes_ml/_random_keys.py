"""Typed random keys of JAX in a state: the data of the keys, and the name of their generator."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._arrays import imported
from ._errors import Corrupt, Unsupported
from ._state import RESERVED, State

jax = imported("jax")

KEYS = RESERVED + "random_keys"
"""Leaves that are typed random keys: a JSON object of names and generators.

What is stored of such a leaf is the data of its keys, an array of numbers with more dimensions.
"""


def is_keys(leaf: Any) -> bool:
    """Whether a leaf, or what describes one, is an array of typed random keys."""
    dtype = getattr(leaf, "dtype", None)
    return dtype is not None and bool(jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key))


def generator_of(name: str, keys: Any) -> str:
    """The name of the generator of a leaf's keys."""
    found = jax.random.key_impl(keys)
    if not isinstance(found, str):
        raise TypeError(
            f"{name!r} holds random keys of {found}, which jax knows by no name; save"
            " jax.random.key_data(...) of it"
        )
    return found


class Keys:
    """The leaves of a state that are typed random keys."""

    def __init__(self, state: State) -> None:
        self._generators = state.object(KEYS)
        known = set(state.names)
        for name, generator in self._generators.items():
            fits = isinstance(generator, str) and name in known
            if not fits or state.describe(name)[0] != "U32":
                raise Corrupt(
                    f"the metadata {KEYS} of the state names keys that are not there",
                    "corrupt",
                    f"{name!r}: {generator!r}"[:200],
                    "names of arrays of U32, and of generators",
                    "Take another copy, or save it again.",
                )

    def __contains__(self, name: object) -> bool:
        return name in self._generators

    def dtype(self, name: str) -> Any:
        """The type of keys that a leaf has."""
        generator = self._generators[name]
        try:
            return jax.random.key(0, impl=generator).dtype
        except (TypeError, ValueError):
            raise Unsupported(
                f"{name!r} holds random keys of {generator!r}, which this jax does not know",
                "unsupported",
                str(generator),
                remedy="Load it with a jax that has this generator.",
            ) from None

    def wrapped(self, name: str, data: Any, sharding: Any) -> Any:
        """The keys whose data these are, with a sharding if there is one."""
        found = jax.random.wrap_key_data(data, impl=self._generators[name])
        if sharding is None or found.sharding == sharding:
            return found
        if not found.is_fully_addressable and found.sharding.is_equivalent_to(sharding, found.ndim):
            return found
        return jax.device_put(found, sharding)

    def wanted(self, name: str, leaf: Any, shape: tuple[int, ...]) -> Any:
        """The sharding of the data for keys like ``leaf``, where ``shape`` is that of the data."""
        if name not in self:
            raise ValueError(f"{name!r} holds no random keys in the state, and not {leaf.dtype}")
        known = self.dtype(name)
        if leaf.dtype != known:
            raise ValueError(f"{name!r} is {known} in the state, and not {leaf.dtype}")
        keys = jax.eval_shape(
            lambda data: jax.random.wrap_key_data(data, impl=self._generators[name]),
            jax.ShapeDtypeStruct(shape, np.uint32),
        )
        if tuple(leaf.shape) != keys.shape:
            raise ValueError(
                f"{name!r} is {known}{list(keys.shape)} in the state, and not {list(leaf.shape)}"
            )
        sharding = getattr(leaf, "sharding", None)
        if sharding is None or isinstance(
            sharding, (jax.sharding.NamedSharding, jax.sharding.SingleDeviceSharding)
        ):
            # Dimensions that a specification does not name are whole, as those of the data are.
            return sharding
        raise ValueError(f"{name!r}: keys are loaded with a NamedSharding, not with {sharding}")
