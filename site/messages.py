"""The messages of errors, read out of the sources: what each says, and what its author says of it.

A variant of an error type has its message in `#[error("…")]`, and its doc comment says when it
comes. The command's own messages are the texts that it gives to `Failure::new`, those of the Python
package what it raises.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import NamedTuple

DOCUMENTED = re.compile(
    r"((?:^ *///[^\n]*\n)+)(?: *#\[(?!error)[^\n]*\n)*"
    r' *#\[error\(\s*"((?:[^"\\]|\\.)*)"[^\n]*(?:\n(?! *(?:///|\w+ ?[,({]))[^\n]*)*\n'
    r"(?: *#\[[^\n]*\n)* *(?:pub (?:struct|enum) )?(\w+)",
    re.MULTILINE | re.DOTALL,
)
FAILURE = re.compile(r'Failure::new\(\s*(?:format_args!\(\s*)?"((?:[^"\\]|\\.)*)"', re.DOTALL)


class Message(NamedTuple):
    """A message with `{}` around what differs, and when it comes."""

    text: str
    meaning: str


def plain(literal: str) -> str:
    """The text of a string literal of Rust."""
    joined = re.sub(r"\\\n\s*", "", literal)
    joined = joined.replace('\\"', '"').replace("\\n", " ").replace("\\\\", "\\")
    return re.sub(r"\{(\w*)[^}]*\}", r"{\1}", " ".join(joined.split()))


def documentation(comment: str) -> str:
    """The first paragraph of a doc comment, without links."""
    lines = [line.strip().removeprefix("///").strip() for line in comment.strip().splitlines()]
    paragraph = " ".join("\n".join(lines).split("\n\n")[0].split())
    return re.sub(r"\[(`?[^\]]+`?)\](?:\([^)]*\)|\[[^\]]*\])?", r"\1", paragraph)


def messages(root: Path) -> dict[str, list[Message]]:
    """The messages of each crate, by the folder of its sources."""
    found: dict[str, list[Message]] = {}
    for folder in [root / "src", *sorted((root / "crates").glob("*/src"))]:
        if folder.parent.name in {"xtask", "testkit"}:
            continue
        rows: set[Message] = set()
        for path in sorted(folder.rglob("*.rs")):
            source = path.read_text()
            for comment, text, _ in DOCUMENTED.findall(source):
                if len(plain(text)) > 12:
                    rows.add(Message(plain(text), documentation(comment)))
            if folder.parent.name == "cli":
                rows.update(Message(plain(text), "") for text in FAILURE.findall(source))
        if rows:
            found[folder.relative_to(root).as_posix()] = sorted(rows)
    return found


def python_messages(root: Path) -> list[tuple[str, str]]:
    """The messages of the Python package, each with the class of its exception."""
    found: set[tuple[str, str]] = set()
    for path in sorted((root / "python/serdes_ml").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not (isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)):
                continue
            raised, given = ast.unparse(node.exc.func), [*node.exc.args[:1]]
            for part in given:
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    found.add((part.value, raised))
                elif isinstance(part, ast.JoinedStr):
                    pieces = (
                        piece.value if isinstance(piece, ast.Constant) else "{}"
                        for piece in part.values
                    )
                    found.add(("".join(map(str, pieces)), raised))
    return sorted(found)


def page(root: Path) -> str:
    """The page of all messages."""
    lines = [
        "# Messages",
        "",
        "The messages of errors, with `{}` around what differs. What to do stands behind the",
        "semicolon of a message; the second column says when it comes.",
        "",
    ]

    def cell(text: str) -> str:
        return re.sub(r"([|<>\\*_`])", r"\\\1", text)

    for crate, rows in messages(root).items():
        name = "serdes" if crate == "src" else f"serdes-{Path(crate).parent.name}"
        lines += [f"## {name}", "", "| message | when |", "|---|---|"]
        lines += [f"| {cell(row.text)} | {cell(row.meaning)} |" for row in rows]
        lines.append("")
    lines += ["## serdes_ml", "", "| message | exception |", "|---|---|"]
    lines += [f"| {cell(text)} | `{raised}` |" for text, raised in python_messages(root)]
    return "\n".join(lines)
