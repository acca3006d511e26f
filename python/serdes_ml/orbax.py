"""A handler of orbax.checkpoint whose checkpoints are states.

>>> import tempfile, pathlib, jax.numpy as jnp, orbax.checkpoint as ocp
>>> from serdes_ml.orbax import SerdesHandler
>>> checkpointer = ocp.Checkpointer(SerdesHandler())
>>> folder = pathlib.Path(tempfile.mkdtemp()) / "checkpoint"
>>> checkpointer.save(folder, args=SerdesHandler.Save({"w": jnp.ones(2)}))
>>> checkpointer.restore(folder, args=SerdesHandler.Restore())["w"].tolist()
[1.0, 1.0]
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
from collections.abc import Mapping
from typing import Any

from . import jax as _jax
from ._arguments import number
from ._arrays import imported
from ._files import version_of
from ._processes import DEFAULT_TIMEOUT
from ._types import Version

__all__ = ["FILE", "SerdesHandler"]

_args = imported("orbax.checkpoint").args
_Handler: Any = imported("orbax.checkpoint").CheckpointHandler
_Arguments: Any = _args.CheckpointArgs

FILE = "state.sds"
"""The state in the folder of a checkpoint."""


def _file(directory: str | os.PathLike[str]) -> pathlib.Path:
    return pathlib.Path(os.fspath(directory)) / FILE


class SerdesHandler(_Handler):  # type: ignore[misc]
    """Saves pytrees as `serdes_ml.jax.save` does, into a folder of orbax.

    With ``orbax.checkpoint.Checkpointer`` and ``CheckpointManager`` it is used by its arguments,
    ``SerdesHandler.Save(tree)`` and ``SerdesHandler.Restore(like)``; by itself it takes the tree.
    """

    Save: type[Any]
    Restore: type[Any]

    def __init__(
        self, *, serdes_version: Version = "current", timeout: float = DEFAULT_TIMEOUT
    ) -> None:
        self._serdes_version: Version = version_of(serdes_version)
        self._timeout = number("timeout", timeout, "a number of seconds")

    def save(
        self,
        directory: str | os.PathLike[str],
        item: Any = None,
        *,
        args: Any = None,
    ) -> None:
        """Save a tree into the folder, which is there."""
        tree, metadata = (item, None) if args is None else (args.item, args.metadata)
        _jax.save(
            _file(directory),
            tree,
            metadata,
            serdes_version=self._serdes_version,
            timeout=self._timeout,
        )

    def restore(
        self,
        directory: str | os.PathLike[str],
        item: Any = None,
        *,
        args: Any = None,
    ) -> Any:
        """Restore a tree like ``item``, or the tree as it was saved, as `serdes_ml.jax.load`."""
        options = _Restore(item) if args is None else args
        return _jax.load(
            _file(directory),
            options.item,
            flat=options.flat,
            mesh=options.mesh,
            cast=options.cast,
        )

    def finalize(self, directory: str | os.PathLike[str]) -> None:
        """Nothing is left to do: the state is there, or not."""

    def close(self) -> None:
        """Nothing is held."""


@_args.register_with_handler(SerdesHandler, for_save=True)
@dataclasses.dataclass
class _Save(_Arguments):  # type: ignore[misc]
    """What is saved: a tree, and words about it."""

    item: Any
    metadata: Mapping[str, str] | None = None


@_args.register_with_handler(SerdesHandler, for_restore=True)
@dataclasses.dataclass
class _Restore(_Arguments):  # type: ignore[misc]
    """What is restored: a tree like this one, or the tree as it was saved, with ``flat`` as a dict
    by names; ``cast`` converts types, and ``mesh`` is what leaves without a sharding lie over.
    """

    item: Any = None
    cast: bool = False
    flat: bool = False
    mesh: Any = None


SerdesHandler.Save, SerdesHandler.Restore = _Save, _Restore
_Save.__qualname__, _Restore.__qualname__ = "SerdesHandler.Save", "SerdesHandler.Restore"
