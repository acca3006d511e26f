"""Tensors that others wrote, into a state or another file."""

from __future__ import annotations

import copy
import json
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from . import _native
from ._arguments import flags, texts, whole
from ._arrays import Array, dtype_name, imported
from ._errors import Corrupt, Unsupported
from ._files import version_of
from ._paths import Path, paths_of, place
from ._progress import Progress, listener
from ._state import LEAF, LEAVES, TREE
from ._types import Version

_PIECE = 32 << 20
"""Bytes of an array that are read at a time."""


class Conversion(NamedTuple):
    """What a conversion did."""

    tensors: int
    """How many tensors were written."""
    bytes: int
    """Their bytes."""
    skipped: dict[str, str]
    """What was left out, and why."""
    left_out: dict[str, str]
    """What belongs to something that was written and was not kept with it, and why: attributes of
    tensors, keys that are no texts, values that have no place in the target."""


Conversion.__module__ = "serdes_ml"


def convert(
    source: Path | Sequence[Path],
    target: Path,
    *,
    only: str | Sequence[str] | None = None,
    shard_bytes: int | None = None,
    serdes_version: Version = "current",
    skip_unsupported: bool = False,
    sync: bool = True,
    progress: Progress = None,
) -> Conversion:
    """Write the tensors of ``source``, or of several, into ``target``.

    Read are files of ``torch.save`` (of which nothing is run), safetensors, their index
    (``model.safetensors.index.json``), npz, npy, checkpoints of TensorFlow by their prefix, states,
    checkpoints of ``torch.distributed`` by their folder, and folders of Orbax, where tensorstore is
    installed (``serdes-ml[orbax]``). Written are, by their names, ``.sds``, ``.safetensors``,
    ``.npz``, ``.npy``, and prefixes of checkpoints; with ``shard_bytes`` several safetensors files
    and their index.

    Nested dicts and lists become names: ``model/layer.weight``, ``optimizer/state/0/exp_avg``.
    Numbers and texts between the tensors go into the metadata, where `serdes_ml.jax.load` finds
    them. Names of one tensor are one tensor in a state, and a tensor each elsewhere. What can be
    neither is refused by its name, or left out with ``skip_unsupported``. Tensors pass piece by
    piece, so that a file may be larger than the memory.

    >>> import tempfile, pathlib, numpy as np, serdes_ml as sd
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> np.savez(folder / "a.npz", w=np.arange(3.0))
    >>> sd.convert(folder / "a.npz", folder / "a.sds")
    Conversion(tensors=1, bytes=24, skipped={}, left_out={})
    >>> sd.load_file(folder / "a.sds")["w"]
    array([0., 1., 2.])

    Raises:
        Unsupported: if something is no tensor of a type that the target holds.
        Corrupt: if a file is damaged.
        KeyError: if a pattern of ``only`` matches no tensor.
    """
    paths = paths_of("source", source)
    sources: list[Any] = []
    for path in paths:
        name = place(path)
        folder = _orbax_folder(name)
        sources.append(name if folder is None else _Orbax(folder).source())
    patterns = texts("only", only) or []
    flags(sync=sync, skip_unsupported=skip_unsupported)
    if shard_bytes is not None:
        shard_bytes = whole("shard_bytes", shard_bytes, "a number of bytes, 1 or more, or None")
        if shard_bytes < 1:
            raise ValueError(f"shard_bytes: expected 1 or more, found {shard_bytes}")
    tensors, size, skipped, left_out = _native.convert(
        sources,
        place(target),
        patterns,
        shard_bytes,
        version_of(serdes_version),
        sync,
        skip_unsupported,
        listener(progress),
    )
    reasons: dict[str, str] = {}
    for name, reason in left_out:
        reasons[name] = f"{reasons[name]}; {reason}" if name in reasons else reason
    return Conversion(tensors, size, dict(skipped), reasons)


_METADATA = "_METADATA"


def _orbax_folder(name: str) -> pathlib.Path | None:
    """The folder of an item of Orbax that a path names: itself, or the only item in it."""
    folder = pathlib.Path(name)
    if not folder.is_dir():
        return None
    if (folder / _METADATA).exists():
        return folder
    items = [item.parent for item in sorted(folder.glob("*/" + _METADATA))]
    steps = _steps(folder) if not items or all(item.name.isdecimal() for item in items) else []
    if steps:
        listed = ", ".join(map(str, steps[:20])) + (", …" if len(steps) > 20 else "")
        raise Unsupported(
            f"{name} is the folder of a manager of Orbax, with steps {listed}: name one",
            "unsupported",
            f"steps {listed}",
            "one step",
            f"Name the folder of a step: {folder / str(steps[-1])}",
        )
    if len(items) == 1:
        return items[0]
    if items:
        found = ", ".join(item.name for item in items)
        raise Unsupported(
            f"{name} is a checkpoint of several items: {found}",
            "unsupported",
            found,
            "one item",
            "Name the folder of one of them.",
        )
    if (folder / "_CHECKPOINT_METADATA").exists() or (folder / "manifest.ocdbt").exists():
        raise Unsupported(
            f"{name} is a checkpoint of Orbax without {_METADATA}, which lists its arrays",
            "unsupported",
            "no " + _METADATA,
            "a checkpoint of Orbax 0.5 or newer",
            "Restore it with Orbax, and save it again.",
        )
    return None


def _steps(folder: pathlib.Path) -> list[int]:
    """The steps in the folder of a manager of Orbax."""
    marks = (_METADATA, "_CHECKPOINT_METADATA", "*/" + _METADATA, "*/state.sds")
    found: list[int] = []
    for step in folder.iterdir():
        is_step = step.name.isascii() and step.name.isdecimal() and step.is_dir()
        if is_step and any(True for mark in marks for _ in step.glob(mark)):
            found.append(int(step.name))
    return sorted(found)


# The number of Orbax's for a key of a list or tuple.
_SEQUENCE = 1

# Values that are nothing but structure, as `serdes_ml._trees` writes them.
_EMPTY: dict[str, Any] = {"None": None, "Dict": {}, "List": ["list"], "Tuple": ["tuple"]}


class _Structure:
    """The structure of a tree of which one leaf after the other is told."""

    def __init__(self) -> None:
        self._root: dict[str, Any] = {}
        # Nodes whose keys are all numbers of a list.
        self._numbered: dict[int, bool] = {}

    def add(self, keys: Sequence[str], numbered: Sequence[bool], value: Any) -> None:
        """Add a leaf, or an empty container, by the keys that lead there."""
        at: dict[str, Any] = self._root
        for number, (key, is_number) in enumerate(zip(keys, numbered, strict=True)):
            self._numbered[id(at)] = is_number and self._numbered.get(id(at), True)
            if number == len(keys) - 1:
                at[key] = value
            else:
                inner = at.setdefault(key, {})
                if not isinstance(inner, dict):
                    return
                at = cast("dict[str, Any]", inner)

    def finish(self) -> str | None:
        """The structure of all of it, as JSON; None if it is too deep to be a tree of anybody's."""
        try:
            return json.dumps(self._finished(self._root), separators=(",", ":"))
        except RecursionError:
            return None

    def _finished(self, node: Any) -> Any:
        if not isinstance(node, dict):
            return node
        found = cast("dict[str, Any]", node)
        below = {key: self._finished(child) for key, child in found.items()}
        if self._numbered.get(id(found)) and list(found) == [str(at) for at in range(len(found))]:
            return ["list", *below.values()]
        return below


class _Orbax:
    """The leaves of a checkpoint of Orbax, read through tensorstore."""

    def __init__(self, folder: pathlib.Path) -> None:
        try:
            self._tensorstore = imported("tensorstore")
        except ImportError:
            raise Unsupported(
                f"{folder} is a checkpoint of Orbax, whose arrays are read through tensorstore",
                "unsupported",
                "no tensorstore",
                "tensorstore",
                "pip install 'serdes-ml[orbax]'",
            ) from None
        self._folder = folder
        self._tree = self._json(_METADATA)
        self._strings: dict[str, Any] | None = None

    def _json(self, name: str) -> dict[str, Any]:
        path = self._folder / name
        try:
            found = json.loads(path.read_bytes())
        except (ValueError, RecursionError) as error:
            raise Corrupt(
                f"{path} is no JSON: {error}", "corrupt", str(error), "JSON", "Take another copy."
            ) from None
        if not isinstance(found, dict):
            raise Corrupt(f"{path} is no object", "corrupt", type(found).__name__, "an object")
        return found

    def source(self) -> tuple[Any, ...]:
        """The leaves as the extension takes them."""
        infos: list[tuple[str, str, tuple[int, ...]]] = []
        stores: list[Any] = []
        plain: dict[str, Any] = {}
        refused: list[tuple[str, str]] = []
        structure = _Structure()
        for keys, numbered, kind in self._leaves():
            structure.add(keys, numbered, copy.copy(_EMPTY.get(kind, LEAF)))
            name, stored = "/".join(keys), ".".join(keys)
            if kind == "string":
                plain[name] = self._string(stored)
            elif kind in ("None", "Dict", "List", "Tuple") or kind.startswith("NamedTuple"):
                # As in a pytree, they are the absence of a leaf.
                continue
            elif kind == "scalar":
                plain[name] = self._open(stored).read().result().item()
            elif kind in ("jax.Array", "np.ndarray"):
                store = self._open(stored)
                dtype = dtype_name(name, store.dtype.numpy_dtype)
                infos.append((name, dtype, tuple(store.shape)))
                stores.append(store)
            else:
                refused.append((name, f"is of the kind {kind}, which no state holds"))
        metadata = [(LEAVES, json.dumps(plain))] if plain else []
        text = structure.finish()
        if text is not None:
            metadata.append((TREE, text))

        def pieces(position: int) -> Iterator[Array]:
            return _pieces(stores[position])

        return (str(self._folder), infos, metadata, refused, pieces)

    def _leaves(self) -> Iterator[tuple[list[str], list[bool], str]]:
        """Keys of each leaf, whether they are numbers in a list, and the kind of the leaf."""
        try:
            for entry in self._tree["tree_metadata"].values():
                keys = [str(key["key"]) for key in entry["key_metadata"]]
                numbered = [key.get("key_type") == _SEQUENCE for key in entry["key_metadata"]]
                yield keys, numbered, str(entry["value_metadata"]["value_type"])
        except (AttributeError, KeyError, TypeError) as error:
            raise Corrupt(
                f"{self._folder / _METADATA} lists no leaves: {error!r}",
                "corrupt",
                repr(error),
                "tree_metadata of keys and values",
                "Take another copy.",
            ) from None

    def _string(self, stored: str) -> Any:
        if self._strings is None:
            self._strings = self._json("_strings.json")
        return self._strings.get(stored)

    def _open(self, stored: str) -> Any:
        folder = str(self._folder.absolute())
        files: dict[str, Any]
        if self._tree.get("use_ocdbt", True):
            files = {
                "driver": "ocdbt",
                "base": {"driver": "file", "path": folder + "/"},
                "path": stored + "/",
            }
        elif ".." in stored.split("/") or stored.startswith("/"):
            # A name that leads out of the folder must not be followed.
            raise Corrupt(
                f"{folder} names an array outside of it: {stored[:200]!r}",
                "corrupt",
                stored[:200],
                "names of folders inside",
                "Do not trust where it comes from.",
            )
        else:
            files = {"driver": "file", "path": f"{folder}/{stored}/"}
        driver = "zarr3" if self._tree.get("use_zarr3", False) else "zarr"
        spec = {"driver": driver, "kvstore": files}
        try:
            return self._tensorstore.open(spec, open=True, read=True).result()
        except ValueError as error:
            raise Corrupt(
                f"{stored!r} of {folder} cannot be opened: {error}",
                "corrupt",
                str(error),
                "an array",
                "Take another copy.",
            ) from None


def _pieces(store: Any) -> Iterator[Array]:
    """The elements of an array in row-major order, some at a time."""
    shape = tuple(store.shape)
    element = store.dtype.numpy_dtype.itemsize
    yield from _parts(store, shape, element)


def _parts(store: Any, shape: tuple[int, ...], element: int) -> Iterator[Array]:
    size = element
    for extent in shape:
        size *= extent
    if size <= _PIECE or not shape:
        yield np.ascontiguousarray(store.read().result())
        return
    row = size // shape[0]
    if row > _PIECE:
        for number in range(shape[0]):
            yield from _parts(store[number], shape[1:], element)
        return
    # Whole chunks at a time, where rows of them fit, so that none is read twice.
    chunk = (store.chunk_layout.read_chunk.shape or (1,))[0]
    rows = max(1, _PIECE // row)
    rows = max(rows - rows % chunk, 1) if rows >= chunk else rows
    for begin in range(0, shape[0], rows):
        part = store[begin : min(begin + rows, shape[0])].read().result()
        yield np.ascontiguousarray(part)
