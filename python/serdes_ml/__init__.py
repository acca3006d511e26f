"""State of machine learning that outlives the build that wrote it.

Tensors in a file that an older or a newer build reads, each chunk with a checksum, and verdicts on
whether a model may be loaded, before anyone loads it:

>>> import tempfile, pathlib, numpy as np, serdes_ml as sd
>>> path = pathlib.Path(tempfile.mkdtemp()) / "state.sds"
>>> sd.save_file({"w": np.arange(6.0).reshape(2, 3)}, path, metadata={"step": "7"})
>>> sd.load_file(path)["w"]
array([[0., 1., 2.],
       [3., 4., 5.]])
>>> bool(sd.check(path))
True

What needs numpy is imported when it is first used, so that the command starts at once.
"""

from typing import TYPE_CHECKING, Any

from ._errors import Corrupt, NotFound, SerdesError, TooNew, TooOld, Unsupported, WrongType
from ._native import VERSION as __version__
from ._verdicts import (
    Consumer,
    Reason,
    Verdict,
    Verdicts,
    Versions,
    Warning,
    check,
    check_all,
    diff,
    explain,
    inspect,
    versions,
)

if TYPE_CHECKING:
    from ._connect import (
        ConnectError,
        SessionRefused,
        TokenRefused,
        Unreachable,
        VersionMismatch,
    )
    from ._convert import Conversion, convert
    from ._doctor import Diagnosis, DoesNotFit, doctor
    from ._files import Slice, load, load_file, safe_open, save, save_file
    from ._fits import Fit, FitRow, fits
    from ._mismatches import Mismatch, TreeMismatch

__all__ = [
    "ConnectError",
    "Consumer",
    "Conversion",
    "Corrupt",
    "Diagnosis",
    "DoesNotFit",
    "Fit",
    "FitRow",
    "Mismatch",
    "NotFound",
    "Reason",
    "SerdesError",
    "SessionRefused",
    "Slice",
    "TokenRefused",
    "TooNew",
    "TooOld",
    "TreeMismatch",
    "Unreachable",
    "Unsupported",
    "Verdict",
    "Verdicts",
    "VersionMismatch",
    "Versions",
    "Warning",
    "WrongType",
    "__version__",
    "check",
    "check_all",
    "convert",
    "diff",
    "doctor",
    "explain",
    "fits",
    "inspect",
    "load",
    "load_file",
    "safe_open",
    "save",
    "save_file",
    "versions",
]

_LATER = {
    "_connect": (
        "ConnectError",
        "SessionRefused",
        "TokenRefused",
        "Unreachable",
        "VersionMismatch",
    ),
    "_convert": ("Conversion", "convert"),
    "_doctor": ("Diagnosis", "DoesNotFit", "doctor"),
    "_files": ("Slice", "load", "load_file", "safe_open", "save", "save_file"),
    "_fits": ("Fit", "FitRow", "fits"),
    "_mismatches": ("Mismatch", "TreeMismatch"),
}
_MODULES = {name: module for module, names in _LATER.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
