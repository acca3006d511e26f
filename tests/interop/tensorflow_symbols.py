"""Compares the C functions that the installed TensorFlow exports with the table of crates/stream-executor/src/load.

    PYTHON tests/interop/tensorflow_symbols.py --serdes BINARY    compares each name
    PYTHON tests/interop/tensorflow_symbols.py --serdes BINARY --add RELEASE
                                                                  adds the installed release after RELEASE, the newest of the table
    PYTHON tests/interop/tensorflow_symbols.py --remove RELEASE   removes RELEASE, the newest of the table

TensorFlow itself is not imported: the command reads its libraries as files.
"""

import argparse
import importlib.metadata
import importlib.util
import json
import pathlib
import re
import subprocess
import sys

TABLE = pathlib.Path(__file__).parents[2] / "crates/stream-executor/src/load/tensorflow_symbols.txt"
LIBRARIES = ["libtensorflow_framework.so.2", "libtensorflow_cc.so.2", "python/_pywrap_tensorflow_internal.so"]
RELEASES = "# releases: "
OURS = re.compile(r"(TF|TFE|TSL|SE|TFNPD)_")


def installed():
    """Returns the release, and the names that its libraries export."""
    folder = pathlib.Path(importlib.util.find_spec("tensorflow").submodule_search_locations[0])
    for package in ["tensorflow", "tensorflow-cpu"]:
        try:
            version = importlib.metadata.version(package)
            break
        except importlib.metadata.PackageNotFoundError:
            pass
    return ".".join(version.split(".")[:2]), folder


def exports(serdes, folder):
    names = set()
    for library in LIBRARIES:
        said = subprocess.run([serdes, "plugin", "inspect", folder / library, "--json"], check=True, capture_output=True)
        names.update(name for name in json.loads(said.stdout)["exports"] if OURS.match(name))
    return names


def number(release):
    return [int(part) for part in release.split(".")]


def table():
    """Returns the lines of the table by name: the first and the last release, None for all."""
    lines = [line.split() for line in TABLE.read_text().splitlines() if not line.startswith("#")]
    return {words[0]: (words[1:] or [None, None]) for words in lines}


def compare(release, found):
    def has(first, last):
        return first is None or number(first) <= number(release) <= number(last)

    known = {name for name, (first, last) in table().items() if has(first, last)}
    for name in sorted(found - known):
        print(f"FAIL {name}: exported by {release}, and not in the table")
    for name in sorted(known - found):
        print(f"FAIL {name}: in the table, and not exported by {release}")
    print(f"{len(found)} names of TensorFlow {release}, {len(found ^ known)} differ")
    return 1 if found != known else 0


def add(release, found, newest):
    text = TABLE.read_text()
    head = [line for line in text.splitlines() if line.startswith("#")]
    oldest = re.search(r"(\d+\.\d+) to ", " ".join(head)).group(1)
    lines = {}
    for name, (first, last) in table().items():
        first, last = first or oldest, last or newest
        lines[name] = (first, release if name in found and last == newest else last)
    for name in found - lines.keys():
        lines[name] = (release, release)
    body = [name if ends == (oldest, release) else f"{name} {ends[0]} {ends[1]}" for name, ends in sorted(lines.items())]
    head = [line.replace(f"to {newest}", f"to {release}") for line in head]
    head = [f"{line} {release}" if line.startswith(RELEASES) else line for line in head]
    TABLE.write_text("\n".join(head + body) + "\n")
    print(f"{release}: {len(found)} names")
    return 0


def remove(release):
    text = TABLE.read_text()
    head = [line for line in text.splitlines() if line.startswith("#")]
    releases = next(line for line in head if line.startswith(RELEASES)).removeprefix(RELEASES).split()
    if releases[-1] != release:
        print(f"the newest release of the table is {releases[-1]}, and not {release}", file=sys.stderr)
        return 1
    oldest, newest = releases[0], releases[-2]
    body = []
    for name, (first, last) in sorted(table().items()):
        first, last = first or oldest, last or release
        if first != release:
            last = newest if last == release else last
            body.append(name if (first, last) == (oldest, newest) else f"{name} {first} {last}")
    head = [line.removesuffix(f" {release}").replace(f"to {release}", f"to {newest}") for line in head]
    TABLE.write_text("\n".join(head + body) + "\n")
    print(f"{release}: taken out")
    return 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--serdes")
    parser.add_argument("--host-plugin")
    parser.add_argument("--add", metavar="RELEASE", help="the newest release of the table")
    parser.add_argument("--remove", metavar="RELEASE", help="the newest release of the table")
    arguments = parser.parse_args()
    if arguments.remove:
        return remove(arguments.remove)
    if not arguments.serdes:
        parser.error("--serdes or --remove is needed")
    release, folder = installed()
    found = exports(arguments.serdes, folder)
    if arguments.add:
        return add(release, found, arguments.add)
    return compare(release, found)


if __name__ == "__main__":
    sys.exit(main())
