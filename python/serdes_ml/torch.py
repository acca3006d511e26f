"""State dicts of PyTorch: tensors that share memory are stored once, and come back shared.

>>> import tempfile, pathlib, torch
>>> from serdes_ml import torch as sdt
>>> path = pathlib.Path(tempfile.mkdtemp()) / "m.sds"
>>> model = torch.nn.Linear(2, 3)
>>> sdt.save_file(model.state_dict(), path)
>>> model.load_state_dict(sdt.load_file(path))
<All keys matched successfully>

`StorageWriter` and `StorageReader` are the storage of ``torch.distributed.checkpoint``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from ._arguments import flags
from ._arrays import imported, to_torch, torch_device
from ._errors import wrong_type
from ._files import metadata_of, write
from ._paths import Path, place
from ._progress import Progress
from ._state import ALIASES, State
from ._types import Version

if TYPE_CHECKING:
    from ._checkpoint import StorageReader, StorageWriter

__all__ = ["StorageReader", "StorageWriter", "load_file", "save_file"]

torch = imported("torch")


def __getattr__(name: str) -> Any:
    # torch.distributed takes its time to import, and not every build of torch has it.
    if name in ("StorageReader", "StorageWriter"):
        from . import _checkpoint

        return getattr(_checkpoint, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _place(tensor: Any) -> tuple[Any, ...]:
    """Where a tensor lies, and how; those of one place are one tensor."""
    return (
        tensor.device,
        tensor.data_ptr(),
        tensor.dtype,
        tuple(tensor.shape),
        tuple(tensor.stride()),
        tensor.is_conj(),
        tensor.is_neg(),
    )


def _apart(tensors: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Each tensor once, and the other names of those that have several."""
    stored: dict[str, Any] = {}
    aliases: dict[str, str] = {}
    first: dict[tuple[Any, ...], str] = {}
    if not isinstance(cast("object", tensors), Mapping):
        raise wrong_type("tensors", tensors, "a state dict: tensors by their names")
    for name, tensor in tensors.items():
        if not isinstance(tensor, torch.Tensor):
            expected = "a tensor; what is none goes into the metadata"
            raise wrong_type(repr(name), tensor, expected)
        shares = tensor.layout == torch.strided and tensor.numel() > 0
        place = _place(tensor) if shares else None
        if place is not None and place in first:
            aliases[name] = first[place]
            continue
        if place is not None:
            first[place] = name
        stored[name] = tensor
    return stored, aliases


def save_file(
    tensors: Mapping[str, Any],
    filename: Path,
    metadata: Mapping[str, str] | None = None,
    *,
    serdes_version: Version = "current",
    sync: bool = True,
    progress: Progress = None,
) -> None:
    """Save a state dict into the file ``filename``.

    Names of one tensor, as those of tied weights, are stored once. What else is as in
    `serdes_ml.save_file`.

    >>> import tempfile, pathlib, torch, serdes_ml as sd
    >>> from serdes_ml import torch as sdt
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "m.sds"
    >>> weight = torch.ones(2)
    >>> sdt.save_file({"encoder": weight, "decoder": weight}, path)
    >>> sd.inspect(path)["tensors"][0]["name"], sorted(sd.load_file(path))
    ('encoder', ['decoder', 'encoder'])

    Raises:
        TypeError: if a value is no dense tensor.
    """
    stored, aliases = _apart(tensors)
    own = {ALIASES: json.dumps(aliases)} if aliases else None
    path = place(filename)
    write(path, stored, metadata_of(metadata, own), serdes_version, sync, progress)


def load_file(
    filename: Path,
    *,
    device: Any = "cpu",
    only: str | Sequence[str] | None = None,
    leaves: bool | None = None,
    verify: bool = True,
    progress: Progress = None,
) -> dict[str, Any]:
    """Load a state dict from the state ``filename`` onto ``device``.

    Names that were stored once are one tensor again. What else is as in `serdes_ml.load_file`.

    >>> import tempfile, pathlib, torch
    >>> from serdes_ml import torch as sdt
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "m.sds"
    >>> weight = torch.ones(2, dtype=torch.bfloat16)
    >>> sdt.save_file({"encoder": weight, "decoder": weight}, path)
    >>> state = sdt.load_file(path)
    >>> state["encoder"] is state["decoder"], state["encoder"].dtype
    (True, torch.bfloat16)

    Raises:
        TypeError: if the state holds strings, or a type that torch does not have.
    """
    target = torch_device(device)
    flags(verify=verify)
    state = State.open(filename)
    names, plain = state.select_with(only, leaves)
    arrays = state.read(names, verify, progress)
    made: dict[int, Any] = {}
    found: dict[str, Any] = {}
    for name, array in arrays.items():
        tensor = made.get(id(array))
        if tensor is None:
            tensor = to_torch(name, array).to(target)
            made[id(array)] = tensor
        found[name] = tensor
    return {**found, **plain}
