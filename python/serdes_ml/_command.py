"""The command ``serdes``, which the package installs."""

from __future__ import annotations

import signal
import sys

from . import _native

# How the command starts itself again: not as a script, whose folder would come before all others
# in the search for modules, and not with the working directory in it.
AGAIN = (
    "import sys; sys.path = [p for p in sys.path if p]; from serdes_ml._command import main; main()"
)


def main() -> None:
    """Run the command on the arguments of the process, and end it with the command's status."""
    # Python turns Ctrl-C into an exception of its own; the command listens itself, and a signal
    # that was ignored when the process began stays so.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_native.command([sys.executable, "-c", AGAIN], sys.argv[1:]))
