"""Builds the plug-in in C of examples/c-plugin with CMake, and has the command read, load and verify it.

    PYTHON tests/interop/c_plugin.py --serdes PATH_OF_BINARY [--cmake PATH]

It is built twice: in its folder, and as a copy outside the repository with the header beside it.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

from checks import Checks

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCE = ROOT / "examples/c-plugin"


def build(cmake, source, folder):
    """Builds the library with the commands of the page; returns its path."""
    for arguments in (["-S", source, "-B", folder], ["--build", folder]):
        done = subprocess.run([cmake, *arguments], capture_output=True, text=True, timeout=300)
        if done.returncode:
            raise SystemExit(f"cmake {arguments}: {done.stdout}{done.stderr}")
    return folder / "libc_plugin.so"


def objects(serdes, *arguments):
    """Runs the command; returns its status, and the objects that it prints."""
    done = subprocess.run([serdes, "plugin", *arguments, "--json"], capture_output=True, text=True, timeout=300)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def examine(checks, serdes, library):
    status, (told,) = objects(serdes, "inspect", library)
    checks.check("inspect", status == 0 and told["api"] == "stream_executor" and told["exports"] == ["SE_InitPlugin"], told)
    status, (told,) = objects(serdes, "check", library)
    checks.check("check", status == 0 and told["accepted"] and told["layout"] == "tensorflow-2.14" and told["devices"] == 2, told)
    status, told = objects(serdes, "verify", library)
    results = [one["result"] for one in told if "behaviour" in one]
    failed = [one for one in told if one.get("result") == "fail"]
    checks.check("verify", status == 0 and not failed and results.count("pass") > 50, failed or results)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--serdes", required=True)
    parser.add_argument("--host-plugin", help="not used: the suite gives it to all of its scripts")
    parser.add_argument("--cmake", default="cmake")
    options = parser.parse_args()
    checks = Checks()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        examine(checks, options.serdes, build(options.cmake, SOURCE, folder / "inside"))
        copy = folder / "copy"
        copy.mkdir()
        for file in (SOURCE / "CMakeLists.txt", SOURCE / "plugin.c", ROOT / "include/serdes_stream_executor.h"):
            shutil.copy(file, copy)
        examine(checks, options.serdes, build(options.cmake, copy, folder / "outside"))
    return checks.end()


if __name__ == "__main__":
    sys.exit(main())
