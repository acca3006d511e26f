"""Reads the code blocks of a page, with the marks that say how each is run.

A mark is an HTML comment before a block, which the rendered page does not show:

    <!-- not run: REASON -->          the block is skipped; the reason is printed and counted
    <!-- run by PATH, PATH -->        a test of the repository runs it: the file quotes the heading
                                      of the block's section, the page's path, or its name
    <!-- part of PATH -->             the file has these consecutive lines
    <!-- until: TEXT -->              the command runs in the background; the page continues when
                                      it has printed TEXT
    <!-- status N -->                 the last command ends with this status
    <!-- first:                       lines that run before the block, in its shell or interpreter
    LINES -->
    <!-- within:                      code to compile or run: the line BLOCK stands for the block
    LINES -->

`<!-- all run by PATH -->` at the head of a page applies to each of its blocks without another mark;
`<!-- read TEXT as TEXT -->` replaces a text in all blocks: a port, or a path of another machine.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

MARK = re.compile(
    r"<!-- (not run|run by|part of|until|status|first|within):?\s(.*?)\s*-->\s*\Z", re.DOTALL
)
OF_THE_PAGE = re.compile(r"^<!-- (all run by|read) (.*?) -->$", re.MULTILINE)


@dataclass
class Block:
    """A fenced block of a page."""

    line: int
    language: str
    title: str | None
    content: str
    section: str
    marks: dict[str, str] = field(default_factory=dict)


def marks_before(text: str) -> dict[str, str]:
    """Returns the marks at the end of a text."""
    found: dict[str, str] = {}
    while mark := MARK.search(text[max(0, text.rfind("<!-- ")) :]):
        found.setdefault(mark[1], mark[2])
        text = text[: text.rfind("<!-- ")].rstrip()
    return found


def blocks(page: str) -> list[Block]:
    """Returns the fenced blocks of a page, in order."""
    of_page = OF_THE_PAGE.findall(page)
    found: list[Block] = []
    lines = page.splitlines()
    number, section, behind = 0, "", 0
    while number < len(lines):
        if heading := re.match(r"##+ (.*)", lines[number]):
            section = heading[1]
        fence = re.match(r"( *)```(\w*)(.*)$", lines[number])
        if fence is None:
            number += 1
            continue
        begin = number
        number += 1
        while number < len(lines) and lines[number].strip() != "```":
            number += 1
        content = "\n".join(line.removeprefix(fence[1]) for line in lines[begin + 1 : number])
        marks = marks_before("\n".join(lines[behind:begin]).rstrip())
        for kind, value in of_page:
            if kind == "all run by" and not marks:
                marks["run by"] = value
            elif kind == "read" and " as " in value:
                one, other = value.split(" as ", 1)
                content = content.replace(one, other)
        title = re.search(r'title="([^"]+)"', fence[3])
        found.append(Block(begin + 1, fence[2], title and title[1], content + "\n", section, marks))
        number += 1
        behind = number
    return found


def steps(console: str) -> list[tuple[str, str]]:
    """Returns the commands of a console block, each with its output."""
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
    """Returns True if a text is what the page shows, where `…` stands for any text."""
    if not said.strip():
        return True

    def plain(text: str) -> str:
        return "\n".join(line.rstrip() for line in text.strip().splitlines())

    pattern = "".join(
        ".*" if part == "…" else re.escape(part) for part in re.split("(…)", plain(said))
    )
    return re.fullmatch(pattern, plain(printed), re.DOTALL) is not None
