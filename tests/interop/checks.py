"""Counts what held and what did not, for the scripts of this folder. Knows nothing of what is checked."""


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
