"""Makes the command and the Python package print their errors, for searches for them.

A user can meet every message here: the artifacts and environments are those of the tests, and the
command lines and calls have typical mistakes. Nothing is quoted from the sources.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from mistakes import CALLS, COMMANDS, REFUSED

ROOT = Path(__file__).resolve().parent.parent
SERDES = os.environ.get("SERDES", str(ROOT / "target/debug/serdes"))
# Maximum number of messages of a rule: some have a hundred that differ in a name.
OF_ONE_RULE = 8


class Case(NamedTuple):
    """A printed message, the program that prints it, and its rule or behaviour."""

    message: str
    source: str
    rule: str | None


def asked(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs the command."""
    return subprocess.run(
        [SERDES, *arguments], cwd=folder, capture_output=True, text=True, timeout=120
    )


def of_artifacts() -> list[Case]:
    """Returns the reasons and warnings about the artifacts of the tests."""
    found: dict[str, Case] = {}
    seen: Counter[str] = Counter()
    for data in ("tests/data", "crates/jax-artifacts/tests/data"):
        for options in (["--tensorflow", "2.12", "--jax", "0.8.0"], ["--verify-data"]):
            lines = asked(["check", data, "--json", *options], ROOT).stdout.splitlines()
            for verdict in map(json.loads, lines):
                for said in (verdict.get("reasons") or []) + (verdict.get("warnings") or []):
                    message, rule = said["message"], said["rule"]
                    if message not in found and seen[rule] < OF_ONE_RULE:
                        seen[rule] += 1
                        found[message] = Case(f"{rule}: {message}", "check", rule)
    return list(found.values())


def of_environments(folder: Path) -> list[Case]:
    """Returns the problems and warnings of the environments of the tests."""
    found: dict[str, Case] = {}
    for archive in sorted((ROOT / "crates/doctor/tests/data").glob("*.tar.gz")):
        place = folder / "environments"
        name = archive.name.removesuffix(".tar.gz")
        with tarfile.open(archive) as tar:
            tar.extractall(place, filter="data")
        for line in asked(
            ["doctor", "--env", str(place / name), "--json"], folder
        ).stdout.splitlines():
            answer = json.loads(line)
            for said in (answer.get("problems") or []) + (answer.get("warnings") or []):
                message, rule = said["message"], said["rule"]
                case = Case(f"{message} [{rule}]", "doctor", rule)
                found.setdefault(case.message, case)
    return list(found.values())


def of_behaviours() -> list[Case]:
    """Returns the failures of the conformance suites: the beginnings of their lines."""
    found = []
    for suite in (["pjrt:"], []):
        for line in asked(["plugin", "verify", "--list", *suite], ROOT).stdout.splitlines()[::4]:
            name, _, demand = line.split(None, 2)
            found.append(Case(f"{name} {demand}", "plugin verify", name))
    return found


# The rules with an exception of their own.
RULES = {"Corrupt": "corrupt", "NotFound": "not_found", "TooNew": "too_new"}

SCRIPT = """
import json, sys
import numpy, jax, jax.numpy as jnp
import serdes_ml as sd
from serdes_ml import jax as sdj
for call in json.load(sys.stdin):
    try:
        eval(call)
        print(json.dumps([call, None]))
    except Exception as error:
        print(json.dumps([call, f"{type(error).__name__}: {error}"]))
"""


def prepare(folder: Path) -> None:
    """Creates the files that command lines and calls name."""
    tiny = ROOT / "tests/data/safetensors/tiny.safetensors"
    asked(["save", "--from", str(tiny), "-o", "state.sds"], folder)
    state = (folder / "state.sds").read_bytes()
    (folder / "cut.sds").write_bytes(state[: len(state) // 2])
    (folder / "flipped.sds").write_bytes(state[:400] + bytes([state[400] ^ 1]) + state[401:])
    for name in ("junk.sds", "junk.txt", "junk.so", "junk.json", "junk.toml"):
        (folder / name).write_text("this is no file of any kind\n")
    (folder / "bad.toml").write_text('[check]\npaths = 7\ntensorflow = "2.21"\n')
    (folder / "short-token").write_text("short\n")
    (folder / "tokens").write_text("0123456789abcdef0123\n")
    (folder / "another-token").write_text("another-unknown-token\n")
    (folder / "a-folder").mkdir()


def said_to(commands: str, folder: Path) -> list[Case]:
    """Returns the messages for command lines with mistakes; skips those that succeed."""
    found = {}
    for line in commands.strip().splitlines():
        words = [word.replace("@", str(ROOT / "tests/data")) for word in shlex.split(line)]
        try:
            answer = asked(words, folder)
        except subprocess.TimeoutExpired:
            continue
        lines = answer.stderr.splitlines()
        first = next((line for line in lines if line.startswith("error: ")), "")
        if answer.returncode and first:
            message = " ".join(first.removeprefix("error: ").split())
            rule = message.partition(": ")[0]  # `inspect` prints the rule first, as `check` does.
            found[message] = Case(
                message, f"serdes {line}", rule if rule in RULES.values() else None
            )
    return list(found.values())


def of_server(folder: Path) -> list[Case]:
    """Returns the refusals of a server, as the client's command prints them."""
    serve = ["serve", "--listen", "127.0.0.1:0", "--token-file", "tokens", "--protocol", "20..25"]
    with subprocess.Popen(
        [SERDES, *serve], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        assert server.stdout
        address = server.stdout.readline().removeprefix("listening on ").strip()
        try:
            return said_to(REFUSED.replace("%", address), folder)
        finally:
            server.terminate()


def of_calls(folder: Path) -> list[Case]:
    """Returns the Python package's messages for calls with mistakes; skips those that succeed."""
    calls = CALLS.strip().splitlines()
    answer = subprocess.run(
        [os.environ.get("PYTHON", "python"), "-c", SCRIPT],
        input=json.dumps(calls),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )
    if answer.returncode:
        sys.exit(f"the calls ended with {answer.returncode}: {answer.stderr[-2000:]}")
    found = {}
    for call, message in map(json.loads, answer.stdout.splitlines()):
        if message:
            shown = " ".join(message.split("\n")[0].split())
            found[message] = Case(shown, call, RULES.get(shown.partition(":")[0]))
    return list(found.values())


def cases() -> list[Case]:
    """Returns all messages."""
    with tempfile.TemporaryDirectory(prefix="serdes-messages-") as name:
        folder = Path(name)
        prepare(folder)
        return [
            *of_artifacts(),
            *of_environments(folder),
            *of_behaviours(),
            *said_to(COMMANDS, folder),
            *of_server(folder),
            *of_calls(folder),
        ]
