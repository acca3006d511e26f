"""Pages that are made from the sources, and links that leave docs/.

mkdocs calls the functions `on_*`. To the pages of docs/ are added those of the project at the root
(SECURITY.md and others), the options of the command (from the texts that its tests compare), a page
for each rule, the messages of errors (from the sources), and the tables of releases (from the
command itself, which SERDES names).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

# mkdocs loads this file by its path; what stands beside it is not on the path of modules.
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
LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#)([^)\s#]+)(#[^)\s]*)?(?=\))")


def commands() -> str:
    """The page of all options: the help text of each command, under its name."""
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


def rules() -> dict[str, str]:
    """A page for each rule, cut out of docs/rules.md."""
    sections = re.split(r"^## ", (ROOT / "docs/rules.md").read_text(), flags=re.MULTILINE)[1:]
    pages = {}
    for section in sections:
        name, _, text = section.partition("\n")
        pages[f"rules/{name.strip()}.md"] = (
            f"# {name.strip()}\n\n{text.strip()}\n\n[All rules](../rules.md)\n"
        )
    return pages


def matrix() -> str:
    """The tables of releases, as the command prints them."""
    command = os.environ.get("SERDES", str(ROOT / "target/debug/serdes"))
    tables = subprocess.run(
        [command, "matrix", "--format", "markdown"], check=True, capture_output=True, text=True
    ).stdout
    return (
        "# Releases\n\nThe tables by which `check`, `plugin check --for` and `doctor` judge. They"
        " are read out of the published wheels; `serdes matrix` prints them.\n\n" + tables
    )


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages that are made from the sources."""
    pages = {
        "reference/command.md": commands(),
        "reference/matrix.md": matrix(),
        "reference/messages.md": messages.page(ROOT),
        **rules(),
    }
    for source, page in PROJECT.items():
        pages[page] = (ROOT / source).read_text()
    pages["site.css"] = (ROOT / "site/site.css").read_text()
    for path, content in pages.items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, page, config: MkDocsConfig, files: Files) -> str:
    """Leads links to files of the repository that are no pages to the repository."""
    source = page.file.src_uri
    if source == "rules.md":
        markdown = re.sub(r"\]\(#(\w+)\)", r"](rules/\1.md)", markdown)
    at_root = {page: source for source, page in PROJECT.items()}
    origin = ROOT / at_root[source] if source in at_root else ROOT / "docs" / source
    folder = Path(source).parent
    generated = source.startswith("rules/") or source.startswith("reference/")

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

    # What stands behind the language of a block is the file that it belongs into.
    markdown = re.sub(r"^( *```\w+) +([^\n={}]+)$", r'\1 title="\2"', markdown, flags=re.MULTILINE)
    return LINK.sub(target, markdown)
