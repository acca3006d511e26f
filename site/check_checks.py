"""Tests that the checks of the site find each fault.

python site/check_checks.py

Makes a small site with a page for each fault, has `check_browser.py` check it, and exits with
status 1 if a fault is not found, or if one is found in the page without a fault.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from check_browser import dead_links, look, serve
from playwright.sync_api import sync_playwright

PAGE = """<!doctype html>
<html lang="en"><head><title>A page</title><link rel="icon" href="data:,"></head>
<body style="color:#111;background:#fff"><main class="md-content"><h1 id="top">A page</h1>
<p>Text, and <a href="good.html#top">a link</a>.</p></main></body></html>"""

# The replaced text of the page, its replacement, and a word of the fault that must be found.
FAULTS = {
    "heading-skipped": ("<p>", "<h3>Too deep</h3><p>", "skips a level"),
    "two-titles": ("<p>", "<h1>Another</h1><p>", "headings of the first level"),
    "no-alt": ("<p>", '<img src="data:image/gif;base64,R0lGODlhAQABAAAAACw=" alt=""><p>', "text"),
    "broken-picture": ("<p>", '<img src="nowhere.png" alt="a picture"><p>', "do not load"),
    "no-language": (' lang="en"', "", "no language"),
    "weak-contrast": ("<p>", '<p style="color:#bbb">', "weak contrast"),
    "no-name": ("<p>", '<button style="width:9px;height:9px"></button><p>', "without a name"),
    "forced-order": ("<p>", '<p tabindex="3">', "order of the keyboard"),
    "dead-link": ("good.html#top", "nowhere.html", "links to nowhere.html"),
    "dead-anchor": ("good.html#top", "good.html#nowhere", "#nowhere"),
    "console-error": ("</main>", "</main><script>throw Error('broken')</script>", "broken"),
    "other-host": ("</main>", '</main><img alt="x" src="http://192.0.2.1/x.png">', "192.0.2.1"),
    "too-wide": ("<p>", '<p style="width:2000px">', "wider than a phone"),
}


def main() -> int:
    """Checks the pages with faults."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    if chromium is None:
        print("skipped: there is no Chromium here")
        return 0
    missed = []
    with (
        tempfile.TemporaryDirectory(prefix="serdes-faults-") as name,
        sync_playwright() as playwright,
    ):
        folder = Path(name)
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        server = serve(folder)
        address = f"http://127.0.0.1:{server.server_address[1]}"
        (folder / "good.html").write_text(PAGE)
        good = look(browser, address, ["good.html"], None)
        if faults := good.faults + dead_links(good, address):
            missed.append(f"the page without a fault has some: {faults}")
        for fault, (old, new, word) in FAULTS.items():
            assert PAGE.count(old) == 1, fault
            (folder / f"{fault}.html").write_text(PAGE.replace(old, new))
            looked = look(browser, address, ["good.html", f"{fault}.html"], None)
            found = looked.faults + dead_links(looked, address)
            if not any(word in text for text in found):
                missed.append(f"{fault} is not found: {found}")
        browser.close()
        server.shutdown()
    print("\n".join([*missed, f"{len(FAULTS)} faults, {len(missed)} missed"]))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
