"""Generates pages from the sources, and rewrites links that leave docs/.

mkdocs calls the functions `on_*`. They add to the pages of docs/ the project's pages at the root
(SECURITY.md and others), the options of the command (from the texts that its tests compare), a page
for each rule, the messages of errors (from the sources), and the tables of releases (from the
command itself, whose path is in SERDES).
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

# mkdocs loads this file by its path, so modules in the same folder are not on the module path.
sys.path.insert(0, str(Path(__file__).parent))
import messages
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
REPOSITORY = "https://github.com/serdes/serdes"
PROJECT = {
    "SECURITY.md": "project/security.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "RELEASING.md": "project/releasing.md",
    "CHANGELOG.md": "project/changelog.md",
}
HEADS = {"Example": "**Example.** ", "Remedy": "**What to do.** "}
LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#)([^)\s#]+)(#[^)\s]*)?(?=\))")


def commands() -> str:
    """Returns the page of all options: the help text of each command, under its name."""
    lines = [
        "# All options",
        "",
        "The text that each command prints with `--help`. [The command](../cli.md) explains what",
        "they mean together: exit status, kinds of files, objects of `--json`.",
        "",
    ]
    folder = ROOT / "crates/cli/tests/help"
    for path in sorted(folder.glob("*.txt"), key=lambda path: path.stem):
        lines += [
            f"## {path.stem.replace('-', ' ')}",
            "",
            "```text",
            path.read_text().rstrip(),
            "```",
            "",
        ]
    return "\n".join(lines)


def command() -> str:
    """Returns the path of the command that prints the tables and explanations."""
    return os.environ.get("SERDES", str(ROOT / "target/debug/serdes"))


def asked(*arguments: str) -> str:
    """Returns the output of the command."""
    run = subprocess.run([command(), *arguments], check=True, capture_output=True, text=True)
    return run.stdout


def explained(name: str, index: str) -> str:
    """Returns the page of one rule or behaviour, with the text of `serdes explain`."""
    found = json.loads(asked("explain", name, "--json"))
    lines = [f"# {name}", ""]
    kinds = {
        "does_not_fit": "The packages do not fit one another. Exit status 1.",
        "warning": "A warning. `--strict` makes a problem of it.",
        "required": "Required: a `fail` counts. `unsupported`, where a plug-in does not have or"
        " does not implement the function, is no failure.",
        "robust": "A `fail` counts with `--level robust` alone: no host gives such input.",
    }
    lines += [kinds[found.get("verdict") or found["class"]], ""]
    for key, title in (
        ("meaning", ""),
        ("demand", "A plug-in has it if "),
        ("example", "**Example.** "),
        ("written", "**Written in** "),
        ("remedy", "**What to do.** "),
    ):
        if text := found.get(key):
            text = text[0].upper() + text[1:] if key == "remedy" else text
            lines += [title + messages.sentence(text), ""]
    lines += [f"`serdes explain {name}` prints the same. {index}", ""]
    return "\n".join(lines)


def behaviours() -> dict[str, str]:
    """Returns a page for each behaviour that the conformance suites try, and a list of them."""
    lines = [
        "# Behaviours of plug-ins",
        "",
        "What `serdes plugin verify` tries, a page each. A failure names the behaviour that the",
        "plug-in lacks; the page says what it demands, where that is written, and how to mend it.",
    ]
    pages = {}
    suites = {"pjrt:": "PJRT plug-ins", "": "StreamExecutor plug-ins"}
    for suite, title in suites.items():
        lines += [
            "",
            f"## {title}",
            "",
            "| behaviour | level | a plug-in has it if |",
            "|---|---|---|",
        ]
        given = ["plugin", "verify", "--list", *([suite] if suite else [])]
        for row in asked(*given).splitlines():
            name, level, text = row.split(None, 2)
            lines.append(f"| [`{name}`](../behaviours/{name}.md) | {level} | {text} |")
            index = "[All behaviours](../reference/behaviours.md)"
            pages[f"behaviours/{name}.md"] = explained(name, index)
    pages["reference/behaviours.md"] = "\n".join(lines) + "\n"
    return pages


def rules_of_environments() -> dict[str, str]:
    """Returns a page for each rule of `serdes doctor`, which docs/doctor.md lists."""
    rows = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs/doctor.md").read_text(), re.MULTILINE)
    index = "[All rules of environments](../doctor.md#rules)"
    return {f"rules/{name}.md": explained(name, index) for name in rows}


def rules() -> dict[str, str]:
    """Returns a page for each rule, from its section of docs/rules.md."""
    sections = re.split(r"^## ", (ROOT / "docs/rules.md").read_text(), flags=re.MULTILINE)[1:]
    pages = {}
    for section in sections:
        name, _, text = section.partition("\n")
        text, *said = re.split(r"^- Message: ", text.strip(), flags=re.MULTILINE)
        text = re.sub(r"^- (Example|Remedy): ", lambda match: HEADS[match[1]], text, flags=re.M)
        lines = [f"# {name.strip()}", "", text.replace("\n**", "\n\n**").strip(), ""]
        if said:
            lines += ["The messages follow, with `…` for what differs.", ""]
        for message in said:
            shown = messages.plain(" ".join(message.split()).strip('"'))
            lines += [f"## {messages.escaped(shown)}", ""]
        lines += ["[All rules](../rules.md)", ""]
        pages[f"rules/{name.strip()}.md"] = "\n".join(lines)
    return pages


def matrix() -> str:
    """Returns the tables of releases, as the command prints them."""
    tables = asked("matrix", "--format", "markdown")
    return (
        "# Releases\n\nThe tables by which `check`, `plugin check --for` and `doctor` judge. They"
        " are read out of the published wheels; `serdes matrix` prints them.\n\n" + tables
    )


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages that are generated from the sources."""
    pages = {
        "reference/command.md": commands(),
        "reference/matrix.md": matrix(),
        **messages.pages(ROOT),
        **behaviours(),
        **rules_of_environments(),
        **rules(),
    }
    for source, page in PROJECT.items():
        pages[page] = (ROOT / source).read_text()
    for name in ("site.css", "search.js"):
        pages[name] = (ROOT / "site" / name).read_text()
    for path, content in pages.items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, page, config: MkDocsConfig, files: Files) -> str:
    """Points links to files that are not pages at the repository."""
    source = page.file.src_uri
    if source == "rules.md":
        markdown = re.sub(r"\]\(#(\w+)\)", r"](rules/\1.md)", markdown)
    if source == "doctor.md":
        markdown = re.sub(
            r"^\| `(\w+)` \|", r"| [`\1`](rules/\1.md) |", markdown, flags=re.MULTILINE
        )
    at_root = {page: source for source, page in PROJECT.items()}
    origin = ROOT / at_root[source] if source in at_root else ROOT / "docs" / source
    folder = Path(source).parent
    generated = source.startswith(("rules/", "reference/", "messages/", "behaviours/"))

    def target(match: re.Match[str]) -> str:
        path, anchor = match[1], match[2] or ""
        if generated:
            return match[0]
        file = (origin.parent / path).resolve()
        if not file.is_relative_to(ROOT):
            return match[0]
        name = file.relative_to(ROOT).as_posix()
        page_of = PROJECT.get(name) or (name[5:] if name.startswith("docs/") else None)
        if page_of and files.get_file_from_path(page_of):
            return os.path.relpath(page_of, folder) + anchor
        if not file.exists():
            return match[0]
        kind = "tree" if file.is_dir() else "blob"
        return f"{REPOSITORY}/{kind}/main/{name}{anchor}"

    # The word after the language of a block is the file to which it belongs.
    markdown = re.sub(r"^( *```\w+) +([^\n={}]+)$", r'\1 title="\2"', markdown, flags=re.MULTILINE)
    return LINK.sub(target, markdown)
