"""Tests device state with the real PJRT plug-ins of PyPI that compute without an accelerator.

The command copies the tensors of a file onto a device of each plug-in and into a state, from that state onto devices of every plug-in and of
the embedded StreamExecutor plug-in, and back into a file, which must equal the first one. The example `pjrt_state` compares every bit of
larger arrays, which are copied in pieces with little host memory, and prints how fast that was.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from pjrt_plugins import computing  # noqa: E402

# Limit on the host memory beyond the device's own, in MiB.
MOST_MEMORY = 64


def command(serdes, *arguments):
    """Runs a command that must succeed; returns its result."""
    done = subprocess.run([serdes, *map(str, arguments), "--json"], capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        sys.exit(f"FAILED: {arguments}: {done.stdout}{done.stderr}")
    return json.loads(done.stdout)


def trips(serdes, plugins, source, folder):
    """Restores every plug-in's state onto every plug-in; returns the number of failures."""
    failures = 0
    for number, saver in enumerate(plugins):
        state = folder / f"{number}.sds"
        saved = command(serdes, "save", "--from", source, "-o", state, "--sync", "none", "--plugin", f"{saver}:cpu_device_count=2", "--device", 1)
        for restorer in [*plugins, "host"]:
            back = folder / "back.safetensors"
            restored = command(serdes, "restore", state, "--to", back, "--plugin", restorer)
            same = back.read_bytes() == source.read_bytes() and restored["read_back_verified"] and saved["plugin"] == "cpu"
            failures += not same
            print(f"{'ok' if same else 'FAILED'}: {pathlib.Path(saver).name} -> {pathlib.Path(str(restorer)).name}")
    return failures


def large(example, plugin, mebibytes, folder):
    """Tests that arrays of `mebibytes` MiB come back bit for bit, in little memory; returns 0 if so. The speed is printed, but not checked."""
    rounds = "5" if os.environ.get("SERDES_FULL") else "1"
    done = subprocess.run([example, plugin, str(mebibytes), folder, rounds], capture_output=True, text=True, timeout=900)
    facts = dict(line.split(": ", 1) for line in done.stdout.splitlines() if ": " in line)
    if done.returncode != 0 or facts.get("same") != "true" or facts.get("same elsewhere") != "true" or facts.get("pieces") != "true":
        print(f"FAILED: {plugin}: {done.stdout}{done.stderr}")
        return 1
    memory = max(int(facts["save peak MiB"]), int(facts["restore peak MiB"]))
    good = memory <= MOST_MEMORY
    print(
        f"{'ok' if good else 'FAILED'}: PJRT {facts['version']}, {mebibytes} MiB: {memory} MiB beside the device's;"
        f" save {facts['save ratio']}, restore {facts['restore ratio']} of plain copies"
    )
    return not good


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serdes", required=True, help="the command")
    parser.add_argument("--example", required=True, help="the example pjrt_state, built with optimisation")
    parser.add_argument("--cache", required=True, type=pathlib.Path, help="where packages are kept")
    parser.add_argument("--mebibytes", default=1024 if os.environ.get("SERDES_FULL") else 256, type=int, help="how much device state is saved")
    arguments = parser.parse_args()
    found = [path for _, path in computing(arguments.cache)]
    plugins = [path for path in found if path]
    if not plugins:
        sys.exit(1)
    source = pathlib.Path(__file__).parent.parent / "data/safetensors/tiny.safetensors"
    with tempfile.TemporaryDirectory() as folder:
        failures = found.count(None) + trips(arguments.serdes, plugins, source, pathlib.Path(folder))
    # Uses a file system in memory if it is large enough, as the disk is not measured. Two files of the size exist at once.
    shared = pathlib.Path("/dev/shm")
    roomy = shared.is_dir() and shutil.disk_usage(shared).free > 3 * (arguments.mebibytes << 20)
    with tempfile.TemporaryDirectory(dir=shared if roomy else None) as folder:
        failures += large(arguments.example, plugins[-1], arguments.mebibytes, folder)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
