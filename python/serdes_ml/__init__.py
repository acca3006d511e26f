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
    from ._convert import Conversion, convert
    from ._doctor import Diagnosis, DoesNotFit, doctor
    from ._files import Slice, load, load_file, safe_open, save, save_file

__all__ = [
    "Consumer",
    "Conversion",
    "Corrupt",
    "Diagnosis",
    "DoesNotFit",
    "NotFound",
    "Reason",
    "SerdesError",
    "Slice",
    "TooNew",
    "TooOld",
    "Unsupported",
    "Verdict",
    "Verdicts",
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
    "inspect",
    "load",
    "load_file",
    "safe_open",
    "save",
    "save_file",
    "versions",
]

_OF_FILES = ("Slice", "load", "load_file", "safe_open", "save", "save_file")
_OF_CONVERT = ("Conversion", "convert")
_OF_DOCTOR = ("Diagnosis", "DoesNotFit", "doctor")


def __getattr__(name: str) -> Any:
    if name in _OF_FILES:
        from . import _files

        found = getattr(_files, name)
        globals()[name] = found
        return found
    if name in _OF_CONVERT:
        from . import _convert

        found = getattr(_convert, name)
        globals()[name] = found
        return found
    if name in _OF_DOCTOR:
        from . import _doctor

        found = getattr(_doctor, name)
        globals()[name] = found
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
