"""The shell and the Python interpreter in which the blocks of one page run."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from pathlib import Path

MARK = "--end-of-the-command--"

# Runs programs one after the other in one namespace, and answers each with a line of JSON.
DRIVER = """
import contextlib, doctest, io, json, sys, traceback
names, answers = {"__name__": "__main__"}, sys.stdout
sys.stdout = sys.stderr
for line in sys.stdin:
    source, error = json.loads(line), ""
    try:
        if source.lstrip().startswith(">>> "):
            test = doctest.DocTestParser().get_doctest(source, names, "page", None, 0)
            runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
            said = io.StringIO()
            if runner.run(test, out=said.write, clear_globs=False).failed:
                error = said.getvalue()
            names.update(test.globs)
        else:
            exec(compile(source, "page", "exec"), names)
    except BaseException:
        error = traceback.format_exc()
    print(json.dumps(error), file=answers, flush=True)
"""


class Shell:
    """One bash for all commands of a page."""

    def __init__(self, directory: Path) -> None:
        self.process = subprocess.Popen(
            ["bash", "--norc"],
            cwd=directory,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, command: str) -> tuple[int, str]:
        """Runs a command; returns its status and its output."""
        assert self.process.stdin
        assert self.process.stdout
        # A command of a page must not read the shell's next commands from its input.
        script = f"{{ {command}\n}} </dev/null\nstatus=$?; echo; echo {MARK} $status\n"
        try:
            self.process.stdin.write(script)
            self.process.stdin.flush()
        except BrokenPipeError:
            return -1, "the shell has ended"
        printed = []
        for line in self.process.stdout:
            if line.startswith(MARK):
                return int(line.split()[1]), "".join(printed)
            printed.append(line)
        return -1, "".join(printed) + "the shell has ended"

    def kill(self) -> None:
        """Kills the shell, and all its processes that still run."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def end(self) -> None:
        """Ends the shell and waits for it."""
        self.kill()
        with contextlib.suppress(BrokenPipeError):
            self.process.communicate()


class Interpreter:
    """One Python for all blocks of a page without a file of their own."""

    def __init__(self, directory: Path) -> None:
        self.process = subprocess.Popen(
            ["python", "-c", DRIVER],
            cwd=directory,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"},
            start_new_session=True,
        )

    def run(self, source: str) -> str:
        """Runs a program; returns the error with which it ended, or an empty text."""
        assert self.process.stdin
        assert self.process.stdout
        try:
            self.process.stdin.write(json.dumps(source) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return "the interpreter has ended"
        answer = self.process.stdout.readline()
        return json.loads(answer) if answer else "the interpreter has ended"

    def kill(self) -> None:
        """Kills the interpreter, and all its processes that still run."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def end(self) -> None:
        """Ends the interpreter and waits for it."""
        self.kill()
        with contextlib.suppress(BrokenPipeError):
            self.process.communicate()
