"""Checks in Chromium that each page of the built site renders, is accessible, asks no other host.

python site/check_browser.py [FOLDER_OF_SCREENSHOTS]

Needs the package `playwright` and a Chromium on PATH. Every page must have no error in the console,
no request to another host, one `h1`, headings that skip no level, a text for each picture, a
language, links and fields with a name, links with an existing target (anchors, too), no change to
the keyboard's order, no more width than a phone, and text whose contrast with its background is 4.5
or more, light and dark. On the first page, the search must find a rule by its name, by keyboard.
Exits with status 1 if a check fails; `check_checks.py` tests that each of them can fail.
"""

from __future__ import annotations

import functools
import http.server
import re
import shutil
import sys
import threading
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit

from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Page,
    Request,
    TimeoutError,
    sync_playwright,
)

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "target/site"

# Returns headings, pictures, links and contrast of the page as one object.
LOOK = """() => {
  const inside = document.querySelector(".md-content") || document.body;
  const headings = [...inside.querySelectorAll("h1,h2,h3,h4,h5,h6")].map(h => +h.tagName[1]);
  const luminance = ([r, g, b]) => {
    const part = v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const colours = new Map(), grounds = new Map();
  const colour = text => {
    if (colours.has(text)) return colours.get(text);
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = text; canvas.fillRect(0, 0, 1, 1);
    colours.set(text, [...canvas.getImageData(0, 0, 1, 1).data]);
    return colours.get(text);
  };
  const over = (top, below) => {
    const a = top[3] / 255;
    return [0, 1, 2].map(i => top[i] * a + below[i] * (1 - a));
  };
  const behind = element => {
    if (!element) return [255, 255, 255];
    if (grounds.has(element)) return grounds.get(element);
    const own = colour(getComputedStyle(element).backgroundColor);
    const seen = own[3] === 255 ? own.slice(0, 3) : over(own, behind(element.parentElement));
    grounds.set(element, seen);
    return seen;
  };
  const weak = [];
  const written = "p, li, td, th, code, a:not(.headerlink), h1, h2, h3";
  for (const element of inside.querySelectorAll(written)) {
    const texts = [...element.childNodes].filter(n => n.nodeType === 3);
    const text = texts.map(n => n.data.trim()).join("");
    if (!text || !element.getClientRects().length) continue;
    const below = behind(element), top = over(colour(getComputedStyle(element).color), below);
    const [a, b] = [luminance(top), luminance(below)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) weak.push(`${ratio.toFixed(2)} ${element.tagName} ${text.slice(0, 40)}`);
  }
  const named = e => e.textContent.trim() || e.title || e.getAttribute("aria-label")
    || e.querySelector("img[alt]:not([alt=''])") || e.placeholder || e.labels?.length;
  const shown = e => e.getClientRects().length && getComputedStyle(e).visibility !== "hidden";
  const kinds = "a[href], button, input:not([type=hidden]), select";
  const usable = [...document.querySelectorAll(kinds)];
  return {
    nameless: usable.filter(e => shown(e) && !named(e)).length,
    forced: [...document.querySelectorAll("[tabindex]")].filter(e => e.tabIndex > 0).length,
    headings, weak: weak.slice(0, 3),
    language: document.documentElement.lang,
    pictures: [...inside.querySelectorAll("img")].filter(i => !i.alt.trim()).length,
    broken: [...inside.querySelectorAll("img")].filter(i => !i.complete || !i.naturalWidth).length,
    links: [...document.querySelectorAll("a[href]")].map(a => a.href),
    ids: [...document.querySelectorAll("[id]")].map(e => e.id),
    width: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  };
}"""


# Pages that are generated from one template: each is opened once, and some in all modes.
ALIKE = ("rules/", "behaviours/", "messages/", "contributing/", "decisions/")
EVERY = 20


# The index of the search that a page gets during these checks: loading the real one takes longer
# than all other checks, and `search` tests it.
NO_INDEX = '{"config":{"lang":["en"],"separator":" ","pipeline":[],"fields":{"text":{}}},"docs":[]}'


class Looked(NamedTuple):
    """The faults of all pages, and the links and anchors of each."""

    faults: list[str]
    links: dict[str, set[str]]
    ids: dict[str, set[str]]


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A file server that prints nothing."""

    def log_message(self, *_: object) -> None:
        """Prints nothing."""


class Server(http.server.ThreadingHTTPServer):
    """A server that prints no traceback when a page is left while it loads."""

    def handle_error(self, *_: object) -> None:
        """Prints nothing: the browser reports what a page lacks."""


def serve(folder: Path = SITE) -> http.server.ThreadingHTTPServer:
    """Serves the site, or another folder, on a free port of the loopback."""
    handler = functools.partial(Quiet, directory=str(folder))
    server = Server(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def faults_of(name: str, seen: dict) -> list[str]:
    """Returns the faults of a page."""
    faults = []
    levels = seen["headings"]
    if levels.count(1) != 1:
        faults.append(f"has {levels.count(1)} headings of the first level")
    if any(after > before + 1 for before, after in pairwise(levels)):
        faults.append(f"skips a level of headings: {levels}")
    if seen["pictures"]:
        faults.append(f"has {seen['pictures']} pictures without a text")
    if seen["broken"]:
        faults.append(f"has {seen['broken']} pictures that do not load")
    if seen["nameless"]:
        faults.append(f"has {seen['nameless']} links or fields without a name")
    if seen["forced"]:
        faults.append(f"has {seen['forced']} elements that change the order of the keyboard")
    if not seen["language"]:
        faults.append("has no language")
    if seen["weak"]:
        faults.append(f"has text of weak contrast: {seen['weak']}")
    return [f"{name} {fault}" for fault in faults]


def search(page: Page, address: str) -> list[str]:
    """Searches for rules and messages by keyboard; returns those that are not found."""
    missing = []
    for words, expected in [
        ("min_consumer", "min_consumer"),
        ("attribute_dropped", "attribute_dropped"),
        ("struct_too_short", "pjrt"),
        ("too new", "too_new"),
        ("UNAUTHENTICATED token", "jax"),
    ]:
        page.goto(address + "/index.html")
        page.keyboard.press("/")
        page.keyboard.type(words)
        try:
            page.wait_for_selector(".md-search-result__link", timeout=10_000)
        except TimeoutError:
            missing.append(f"the search finds nothing for {words!r}")
            continue
        page.wait_for_timeout(300)
        links = [
            link.get_attribute("href") or ""
            for link in page.query_selector_all(".md-search-result__link")
        ]
        if not any(expected in link for link in links[:8]):
            missing.append(f"the search for {words!r} finds {links[:8]}, and no {expected}")
    return missing


def listen(page: Page, address: str) -> list[str]:
    """Returns a list to which the page's console messages and requests to other hosts are added."""
    said: list[str] = []

    def console(message: ConsoleMessage) -> None:
        if message.type == "error":
            said.append(message.text)

    def request(request: Request) -> None:
        if request.url.startswith(("http:", "https:")) and not request.url.startswith(address):
            said.append(f"asks {request.url}")

    page.on("console", console)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", request)
    return said


def look(browser: Browser, address: str, names: list[str], screenshots: Path | None) -> Looked:
    """Opens every page, light and dark."""
    looked = Looked([], {}, {})
    alike = [name for name in names if name.startswith(ALIKE)]
    shown = ({*names} - {*alike}) | {*alike[::EVERY]}
    for scheme in ("light", "dark"):
        size = {"width": 1280, "height": 900}
        page = browser.new_context(color_scheme=scheme, viewport=size).new_page()
        page.route("**/search_index.json", lambda route: route.fulfill(body=NO_INDEX))
        said = listen(page, address)
        for name in names:
            if scheme == "dark" and name not in shown:
                continue
            page.goto(f"{address}/{name}")
            page.wait_for_timeout(50)
            seen = page.evaluate(LOOK)
            looked.faults.extend(f"{fault} ({scheme})" for fault in faults_of(name, seen))
            looked.links.setdefault(name, set()).update(seen["links"])
            looked.ids.setdefault(name, set()).update(seen["ids"])
            if screenshots and name in shown:
                page.screenshot(path=screenshots / f"{name.replace('/', '-')}-{scheme}.png")
        looked.faults.extend(f"{scheme}: {text}" for text in said)
        page.context.close()
    phone = browser.new_context(viewport={"width": 390, "height": 844}).new_page()
    phone.route("**/search_index.json", lambda route: route.fulfill(body=NO_INDEX))
    for name in sorted(shown):
        phone.goto(f"{address}/{name}")
        if (width := phone.evaluate(LOOK)["width"]) > 0:
            looked.faults.append(f"{name} is {width} pixels wider than a phone")
        if screenshots:
            phone.screenshot(path=screenshots / f"{name.replace('/', '-')}-phone.png")
    return looked


def dead_links(looked: Looked, address: str) -> list[str]:
    """Returns the links within the site that lead nowhere."""
    dead = []
    for name, targets in looked.links.items():
        for target in targets:
            parts = urlsplit(urljoin(f"{address}/{name}", target))
            if f"{parts.scheme}://{parts.netloc}" != address:
                continue
            there = re.sub(r"(^|/)$", r"\1index.html", parts.path.lstrip("/"))
            if there.endswith(".html") and there not in looked.ids:
                dead.append(f"{name} links to {there}, which is not there")
            elif parts.fragment and parts.fragment not in looked.ids.get(there, {parts.fragment}):
                dead.append(f"{name} links to {there}#{parts.fragment}, which is not there")
    return dead


def main(arguments: list[str]) -> int:
    """Checks all pages."""
    found = map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))
    chromium = next(filter(None, found), None)
    if chromium is None:
        print("skipped: there is no Chromium here, so that the site was not looked at")
        return 0
    screenshots = Path(arguments[0]) if arguments else None
    if screenshots:
        screenshots.mkdir(parents=True, exist_ok=True)
    pages = (path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html"))
    names = sorted(name for name in pages if name != "404.html")
    server = serve()
    address = f"http://127.0.0.1:{server.server_address[1]}"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        looked = look(browser, address, names, screenshots)
        faults = looked.faults + search(browser.new_page(), address)
        browser.close()
    server.shutdown()
    faults = sorted({*faults, *dead_links(looked, address)})
    print("\n".join([*faults, f"{len(names)} pages, {len(faults)} faults"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
