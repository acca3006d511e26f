"""Counts what held and what did not, for the scripts of this folder. Knows nothing of what is checked."""

import signal


def hear_signals():
    """Has the script, and what it starts, hear SIGINT and SIGHUP where its parent process ignores them, as `nohup` and a shell's background jobs do:
    what is ignored stays so in every process that is started, what is handled does not."""
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, lambda *_: None)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)


class Checks:
    """The checks of a script. Only those that fail are printed, with their name and what was found."""

    def __init__(self):
        self.passed = self.failed = 0

    def check(self, name, holds, found=""):
        if holds:
            self.passed += 1
        else:
            self.failed += 1
            print(": ".join([f"FAILED {name}", *filter(None, [str(found)])]), flush=True)

    def end(self):
        """Says how many passed and failed; the status to end with, zero if nothing failed."""
        print(f"{self.passed} passed, {self.failed} failed", flush=True)
        return 1 if self.failed else 0
