"""Tensors in a state file: saved, loaded, and read in part."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import EllipsisType, TracebackType
from typing import TYPE_CHECKING, Any, Literal, cast, overload

import numpy as np

from . import _native
from ._arguments import flag, flags, whole
from ._arrays import (
    STRING,
    Array,
    dtype_name,
    dtype_of,
    dtype_of_value,
    framework_of,
    hosted,
    strings_of,
)
from ._errors import wrong_type
from ._paths import Path, place
from ._progress import Progress, listener
from ._state import RESERVED, State
from ._types import Framework, NumPy, Version
from ._words import count, size

if TYPE_CHECKING:
    from ._types import Tensor


def check_text(what: str, text: str) -> None:
    """Raise for a text that has no form in UTF-8: half a pair of surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{what} has no form in UTF-8: {text[:100]!r} ({error.reason})") from None


def metadata_of(
    metadata: Mapping[str, str] | None, own: Mapping[str, str] | None = None
) -> list[tuple[str, str]] | None:
    """Metadata as a state keeps it, with what the package says for itself."""
    if metadata is None and not own:
        return None
    pairs: list[tuple[str, str]] = []
    if not isinstance(cast("object", metadata or {}), Mapping):
        raise wrong_type("metadata", metadata, "texts by texts, or None")
    for key, value in (metadata or {}).items():
        if not isinstance(cast("object", key), str):
            raise wrong_type("a key of the metadata", key, "a text")
        if not isinstance(cast("object", value), str):
            raise wrong_type(f"the metadata {key!r}", value, "a text")
        if key.startswith(RESERVED):
            raise ValueError(f"metadata {key!r}: keys that begin with {RESERVED} are the package's")
        check_text("metadata", key)
        check_text(f"metadata {key!r}", value)
        pairs.append((key, value))
    return pairs + list((own or {}).items())


def version_of(serdes_version: Version) -> Version:
    """A version as the extension takes it."""
    if isinstance(serdes_version, str):
        return serdes_version
    expected = "'current', 'week-4-old', 'minimum', or the number of a version"
    number = whole("serdes_version", serdes_version, expected)
    if not -(2**31) <= number < 2**31:
        raise ValueError(f"serdes_version {number}: there is no such version")
    return number


def given(tensors: Mapping[str, Any]) -> list[tuple[str, str, tuple[int, ...], Any]]:
    """Tensors as the extension takes them."""
    found: list[tuple[str, str, tuple[int, ...], Any]] = []
    if not isinstance(cast("object", tensors), Mapping):
        raise wrong_type("tensors", tensors, "arrays by their names")
    for name, value in tensors.items():
        if not isinstance(cast("object", name), str):
            raise wrong_type("the name of a tensor", name, "a text")
        check_text("the name of a tensor", name)
        array = hosted(name, value)
        if callable(array):
            dtype = dtype_name(name, dtype_of_value(name, value))
            found.append((name, dtype, tuple(value.shape), array))
        elif array.dtype.kind in "OUST":
            found.append((name, STRING, array.shape, strings_of(name, array)))
        else:
            found.append((name, dtype_name(name, array.dtype), array.shape, array))
    return found


def write(
    path: str | None,
    tensors: Mapping[str, Any],
    metadata: list[tuple[str, str]] | None,
    serdes_version: Version,
    sync: bool,
    progress: Progress,
) -> bytes | None:
    """Write a state to a path, or into bytes."""
    version = version_of(serdes_version)
    flags(sync=sync)
    return _native.save(path, given(tensors), metadata, version, sync, None, listener(progress))


def save_file(
    tensors: Mapping[str, Tensor],
    filename: Path,
    metadata: Mapping[str, str] | None = None,
    *,
    serdes_version: Version = "current",
    sync: bool = True,
    progress: Progress = None,
) -> None:
    """Save tensors into the file ``filename``, which appears when all of it is there.

    ``tensors`` are arrays by their names: of numpy, jax or torch, or anything with ``__dlpack__``
    or the buffer protocol. What lies in memory of the processor, row by row, is read where it
    lies. Arrays of ``str`` or ``bytes`` are strings.

    ``serdes_version`` says who is to read it: ``"current"``, ``"week-4-old"`` for builds of four
    weeks ago, ``"minimum"``, or a number of the IFRT SerDes line: the container is then written as
    builds of that number's day read it. ``sync`` takes the file to the
    disk before it gets its name. ``progress`` is True or a callable with the bytes that are done
    and all bytes. Other threads run meanwhile; they must not change the arrays. Ctrl-C stops the
    work, and leaves what was there before.

    >>> import tempfile, pathlib, numpy as np, serdes_ml as sd
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "state.sds"
    >>> sd.save_file({"w": np.ones((2, 2)), "names": np.array(["a", "b"])}, path)
    >>> sorted(sd.load_file(path))
    ['names', 'w']

    Raises:
        TypeError: if a value is no array, or of a type that no state holds.
        OSError: if the file cannot be written; what was there stays.
    """
    path = place(filename)
    write(path, tensors, metadata_of(metadata), serdes_version, sync, progress)


def save(
    tensors: Mapping[str, Tensor],
    metadata: Mapping[str, str] | None = None,
    *,
    serdes_version: Version = "current",
    progress: Progress = None,
) -> bytes:
    """Save tensors into bytes: those of a file of `save_file`.

    >>> import numpy as np, serdes_ml as sd
    >>> sd.load(sd.save({"w": np.arange(3)}))["w"]
    array([0, 1, 2])
    """
    found = write(None, tensors, metadata_of(metadata), serdes_version, False, progress)
    return cast("bytes", found)


@overload
def load_file(
    filename: Path,
    *,
    framework: NumPy = "numpy",
    device: Literal["cpu"] | None = None,
    only: str | Sequence[str] | None = None,
    leaves: Literal[False] | None = None,
    verify: bool = True,
    progress: Progress = None,
) -> dict[str, Array]: ...
@overload
def load_file(
    filename: Path,
    *,
    framework: Framework = "numpy",
    device: Any = None,
    only: str | Sequence[str] | None = None,
    leaves: bool | None = None,
    verify: bool = True,
    progress: Progress = None,
) -> dict[str, Any]: ...
def load_file(
    filename: Path,
    *,
    framework: Framework = "numpy",
    device: Any = None,
    only: str | Sequence[str] | None = None,
    leaves: bool | None = None,
    verify: bool = True,
    progress: Progress = None,
) -> dict[str, Any]:
    """Load the tensors of the state ``filename``, by their names.

    ``framework`` is ``"numpy"``, ``"jax"`` or ``"torch"``; ``device`` is one of it, or None for its
    default. ``only`` are patterns of names (``*``,
    ``?``, ``[a-z]``), as ``["encoder/*"]``. ``verify=False`` takes the bytes as they are, and
    compares no checksums. Arrays own their memory and can be written to; strings come as arrays of
    ``bytes`` objects.

    States of trees may have values that are no tensors: numbers, texts. ``leaves=True`` gives them
    as they are, among the tensors, and ``leaves=False`` leaves them out; without either a
    ``UserWarning`` names those that are left out.

    >>> import tempfile, pathlib, numpy as np, serdes_ml as sd
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "state.sds"
    >>> sd.save_file({"encoder/w": np.ones(2), "decoder/w": np.zeros(2)}, path)
    >>> sd.load_file(path, only=["encoder/*"])
    {'encoder/w': array([1., 1.])}

    Raises:
        NotFound: if there is no such file.
        TooNew, TooOld, Corrupt: if this build must not, or no build can, read it.
        KeyError: if a pattern matches no tensor.
    """
    make = framework_of(framework, device)
    flags(verify=verify)
    state = State.open(filename)
    names, plain = state.select_with(only, leaves)
    return {**_made(make, state.read(names, verify, progress)), **plain}


@overload
def load(
    data: Any,
    *,
    framework: NumPy = "numpy",
    only: str | Sequence[str] | None = None,
    leaves: Literal[False] | None = None,
    verify: bool = True,
    progress: Progress = None,
) -> dict[str, Array]: ...
@overload
def load(
    data: Any,
    *,
    framework: Framework = "numpy",
    only: str | Sequence[str] | None = None,
    leaves: bool | None = None,
    verify: bool = True,
    progress: Progress = None,
) -> dict[str, Any]: ...
def load(
    data: Any,
    *,
    framework: Framework = "numpy",
    only: str | Sequence[str] | None = None,
    leaves: bool | None = None,
    verify: bool = True,
    progress: Progress = None,
) -> dict[str, Any]:
    """Load tensors from bytes, or from whatever has the buffer protocol; see `load_file`.

    >>> import numpy as np, serdes_ml as sd
    >>> data = sd.save({"w": np.arange(3), "b": np.zeros(1)})
    >>> sd.load(data, only="w")
    {'w': array([0, 1, 2])}
    """
    make = framework_of(framework)
    flags(verify=verify)
    state = State.of_bytes(data)
    names, plain = state.select_with(only, leaves)
    return {**_made(make, state.read(names, verify, progress)), **plain}


def _made(make: Any, arrays: dict[str, Array]) -> dict[str, Any]:
    """Arrays of a framework; those that are one array stay one."""
    made: dict[int, Any] = {}
    for name, array in arrays.items():
        if id(array) not in made:
            made[id(array)] = make(name, array)
    return {name: made[id(array)] for name, array in arrays.items()}


_Index = int | slice | EllipsisType


class Slice:
    """A tensor of which parts are read: ``f.get_slice("w")[10:20, :]``.

    Of numbers the chunks are read that the part crosses; strings are read as a whole.

    >>> import tempfile, pathlib, numpy as np, serdes_ml as sd
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "state.sds"
    >>> sd.save_file({"w": np.arange(12).reshape(3, 4)}, path)
    >>> with sd.safe_open(path) as f:
    ...     part = f.get_slice("w")
    ...     part.get_shape(), part[1, ::2], part[..., -1]
    ([3, 4], array([4, 6]), array([ 3,  7, 11]))
    """

    __module__ = "serdes_ml"

    def __init__(
        self, state: State, name: str, make: Callable[[str, Array], Any], verify: bool
    ) -> None:
        self._state, self._name, self._verify = state, name, verify
        self._make = make
        self._dtype, self._shape = state.describe(name)

    def __repr__(self) -> str:
        return f"<slice of {self._name!r}: {self.get_dtype()}{self.get_shape()}>"

    def get_shape(self) -> list[int]:
        """The extent of each dimension."""
        return list(self._shape)

    def get_dtype(self) -> np.dtype[Any]:
        """The numpy type of the elements."""
        return dtype_of(self._name, self._dtype)

    def __getitem__(self, index: _Index | tuple[_Index, ...]) -> Any:
        """The part that the index says, as numpy takes indices: numbers, slices and ``...``.

        Raises:
            IndexError: if the index lies outside, or has too many dimensions.
        """
        origin: list[int] = []
        extent: list[int] = []
        # What is left to do with what was read.
        rest: list[int | slice] = []
        for one, length in zip(self._expanded(index), self._shape, strict=True):
            if isinstance(one, slice):
                steps = range(*one.indices(length))
                low, high = (min(steps), max(steps) + 1) if len(steps) else (0, 0)
                origin.append(low)
                extent.append(high - low)
                rest.append(slice(None, None, steps.step) if len(steps) else slice(0, 0))
            else:
                number = one.__index__()
                if not -length <= number < length:
                    raise IndexError(f"the index {number} lies outside of {length} elements")
                origin.append(number % length)
                extent.append(1)
                rest.append(0)
        part = self._state.read_part(self._name, origin, extent, self._verify)
        if all(isinstance(one, slice) and one.step in (None, 1) for one in rest):
            return self._make(self._name, part)
        found = part[tuple(rest)]
        if part.dtype == object and not isinstance(found, np.ndarray):
            return found
        # Its own memory, and not a view of more than was asked for.
        return self._make(self._name, np.array(found, dtype=part.dtype, order="C"))

    def _expanded(self, index: _Index | tuple[_Index, ...]) -> list[int | slice]:
        given = index if isinstance(index, tuple) else (index,)
        rank = len(self._shape)
        dots = sum(1 for one in given if one is Ellipsis)
        if dots > 1 or len(given) - dots > rank:
            raise IndexError(f"{len(given)} indices for {rank} dimensions of {self._name!r}")
        found: list[int | slice] = []
        for one in given:
            if isinstance(one, EllipsisType):
                found.extend([slice(None)] * (rank - len(given) + 1))
            else:
                found.append(_number_or_slice(one))
        return found + [slice(None)] * (rank - len(found))


def _number_or_slice(index: object) -> int | slice:
    """An index of one dimension; a bool is none, since it means a mask to numpy."""
    if isinstance(index, slice):
        return index
    try:
        if not isinstance(index, (bool, np.bool_)):
            return operator.index(cast("Any", index))
    except TypeError:
        pass
    raise IndexError(f"expected numbers, slices and ..., found {index!r}")


class safe_open:
    """A state whose tensors are read one by one, or in part.

    >>> import tempfile, pathlib, numpy as np, serdes_ml as sd
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "state.sds"
    >>> sd.save_file({"w": np.arange(12).reshape(3, 4)}, path, metadata={"step": "7"})
    >>> with sd.safe_open(path) as f:
    ...     f.keys(), f.metadata(), f.get_shape("w"), f.get_dtype("w")
    ...     f.get_slice("w")[1:, :2]
    (['w'], {'step': '7'}, [3, 4], dtype('int64'))
    array([[4, 5],
           [8, 9]])
    """

    __module__ = "serdes_ml"

    def __init__(
        self,
        filename: Path,
        framework: Framework = "numpy",
        device: Any = None,
        *,
        verify: bool = True,
    ) -> None:
        self._make, self._verify = framework_of(framework, device), flag("verify", verify)
        self._state: State | None = State.open(filename)
        self._name = _native.shown(place(filename))

    def __repr__(self) -> str:
        if self._state is None:
            return f"<closed state {self._name!r}>"
        data = size(self._state.reader.data_bytes())
        tensors = count(len(self), "tensor")
        plain = len(self._state.plain())
        values = f" and {plain} other value{'' if plain == 1 else 's'}" if plain else ""
        return f"<state {self._name!r}: {tensors}{values}, {data}>"

    def _repr_html_(self) -> str:
        from ._html import heading, table

        state = self._state
        if state is None:
            return heading(repr(self))
        rows: list[tuple[object, ...]] = []
        for name in state.names:
            dtype, shape = state.describe(name)
            rows.append((name, dtype, list(shape), state.reader.sharding(state.stored(name))))
        for name, value in state.plain().items():
            rows.append((name, type(value).__name__, repr(value)[:200], ""))
        return heading(repr(self)) + table(("name", "type", "shape", "sharding"), rows)

    def __enter__(self) -> safe_open:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._state = None

    def _open(self) -> State:
        if self._state is None:
            raise ValueError("the state was closed")
        return self._state

    def keys(self) -> list[str]:
        """The names of all tensors, sorted."""
        return list(self._open().names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self._open().names)

    def __contains__(self, name: object) -> bool:
        return name in self._open().names

    def metadata(self) -> dict[str, str]:
        """Words that were saved with the tensors."""
        return dict(self._open().metadata)

    def leaves(self) -> dict[str, Any]:
        """Values of a tree that are no tensors, by their names: numbers and texts.

        >>> import tempfile, pathlib, numpy as np, serdes_ml as sd
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "state.sds"
        >>> sd.save_file({"w": np.ones(2)}, path)
        >>> with sd.safe_open(path) as f:
        ...     f.leaves()
        {}
        """
        return self._open().plain()

    def get_tensor(self, name: str) -> Any:
        """All of a tensor.

        Raises:
            KeyError: if there is none of that name.
        """
        array = self._open().read([name], self._verify, None)[name]
        return self._make(name, array)

    def get_slice(self, name: str) -> Slice:
        """A tensor of which parts are read; see `Slice`."""
        return Slice(self._open(), name, self._make, self._verify)

    def get_shape(self, name: str) -> list[int]:
        """The extent of each dimension."""
        return list(self._open().describe(name)[1])

    def get_dtype(self, name: str) -> np.dtype[Any]:
        """The numpy type of the elements; that of strings is ``object``."""
        return dtype_of(name, self._open().describe(name)[0])
