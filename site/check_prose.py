"""Checks the length and words of sentences on introductory pages.

python site/check_prose.py [PAGE ...]

Without arguments it reads the tutorials, the concepts, the how-to pages, the first page and
README.md. No sentence may have more than 30 words or use a word that only insiders know, and lines
are wrapped at 100 columns. Code, tables and comments are not read. Exits with status 1 for a fault.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = (
    "docs/tutorials/*.md",
    "docs/concepts/*.md",
    "docs/how-to/*.md",
    "docs/index.md",
    "README.md",
)
MOST = 30
COLUMNS = 100
# Words that confused readers from the field, and the terms to use instead.
CONFUSING = {
    r"the answer is no": "say what was refused",
    r"trips?\b(?! (?:time|latency))": "name the transfer",
    r"doors?\b": "endpoint",
    r"let in\b": "authenticated",
    r"\bwalks?\b|\bwalked\b": "search, or read",
    r"taken as they are": "unchanged",
    r"rooms?\b(?= of)": "module",
    r"sweeps?\b|stretch(?:es)?\b": "range",
    r"by their form": "by the file name",
    r"what others wrote": "other formats",
    r"of one's own": "your own",
    r"strangers?\b": "clients, or users",
}


def prose(page: str) -> list[tuple[int, str]]:
    """Returns the paragraphs and items of a page, each with the number of its first line."""
    found: list[tuple[int, str]] = []
    is_code = is_comment = False
    is_open = False
    for number, line in enumerate(page.splitlines(), 1):
        text = line.strip()
        if text.startswith("```"):
            is_code = not is_code
        if "<!--" in text:
            is_comment = True
        left_out = is_code or is_comment or text.startswith(("```", "|", "#", "![", "[!["))
        if "-->" in text:
            is_comment = False
        if left_out or not text:
            is_open = False
            continue
        if is_open and not re.match(r"[-*] |\d+\. ", text):
            found[-1] = (found[-1][0], f"{found[-1][1]} {text}")
        else:
            found.append((number, text))
        is_open = True
    return found


def sentences(paragraph: str) -> list[str]:
    """Returns the sentences of a paragraph. Code in it counts as one word."""
    plain = re.sub(r"`[^`]*`", "code", paragraph)
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", plain)
    return re.split(r"(?<=[.!?])\**\s+(?=[A-Z*“\"0-9]|code|serdes)", plain)


def faults(page: str) -> list[tuple[int, str]]:
    """Returns the faults of a page, each with its line."""
    found = []
    for line, paragraph in prose(page):
        for sentence in sentences(paragraph):
            count = len(re.findall(r"[\w'./+-]*\w[\w'./+-]*", sentence))
            if count > MOST:
                found.append((line, f"a sentence of {count} words: {sentence[:70]}…"))
            for pattern, instead in CONFUSING.items():
                if word := re.search(rf"\b(?:{pattern})", sentence, re.IGNORECASE):
                    found.append((line, f"{word[0]!r} confuses readers: {instead}"))
    is_code = False
    for number, line in enumerate(page.splitlines(), 1):
        is_code ^= line.lstrip().startswith("```")
        if not is_code and len(line) > COLUMNS and not line.startswith(("|", "<!--", "[![", "$ ")):
            found.append((number, f"a line of {len(line)} columns"))
    return found


def main(arguments: list[str]) -> int:
    """Checks the named pages, or all introductory ones."""
    pages = [Path(argument).resolve() for argument in arguments]
    pages = pages or sorted(path for pattern in PAGES for path in ROOT.glob(pattern))
    count = 0
    for page in pages:
        for line, fault in sorted(faults(page.read_text())):
            print(f"{page.relative_to(ROOT)}:{line}: {fault}")
            count += 1
    print(f"{len(pages)} pages of prose, {count} faults")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
