"""Types of arguments, as narrow as what is taken."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

Version: TypeAlias = Literal["current", "week-4-old", "minimum"] | int
"""Who is to read a state: a word for both lines, or a number of the IFRT SerDes line."""

NumPy: TypeAlias = Literal["numpy", "np"]
"""Names of NumPy."""

Framework: TypeAlias = Literal["numpy", "np", "jax", "flax", "torch", "pt"]
"""Names of frameworks whose arrays are loaded."""


class SupportsArray(Protocol):
    """Anything that makes an array of NumPy of itself."""

    def __array__(self) -> NDArray[Any]: ...


class SupportsArrayInterface(Protocol):
    """Anything that says where its elements lie."""

    @property
    def __array_interface__(self) -> dict[str, Any]: ...


class SupportsDLPack(Protocol):
    """Anything that hands its elements on by DLPack."""

    def __dlpack__(self) -> Any: ...


if TYPE_CHECKING:
    Tensor: TypeAlias = (
        NDArray[Any]
        | np.generic
        | SupportsArray
        | SupportsArrayInterface
        | SupportsDLPack
        | ReadableBuffer
    )
    """What is saved as a tensor: an array of any framework, or memory."""
