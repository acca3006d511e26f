"""Makes the pictures of docs/ci.md from the output of the command, in Chromium.

    ci_pictures.py --serdes PATH --chromium PATH

A folder of models of TensorFlow 2.21 (tests/data/tensorflow/op_corpus.zip), with one that older
releases misread, is checked against a revision that had an older version of one model. The page of
`--format html` is shown unchanged; markdown-it renders Markdown like a comment. Needs playwright
and markdown-it-py.
"""

import argparse
import io
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path

from markdown_it import MarkdownIt
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]
CORPUS = ROOT / "tests/data/tensorflow/op_corpus.zip"
DIFFERS = ROOT / "tests/data/rules/attribute_dropped.pbtxt"
PICTURES = ROOT / "docs/pictures"
LARGEST = 150_000

# A model's name in the pictures, and its folder in the corpus.
MODELS = {
    "embedder": "sm21/act",
    "ranker": "sm21/data_global_shuffle",
    "quantized": "sm21/concat_float4_e2m1fn",
    "tagger": "sm21/collective_alltoall_v2",
}
RELEASES = ["--tensorflow", "all"]

COMMENT = """<!DOCTYPE html><meta charset="utf-8"><style>
body{margin:0;padding:16px;background:#fff;color:#1f2328;font:14px/1.5 sans-serif;width:60rem}
table{border-collapse:collapse}th,td{border:1px solid #d1d9e0;padding:4px 10px}
code{background:#eff1f3;border-radius:6px;padding:.1em .4em;font:85% monospace}
</style><main>"""


def model(archive, source, target):
    """Unpacks a model of the corpus into a folder."""
    for name in archive.namelist():
        if name.startswith(f"{source}/"):
            path = target / name.removeprefix(f"{source}/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(archive.read(name))


def git(folder, *words):
    identity = ["-c", "user.name=a", "-c", "user.email=a@localhost"]
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


def repository(folder):
    """Creates a repository in which the ranker was a model that every release loads."""
    with zipfile.ZipFile(io.BytesIO(CORPUS.read_bytes())) as archive:
        for name, source in MODELS.items():
            model(archive, source, folder / "models" / name)
        shutil.copy(DIFFERS, folder / "models/gated.pbtxt")
        ranker = folder / "models/ranker"
        shutil.rmtree(ranker)
        model(archive, "sm21/unary_digamma", ranker)
        git(folder, "init", "--quiet", "--initial-branch=main")
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "--message=models")
        shutil.rmtree(ranker)
        model(archive, MODELS["ranker"], ranker)


def written(serdes, folder, *arguments):
    ran = subprocess.run(
        [serdes, "check", "models", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode != 1:
        raise SystemExit(ran.stderr)
    return ran.stdout


def comment(markdown):
    # Uses characters that every font has, since few machines have an emoji font.
    for emoji, mark in (("✅", "✓"), ("❌", "✗"), ("⚠️", "≠"), ("❔", "?"), ("☑️", "✓")):
        markdown = markdown.replace(emoji, mark)
    return COMMENT + MarkdownIt("gfm-like", {"linkify": False}).render(markdown).replace(
        "<details>", "<details open>"
    )


def take(browser, content, height, name):
    """Writes a picture of the top of a page."""
    page = browser.new_context(
        viewport={"width": 1120, "height": height}, color_scheme="light"
    ).new_page()
    page.set_content(content)
    page.wait_for_load_state()
    page.screenshot(path=PICTURES / name)
    size = (PICTURES / name).stat().st_size
    if size > LARGEST:
        raise SystemExit(f"{name}: {size} bytes, above {LARGEST}")
    print(f"docs/pictures/{name}: {size // 1000} kB")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--serdes", type=lambda path: str(Path(path).resolve()), required=True)
    parser.add_argument("--chromium", required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        folder = Path(temporary)
        repository(folder)
        browser = playwright.chromium.launch(
            executable_path=options.chromium, args=["--no-sandbox"]
        )
        take(
            browser,
            written(options.serdes, folder, *RELEASES, "--format", "html"),
            700,
            "ci-page.png",
        )
        take(
            browser,
            comment(written(options.serdes, folder, *RELEASES, "--format", "markdown")),
            560,
            "ci-comment.png",
        )
        compared = written(options.serdes, folder, "--against", "HEAD", "--format", "markdown")
        take(browser, comment(compared), 420, "ci-against.png")
        browser.close()


if __name__ == "__main__":
    main()
