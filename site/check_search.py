"""Searches the built site for messages of the command and of the Python package.

python site/check_search.py

`message_cases.py` causes the messages, and each is given to the search of the site as it was
printed: to the worker of the theme, in Chromium, through `search.js`. The first five results must
include the page of the rule or behaviour that belongs to the message, or the section of the message
itself; both say what to do. There must be at least 200 messages. Exits with status 1 if one of them
is not found.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import sys
from collections import Counter
from pathlib import Path

from check_browser import serve
from message_cases import Case, cases
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "target/site"
PAGES = 5
AT_LEAST = 200
# A section with fewer letters of its own would match any message.
LETTERS = 10

# Queries the worker of the search, with the same sequence of messages as the theme.
ASK = """async messages => {
  const configuration = JSON.parse(document.getElementById("__config").textContent);
  const index = await (await fetch("search/search_index.json")).json();
  const worker = new Worker(configuration.search);
  const answer = data => new Promise(done => {
    worker.onmessage = event => done(event.data);
    worker.postMessage(data);
  });
  await answer({type: 0, data: {config: index.config, docs: index.docs, options: {suggest: true}}});
  const found = [];
  for (const data of messages) {
    const {items} = (await answer({type: 2, data})).data;
    found.push(items.slice(0, 5).map(group => group.map(item => item.location)));
  }
  return found;
}"""


def words(text: str) -> str:
    """Reduces a text to its letters and digits, so that quotation marks and blanks do not count."""
    return " ".join(re.findall(r"[\w…]+", text))


def sections(docs: list[dict]) -> list[tuple[str, list[str]]]:
    """Returns the sections of messages, each with the fixed words of its message."""
    found = []
    for doc in docs:
        if doc["location"].startswith("messages/") and "#" in doc["location"]:
            title = words(html.unescape(re.sub(r"<[^>]*>", "", doc["title"])))
            parts = [part.strip() for part in title.split("…")]
            if len("".join(parts)) >= LETTERS:
                found.append((doc["location"], parts))
    return found


def is_in_order(parts: list[str], said: str) -> bool:
    """Returns True if a text has all parts, in order."""
    at = 0
    for part in parts:
        at = said.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return True


def expected(case: Case, known: list[tuple[str, list[str]]]) -> set[str]:
    """Returns the pages and sections that say what to do about a message."""
    said = words(case.message)
    found = {location for location, parts in known if is_in_order(parts, said)}
    return found | {f"{folder}/{case.rule}.html" for folder in ("rules", "behaviours") if case.rule}


def main() -> int:
    """Searches for every message."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    if chromium is None:
        print("skipped: there is no Chromium here, so that nothing was searched")
        return 0
    docs = json.loads((SITE / "search/search_index.json").read_text())["docs"]
    known = sections(docs)
    asked = cases()
    server = serve()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{server.server_address[1]}/index.html")
        found = page.evaluate(ASK, [case.message for case in asked])
        browser.close()
    server.shutdown()
    lost = []
    for case, groups in zip(asked, found, strict=True):
        wanted = expected(case, known)
        locations = [location for group in groups[:PAGES] for location in group]
        pages = {location.partition("#")[0] for location in locations}
        if not wanted & {*locations, *pages}:
            first = [group[0] for group in groups[:PAGES]]
            said = f"{case.source}: {case.message[:160]!r}"
            lost.append(f"{said}\n  wanted {sorted(wanted)[:3]}\n  found {first}")
    print("\n".join(lost))
    kinds = Counter(
        "call" if case.source.startswith("sd") else case.source.split()[0] for case in asked
    )
    print(f"{len(asked)} messages ({dict(kinds)}), {len(lost)} lead nowhere")
    if len(asked) < AT_LEAST:
        print(f"expected {AT_LEAST} messages at least")
    return 1 if lost or len(asked) < AT_LEAST else 0


if __name__ == "__main__":
    sys.exit(main())
