"""Runs the code blocks of the pages, in the order in which a reader meets them.

python site/check_blocks.py [PAGE ...]

Without arguments it runs the pages of docs/ and of the root. Each page has a directory of its own
in which its blocks run, one shell for its commands and one interpreter for its Python. The first
line of a block determines how it is run:

    ```console                    lines after `$ ` are run by one bash, the others are its output;
                                  `…` stands for any text, and a command without
                                  output in the page may print anything
    ```sh                         is run by the same bash, whole
    ```python title="train.py"    is written into that file (any language)
    ```python                     is run by the page's interpreter; if it begins with `>>> `, as a
                                  doctest
    ```json, ```toml, ```yaml     is parsed
    ```c                          is compiled, with the headers of include/
    ```text                       is no code

`pages.py` describes the marks of blocks that are run differently. Blocks of any other language need
a mark. The command `serdes`, and `python` with the packages of the pages, are taken from PATH. The
status is 1 if a block did not behave as the page says, or if nothing ran it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import tomllib
from pages import Block, blocks, is_as_said, steps
from shells import Interpreter, Shell

ROOT = Path(__file__).resolve().parent.parent
AT_ROOT = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "RELEASING.md", "CODE_OF_CONDUCT.md")
SECONDS = 600
LONGEST = 4000


class Wrong(Exception):
    """A block that does not behave as its page says."""


class Running:
    """A page whose blocks are being run."""

    def __init__(self, page: Path, directory: Path) -> None:
        self.page, self.directory = page, directory
        self.shell = Shell(directory)
        self.interpreter: Interpreter | None = None

    def end(self) -> None:
        """Ends everything that the page has started."""
        self.shell.end()
        if self.interpreter:
            self.interpreter.end()

    def kill(self) -> None:
        """Kills everything at once, so that code that waits for it continues."""
        self.shell.kill()
        if self.interpreter:
            self.interpreter.kill()

    def run(self, block: Block) -> str:
        """Runs a block as its marks or language say; returns the word under which it counts."""
        if reason := block.marks.get("not run"):
            print(f"not run: {self.page.name}:{block.line}: {reason}")
            return "not run, with a reason"
        if paths := block.marks.get("run by"):
            self.is_run_by(block, paths.split(", "))
            return "run by another test"
        if path := block.marks.get("part of"):
            self.is_part_of(block, path)
            return "part of a source"
        if block.title:
            file = self.directory / block.title
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.content)
            return "written into a file"
        if block.language == "text":
            return "no code"
        run = getattr(self, f"run_{block.language}", None)
        if run is None:
            raise Wrong(f"nothing runs {block.language!r}: give it a title, or a mark")
        run(block)
        return "run" if block.language in {"console", "sh", "python"} else "parsed or compiled"

    def is_run_by(self, block: Block, paths: list[str]) -> None:
        """Checks that a test is about the page of a block, or about its section."""
        page = self.page.relative_to(ROOT).as_posix()
        names = [f'"{page}"', f'"{self.page.name}"', f'"{self.page.stem}"', f"{page}`"]
        names += [f'"{block.section}"', f"## {block.section}\\n"]
        texts = [(ROOT / path).read_text() for path in paths]
        if not any(name in text for name in names for text in texts):
            raise Wrong(f"{paths} do not name the page, nor the section {block.section!r}")

    def is_part_of(self, block: Block, path: str) -> None:
        """Compares a block with the lines of a file."""

        def lines(text: str) -> str:
            return "\n".join(" ".join(line.split()) for line in text.splitlines() if line.strip())

        if lines(block.content) not in lines((ROOT / path).read_text()):
            raise Wrong(f"{path} does not have these lines")

    def run_console(self, block: Block) -> None:
        """Runs commands, and compares their output with the page."""
        for line in block.marks.get("first", "").splitlines():
            self.command(line.removeprefix("$ "), "", 0)
        if text := block.marks.get("until"):
            self.in_background(block, text)
            return
        commands = steps(block.content)
        expected = int(block.marks.get("status", "0"))
        for number, (command, said) in enumerate(commands):
            self.command(command, said, expected if number + 1 == len(commands) else 0)

    def command(self, command: str, said: str, expected: int) -> None:
        """Runs one command."""
        status, printed = self.shell.run(command)
        if status != expected:
            raise Wrong(f"`{command}` ended with {status}:\n{printed}")
        if not is_as_said(said, printed):
            raise Wrong(f"`{command}` printed:\n{printed}instead of:\n{said}")

    def in_background(self, block: Block, text: str) -> None:
        """Runs the last command of a block in the background, until it has printed `text`."""
        *before, (last, said) = steps(block.content)
        for command, shown in before:
            self.command(command, shown, 0)
        log = self.directory / f".background-{block.line}"
        self.shell.run(f"{{ exec {last}\n}} > {log.name} 2>&1 &")
        end = time.monotonic() + 60
        while text not in (printed := log.read_text() if log.exists() else ""):
            if time.monotonic() > end:
                raise Wrong(f"`{last}` printed no {text!r} in a minute:\n{printed}")
            time.sleep(0.05)
        if not is_as_said(said + "…", printed):
            raise Wrong(f"`{last}` printed:\n{printed}instead of:\n{said}")

    def run_sh(self, block: Block) -> None:
        """Runs a script in the shell of the page."""
        for line in block.marks.get("first", "").splitlines():
            self.command(line.removeprefix("$ "), "", 0)
        self.command(f"(set -e\n{block.content})", "", int(block.marks.get("status", "0")))

    def run_python(self, block: Block) -> None:
        """Runs a block in the interpreter of the page."""
        content = block.marks.get("within", "BLOCK").replace("BLOCK", block.content)
        if self.interpreter is None:
            self.interpreter = Interpreter(self.directory)
        if error := self.interpreter.run(block.marks.get("first", "") + "\n" + content):
            raise Wrong(error)

    def run_json(self, block: Block) -> None:
        """Parses a block."""
        try:
            json.loads(block.content)
        except ValueError as error:
            raise Wrong(str(error)) from None

    def run_toml(self, block: Block) -> None:
        """Parses a block."""
        try:
            tomllib.loads(block.content)
        except ValueError as error:
            raise Wrong(str(error)) from None

    def run_yaml(self, block: Block) -> None:
        """Parses a block."""
        import yaml

        try:
            yaml.safe_load(block.content)
        except yaml.YAMLError as error:
            raise Wrong(str(error)) from None

    def run_c(self, block: Block) -> None:
        """Compiles a block."""
        source = block.marks.get("within", "BLOCK").replace("BLOCK", block.content)
        command = ["cc", "-fsyntax-only", "-Wall", "-Werror", f"-I{ROOT / 'include'}", "-xc", "-"]
        compiled = subprocess.run(command, input=source, capture_output=True, text=True)
        if compiled.returncode:
            raise Wrong(compiled.stderr)


def run_page(path: Path, counts: Counter[str]) -> list[str]:
    """Runs a page; returns the failures of its blocks."""
    wrong = []
    name = path.relative_to(ROOT).as_posix()
    with tempfile.TemporaryDirectory(prefix="serdes-page-") as folder:
        running = Running(path, Path(folder))
        timer = threading.Timer(SECONDS, running.kill)
        timer.start()
        try:
            for block in blocks(path.read_text()):
                try:
                    counts[running.run(block)] += 1
                except (Wrong, OSError) as error:
                    wrong.append(f"{name}:{block.line}: {error}")
        finally:
            timer.cancel()
            running.end()
    return wrong


def main(arguments: list[str]) -> int:
    """Runs the named pages, or all of them."""
    pages = [Path(argument).resolve() for argument in arguments]
    if not pages:
        pages = [*sorted(ROOT.glob("docs/**/*.md")), *(ROOT / name for name in AT_ROOT)]
    wrong: list[str] = []
    counts: Counter[str] = Counter()
    for page in pages:
        begin = time.monotonic()
        found = run_page(page, counts)
        took = time.monotonic() - begin
        print(f"{'FAILED' if found else 'ok'}: {page.relative_to(ROOT)} ({took:.1f} s)", flush=True)
        wrong += found
    for text in wrong:
        print(f"\n{text[:LONGEST]}")
    rows = ", ".join(f"{count} {word}" for word, count in counts.most_common())
    print(f"{len(pages)} pages; blocks: {rows}, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
