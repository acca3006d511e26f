"""Counts passed and failed checks for the scripts of this folder. Does not depend on what is checked."""

import signal


def hear_signals():
    """Makes the script and its child processes receive SIGINT and SIGHUP even if its parent ignores them, as `nohup` and a shell's background
    jobs do: child processes inherit ignored signals, but not handlers."""
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, lambda *_: None)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)


class Checks:
    """The checks of a script. Only failures are printed, with their name and what was found."""

    def __init__(self):
        self.passed = self.failed = 0

    def check(self, name, holds, found=""):
        if holds:
            self.passed += 1
        else:
            self.failed += 1
            print(": ".join([f"FAILED {name}", *filter(None, [str(found)])]), flush=True)

    def end(self):
        """Prints how many passed and failed; returns the exit status, zero if nothing failed."""
        print(f"{self.passed} passed, {self.failed} failed", flush=True)
        return 1 if self.failed else 0
