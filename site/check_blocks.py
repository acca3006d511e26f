"""Runs the code blocks of pages of docs/, in the order in which a reader meets them.

python site/check_blocks.py [PAGE ...]

Each page has a directory of its own in which its blocks run. A block says by its first line what
is done with it:

    ```console                    lines after `$ ` are run by one bash, the others are its output;
                                  `…` stands for any text, and where nothing
                                  is shown, anything may be printed
    ```python title="train.py"    is written into that file (any language)
    ```python                     is compiled
    ```text, ```rust, ```c        are left alone

A comment `<!-- not run: REASON -->` before a block leaves it out, and the reason is printed. The
command `serdes`, and `python` with the packages of the pages, are taken from PATH. Ends with
status 1 if a block did something else than the page says.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
LEFT_ALONE = {"text", "rust", "c", "json", "diff", "dockerfile", ""}
SECONDS = 600


class Block(NamedTuple):
    """A fenced block of a page."""

    line: int
    language: str
    title: str | None
    not_run: str | None
    content: str


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page, in their order."""
    found = []
    lines = page.splitlines()
    number = 0
    while number < len(lines):
        fence = re.match(r"( *)```(\w*)(.*)$", lines[number])
        if fence is None:
            number += 1
            continue
        begin = number
        number += 1
        while number < len(lines) and lines[number].strip() != "```":
            number += 1
        content = "\n".join(line.removeprefix(fence[1]) for line in lines[begin + 1 : number])
        title = re.search(r'title="([^"]+)"', fence[3])
        before = next((line for line in reversed(lines[:begin]) if line.strip()), "")
        reason = re.search(r"<!-- not run: (.*?) -->", before)
        found.append(
            Block(begin + 1, fence[2], title and title[1], reason and reason[1], content + "\n")
        )
        number += 1
    return found


def steps(console: str) -> list[tuple[str, str]]:
    """The commands of a console block, each with what it prints."""
    found: list[tuple[str, list[str]]] = []
    for line in console.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found and line.startswith("> ") and not found[-1][1]:
            found[-1] = (found[-1][0] + "\n" + line[2:], [])
        elif found and found[-1][0].endswith("\\") and not found[-1][1]:
            found[-1] = (found[-1][0] + "\n" + line, [])
        elif found:
            found[-1][1].append(line)
    return [(command, "\n".join(lines)) for command, lines in found]


def is_as_said(said: str, printed: str) -> bool:
    """True if the text is what the page shows, where `…` stands for anything."""
    if not said.strip():
        return True
    pattern = "".join(
        ".*" if part == "…" else re.escape(part) for part in re.split("(…)", said.strip())
    )
    return re.fullmatch(pattern, printed.strip(), re.DOTALL) is not None


class Shell:
    """One bash for all console blocks of a page; it is ended after `SECONDS`."""

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
        """The status of a command, and what it printed."""
        assert self.process.stdin
        assert self.process.stdout
        mark = "--end-of-the-command--"
        # Nothing that a page runs may read what the shell is to run next.
        script = f"{{ {command}\n}} </dev/null\nstatus=$?; echo; echo {mark} $status\n"
        self.process.stdin.write(script)
        self.process.stdin.flush()
        printed = []
        for line in self.process.stdout:
            if line.startswith(mark):
                return int(line.split()[1]), "".join(printed)
            printed.append(line)
        return -1, "".join(printed) + "the shell has ended"

    def kill(self) -> None:
        """Ends the shell, and everything that it started and that still runs."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def end(self) -> None:
        """Ends the shell and waits for it."""
        self.kill()
        self.process.communicate()


def run_page(path: Path) -> list[str]:
    """What blocks of a page do that the page does not say; empty if all is well."""
    name = path.relative_to(ROOT).as_posix()
    wrong = []
    with tempfile.TemporaryDirectory(prefix="serdes-page-") as folder:
        directory = Path(folder)
        shell = Shell(directory)
        timer = threading.Timer(SECONDS, shell.kill)
        timer.start()
        try:
            for block in blocks(path.read_text()):
                at = f"{name}:{block.line}"
                if block.not_run:
                    print(f"skipped: {at}: {block.not_run}")
                elif block.title:
                    (directory / block.title).parent.mkdir(parents=True, exist_ok=True)
                    (directory / block.title).write_text(block.content)
                elif block.language == "console":
                    for command, said in steps(block.content):
                        status, printed = shell.run(command)
                        if status != 0:
                            wrong.append(f"{at}: `{command}` ended with {status}:\n{printed}")
                        elif not is_as_said(said, printed):
                            wrong.append(
                                f"{at}: `{command}` printed:\n{printed}instead of:\n{said}"
                            )
                elif block.language == "python" and block.content.startswith(">>> "):
                    continue  # tests/python/test_pages.py runs them.
                elif block.language == "python":
                    compile(block.content, at, "exec")
                elif block.language not in LEFT_ALONE:
                    wrong.append(
                        f"{at}: nothing runs {block.language!r}: give it a title, or a reason"
                    )
        finally:
            timer.cancel()
            shell.end()
    return wrong


def main(arguments: list[str]) -> int:
    """Runs the pages that are named, or all tutorials and concepts."""
    pages = [Path(argument).resolve() for argument in arguments]
    if not pages:
        pages = sorted(ROOT.glob("docs/tutorials/*.md")) + sorted(ROOT.glob("docs/concepts/*.md"))
    wrong = []
    for page in pages:
        found = run_page(page)
        print(f"{'FAILED' if found else 'ok'}: {page.relative_to(ROOT)}", flush=True)
        wrong += found
    for text in wrong:
        print(f"\n{text}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
