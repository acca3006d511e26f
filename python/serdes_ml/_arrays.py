"""Arrays of every framework as numpy's, and back: which type is which, and where the bytes lie."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable
from typing import Any, cast

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from ._arguments import text
from ._errors import Unsupported, wrong_type

Array = NDArray[Any]
"""A numpy array of any type."""

STRING = "STRING"

# IFRT's names of numpy's types and those of ml_dtypes. A release of ml_dtypes need not have all.
_NUMPY = {
    "PRED": "bool",
    "S8": "int8",
    "S16": "int16",
    "S32": "int32",
    "S64": "int64",
    "U8": "uint8",
    "U16": "uint16",
    "U32": "uint32",
    "U64": "uint64",
    "F16": "float16",
    "F32": "float32",
    "F64": "float64",
    "C64": "complex64",
    "C128": "complex128",
}
_ML_DTYPES = {
    "S1": "int1",
    "S2": "int2",
    "S4": "int4",
    "U1": "uint1",
    "U2": "uint2",
    "U4": "uint4",
    "BF16": "bfloat16",
    "F4E2M1FN": "float4_e2m1fn",
    "F6E2M3FN": "float6_e2m3fn",
    "F6E3M2FN": "float6_e3m2fn",
    "F8E3M4": "float8_e3m4",
    "F8E4M3": "float8_e4m3",
    "F8E4M3B11FNUZ": "float8_e4m3b11fnuz",
    "F8E4M3FN": "float8_e4m3fn",
    "F8E4M3FNUZ": "float8_e4m3fnuz",
    "F8E5M2": "float8_e5m2",
    "F8E5M2FNUZ": "float8_e5m2fnuz",
    "F8E8M0FNU": "float8_e8m0fnu",
}


def imported(framework: str) -> Any:
    """A framework that the package uses where it is installed, and that has no types here."""
    return importlib.import_module(framework)


def _known() -> dict[str, np.dtype[Any]]:
    known = {ours: np.dtype(name) for ours, name in _NUMPY.items()}
    for ours, name in _ML_DTYPES.items():
        if hasattr(ml_dtypes, name):
            known[ours] = np.dtype(getattr(ml_dtypes, name))
    return known


_TO_NUMPY = _known()
_FROM_NUMPY = {dtype: ours for ours, dtype in _TO_NUMPY.items()}


def dtype_of(name: str, dtype: str) -> np.dtype[Any]:
    """The numpy type of a tensor of this type in a state; that of strings is ``object``."""
    if dtype == STRING:
        return np.dtype(object)
    found = _TO_NUMPY.get(dtype)
    if found is None:
        raise Unsupported(
            f"{name!r} holds {dtype}, for which the numpy and ml_dtypes here have no type",
            "unsupported",
            dtype,
            ", ".join(_TO_NUMPY),
            "Install a newer ml_dtypes.",
        )
    return found


def dtype_name(name: str, dtype: np.dtype[Any]) -> str:
    """The name of a numpy type in a state."""
    found = _FROM_NUMPY.get(dtype.newbyteorder("="))
    if found is None:
        raise TypeError(f"{name!r} is an array of {dtype}, which no state holds")
    return found


def to_numpy(name: str, value: object) -> Array:
    """What is given for a tensor as a numpy array: without a copy where it lies in memory of the
    processor, one element behind the other.
    """
    array = _found(name, value)
    if array.dtype.kind in "OUST":
        return array
    dtype_name(name, array.dtype)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    # An exact ndarray, and of the rank that it has.
    return np.asarray(array, order="C")


def _found(name: str, value: object) -> Array:
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(f"{name!r} is a masked array, and a state has no masks; fill it first")
    if isinstance(value, (np.ndarray, np.generic)):
        return np.asarray(value)
    torch, jax = sys.modules.get("torch"), sys.modules.get("jax")
    if torch is not None and isinstance(value, torch.Tensor):
        return from_torch(name, value)
    if jax is not None and isinstance(value, jax.Array):
        return from_jax(name, value)
    if isinstance(value, (bytes, bytearray)):
        return np.frombuffer(value, np.uint8)
    if hasattr(value, "__dlpack__"):
        return cast("Array", np.from_dlpack(cast("Any", value)))
    if hasattr(value, "__array__") or hasattr(value, "__array_interface__"):
        return np.asarray(value)
    try:
        view = memoryview(cast("Any", value))
    except TypeError:
        expected = (
            "an array of numpy, jax or torch, or anything with __dlpack__ or the buffer protocol"
        )
        raise wrong_type(repr(name), value, expected) from None
    return np.asarray(view)


def from_jax(name: str, value: Any) -> Array:
    """A jax.Array of this process as a numpy array."""
    jax = sys.modules["jax"]
    check_alive(name, value)
    if jax.dtypes.issubdtype(value.dtype, jax.dtypes.extended):
        raise TypeError(
            f"{name!r} is an array of {value.dtype}; save jax.random.key_data(...) of it"
        )
    if not value.is_fully_addressable:
        raise ValueError(
            f"{name!r} lies on devices of several processes; serdes_ml.jax.save saves it"
        )
    return np.asarray(value)


def check_alive(name: str, value: Any) -> None:
    """Refuse a jax.Array whose memory is gone, with the name that the tensor was to have."""
    if value.is_deleted():
        raise ValueError(
            f"{name!r} is an array that was deleted, or donated to a function; save it before"
        )


# Types that torch has and numpy itself does not: the same bytes under another name.
_TORCH = {
    "bfloat16": ("int16", "BF16"),
    "float8_e4m3fn": ("uint8", "F8E4M3FN"),
    "float8_e4m3fnuz": ("uint8", "F8E4M3FNUZ"),
    "float8_e5m2": ("uint8", "F8E5M2"),
    "float8_e5m2fnuz": ("uint8", "F8E5M2FNUZ"),
    "float8_e8m0fnu": ("uint8", "F8E8M0FNU"),
}


def from_torch(name: str, value: Any) -> Array:
    """A torch.Tensor as a numpy array; it shares memory where it lies in that of the processor."""
    torch = sys.modules["torch"]
    if value.layout != torch.strided or value.is_quantized:
        raise TypeError(f"{name!r} is a tensor of {value.layout}, quantized or not; make it dense")
    if value.is_meta:
        raise TypeError(f"{name!r} is a tensor on the device meta, where tensors have no data")
    tensor = value.detach().resolve_conj().resolve_neg().cpu().contiguous()
    plain = _TORCH.get(str(tensor.dtype).removeprefix("torch."))
    if plain is None:
        try:
            return cast("Array", tensor.numpy())
        except TypeError:
            raise TypeError(f"{name!r} is of {tensor.dtype}, which no state holds") from None
    same_size, ours = plain
    found: Array = tensor.view(getattr(torch, same_size)).numpy()
    return found.view(dtype_of(name, ours))


def dtype_of_value(name: str, value: Any) -> np.dtype[Any]:
    """The numpy type of an array of any framework, wherever it lies."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        found: np.dtype[Any] = from_torch(name, torch.empty(0, dtype=value.dtype)).dtype
        return found
    return cast("np.dtype[Any]", np.dtype(value.dtype))


def _is_copied(value: Any) -> bool:
    """Whether numbers lie elsewhere than in memory of the processor, or not row by row."""
    torch, jax = sys.modules.get("torch"), sys.modules.get("jax")
    if torch is not None and isinstance(value, torch.Tensor):
        dense = value.layout == torch.strided and not value.is_quantized
        return bool(dense and not (value.device.type == "cpu" and value.is_contiguous()))
    if jax is not None and isinstance(value, jax.Array):
        plain = not jax.dtypes.issubdtype(value.dtype, jax.dtypes.extended)
        on_host = all(device.platform == "cpu" for device in value.devices())
        return bool(plain and value.is_fully_addressable and not on_host)
    if type(value) is np.ndarray and value.dtype.kind not in "OUST":
        return not (value.flags.c_contiguous and value.dtype.isnative)
    return False


def hosted(name: str, value: Any) -> Array | Callable[[], Array]:
    """What is given for a tensor as a numpy array; where that takes a copy, what makes it when its
    turn comes, so that copies of several are not there together.
    """
    jax = sys.modules.get("jax")
    if jax is not None and isinstance(value, jax.Array):
        check_alive(name, value)
    return (lambda: to_numpy(name, value)) if _is_copied(value) else to_numpy(name, value)


def to_torch(name: str, array: Array) -> Any:
    """A numpy array as a torch.Tensor that shares its memory."""
    torch = imported("torch")
    if array.dtype == object:
        raise TypeError(f"{name!r} holds strings, and torch has no tensors of them")
    ours = _FROM_NUMPY[array.dtype]
    for theirs, (same_size, known) in _TORCH.items():
        if known == ours and hasattr(torch, theirs):
            tensor = torch.from_numpy(array.view(same_size))
            return tensor.view(getattr(torch, theirs))
    try:
        return torch.from_numpy(array)
    except TypeError:
        raise TypeError(
            f"{name!r} holds {array.dtype}, for which torch has no type; load it as numpy"
        ) from None


def torch_device(device: Any) -> Any:
    """A device of torch, as ``Tensor.to`` takes it.

    Raises:
        WrongType: if it is none.
    """
    torch = imported("torch")
    try:
        if isinstance(device, bool):
            raise TypeError
        return torch.device(device)
    except TypeError:
        raise wrong_type("device", device, "a torch.device, its name or its number") from None


def to_jax(name: str, array: Array, device: Any = None) -> Any:
    """A numpy array as a jax.Array on a device, or on the default one."""
    jax = imported("jax")
    if array.dtype == object:
        raise TypeError(f"{name!r} holds strings, and jax has no arrays of them")
    made = jax.device_put(array, device)
    if made.dtype != array.dtype:
        warnings.warn(
            f"{name!r} is {array.dtype} in the state, and jax made {made.dtype} of it: values may"
            " differ; set jax_enable_x64, or load it as numpy",
            stacklevel=2,
        )
    return made


_FRAMEWORKS: dict[str, Callable[[str, Array], Any]] = {
    "numpy": lambda _, array: array,
    "np": lambda _, array: array,
    "jax": to_jax,
    "flax": to_jax,
    "torch": to_torch,
    "pt": to_torch,
}


def framework_of(framework: str, device: Any = None) -> Callable[[str, Array], Any]:
    """What makes arrays of a framework out of numpy's, on a device of it; None is its default.

    For torch a device is what ``Tensor.to`` takes, for jax a ``jax.Device`` or the name of a
    platform, and numpy has ``"cpu"``.
    """
    found = _FRAMEWORKS.get(text("framework", framework, "'numpy', 'jax' or 'torch'"))
    if found is None:
        raise ValueError(f"framework {framework!r}: expected numpy, jax or torch")
    if device is None:
        return found
    if found is to_torch:
        target = torch_device(device)
        return lambda name, array: to_torch(name, array).to(target)
    if found is to_jax:
        jax = imported("jax")
        target = jax.devices(device)[0] if isinstance(device, str) else device
        if not isinstance(target, (jax.Device, jax.sharding.Sharding)):
            raise wrong_type("device", device, "a jax.Device, the name of a platform, or None")
        return lambda name, array: to_jax(name, array, target)
    if text("device", device, "'cpu', or None") != "cpu":
        raise ValueError(f"device {device!r}: arrays of numpy lie in memory of the cpu")
    return found


def strings_of(name: str, array: Array) -> list[bytes]:
    """The elements of an array of strings, row by row: texts in UTF-8, bytes as they are."""
    found: list[bytes] = []
    for one in array.ravel().tolist():
        if isinstance(one, str):
            try:
                found.append(one.encode())
            except UnicodeEncodeError as error:
                raise ValueError(
                    f"{name!r} has a text without a form in UTF-8: {one[:100]!r} ({error.reason})"
                ) from None
        elif isinstance(one, bytes):
            found.append(one)
        else:
            raise TypeError(
                f"{name!r} is an array of objects; those of a state are str or bytes, found"
                f" {type(one).__name__}"
            )
    return found


def array_of_strings(strings: list[bytes], shape: tuple[int, ...]) -> Array:
    """Strings as an array of bytes objects."""
    array: Array = np.empty(shape, dtype=object)
    # A view of the same memory, that numpy fills with the very objects.
    array.reshape(-1)[:] = strings
    return array
