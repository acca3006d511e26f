"""Tests the command's main tasks: save, check, restore, with every kind of plug-in, and with wrong input.

python tests/interop/state_trip.py --serdes BINARY --host-plugin LIBRARY [--large]

Makes its own inputs; the C plug-in is compiled by the system's cc against include/.
"""

import argparse
import json
import os
import random
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

from checks import Checks, hear_signals

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SIZES = {"BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "F16": 2, "BF16": 2, "I16": 2, "U16": 2,
         "F32": 4, "I32": 4, "U32": 4, "F64": 8, "I64": 8, "U64": 8}

checks = Checks()


def expect(condition, what):
    checks.check(what, condition)


def safetensors(path, tensors, metadata=None):
    """Writes tensors {name: (dtype, shape, bytes)} as the safetensors library does: by size of type, then name."""
    order = sorted(tensors.items(), key=lambda item: (-SIZES[item[1][0]], item[0]))
    header, offset = {}, 0
    if metadata:
        header["__metadata__"] = metadata
    for name, (dtype, shape, data) in order:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, (_, _, data) in order:
            file.write(data)


def tensors_of(path):
    """Reads a safetensors file into {name: (dtype, shape, bytes)} and its metadata."""
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        body = file.read()
    metadata = header.pop("__metadata__", None)
    return {name: (entry["dtype"], entry["shape"], body[slice(*entry["data_offsets"])])
            for name, entry in header.items()}, metadata


def run(arguments, timeout=600, **options):
    return subprocess.run(arguments, capture_output=True, text=True, timeout=timeout, **options)


def peak_memory(arguments):
    """Runs a command; returns its exit status, its peak resident memory in bytes, and its errors."""
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.read()
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_maxrss * 1024, errors.decode()


def trip(serdes, folder, source, plugin, label):
    state, out = os.path.join(folder, "state.sds"), os.path.join(folder, "out.safetensors")
    for path in (state, out):
        if os.path.exists(path):
            os.remove(path)
    save = run([serdes, "save", "--from", source, "-o", state, "--plugin", plugin, "--json"])
    expect(save.returncode == 0, f"{label}: save: {save.stderr}")
    check = run([serdes, "check", state, "--verify-data", "--json"])
    expect(check.returncode == 0 and json.loads(check.stdout)["verdict"] == "acceptable",
           f"{label}: check: {check.stdout} {check.stderr}")
    restore = run([serdes, "restore", state, "--to", out, "--plugin", plugin, "--json"])
    expect(restore.returncode == 0, f"{label}: restore: {restore.stderr}")
    if save.returncode or restore.returncode:
        return
    report = json.loads(save.stdout)
    for key in ("tensors", "bytes", "seconds", "sync_seconds", "total_seconds", "bytes_per_second",
                "serdes_version", "plugin", "verified"):
        expect(key in report, f"{label}: save reports {key}")
    before, metadata_before = tensors_of(source)
    after, metadata_after = tensors_of(out)
    expect(before == after, f"{label}: every tensor comes back byte for byte")
    expect(metadata_before == metadata_after, f"{label}: metadata {metadata_before} came back as {metadata_after}")
    expect(report["tensors"] == len(before), f"{label}: counts {len(before)} tensors: {report}")
    expect(report["bytes"] == sum(len(data) for _, _, data in before.values()), f"{label}: counts bytes")
    leftovers = [name for name in os.listdir(folder) if name.endswith(".partial")]
    expect(not leftovers, f"{label}: leaves {leftovers}")


def main():
    hear_signals()
    parser = argparse.ArgumentParser()
    parser.add_argument("--serdes", required=True)
    parser.add_argument("--host-plugin", required=True)
    parser.add_argument("--large", action="store_true", help="also 4 GiB")
    arguments = parser.parse_args()
    serdes = arguments.serdes
    folder = tempfile.mkdtemp(prefix="state-trip-")
    try:
        # Runs first, while this process is small: a child's peak includes its memory before it executed the command.
        memory(serdes, folder, arguments.large)
        trips(serdes, arguments.host_plugin, folder)
        document_reader(serdes, folder)
        direct(serdes, folder)
        wrong_input(serdes, folder)
    finally:
        shutil.rmtree(folder)
    sys.exit(checks.end())


def c_plugin(folder):
    """Compiles the C plug-in of the tests; returns None if there is no compiler."""
    compiler = shutil.which("cc")
    source = os.path.join(ROOT, "tests", "plugins", "malloc_plugin.c")
    if compiler is None:
        print("skipped: no C compiler")
        return None
    library = os.path.join(folder, "libmalloc_plugin.so")
    built = run([compiler, "-shared", "-fPIC", "-O2", "-pthread", "-I", os.path.join(ROOT, "include"), "-o", library, source])
    expect(built.returncode == 0, f"the C plug-in compiles: {built.stderr}")
    return library if built.returncode == 0 else None


def trips(serdes, host_plugin, folder):
    rng = random.Random(2026)
    plugins = [("host", "host"), ("library", host_plugin)]
    library = c_plugin(folder)
    if library:
        plugins.append(("C", library))
    large = {f"layer.{i:03}.weight": ("F32" if i % 3 else "BF16", [n, 16], rng.randbytes(n * 16 * (4 if i % 3 else 2)))
             for i, n in ((i, 15000 + 37 * i) for i in range(100))}
    source = os.path.join(folder, "large.safetensors")
    safetensors(source, large, {"format": "pt"})
    small = os.path.join(folder, "small.safetensors")
    odd = {"empty": ("F32", [0, 3], b""), "scalar": ("F64", [], rng.randbytes(8)), "one": ("U8", [1, 1, 1], b"\x07"),
           "nested/name with spaces and ü": ("I16", [2], b"abcd")}
    for dtype, size in SIZES.items():
        odd[f"dtype.{dtype}"] = (dtype, [3, 5], rng.randbytes(15 * size) if dtype != "BOOL" else bytes([0, 1, 1] * 5))
    safetensors(small, odd, {"b": "2", "a": "1"})
    many = os.path.join(folder, "many.safetensors")
    safetensors(many, {f"tensor.{i}": ("F32", [i % 7], rng.randbytes(4 * (i % 7))) for i in range(10_000)})
    for label, plugin in plugins:
        trip(serdes, folder, source, plugin, f"{os.path.getsize(source) / 1e6:.0f} MB through {label}")
        trip(serdes, folder, small, plugin, f"odd shapes and types through {label}")
        trip(serdes, folder, many, plugin, f"10,000 tensors through {label}")
    for version in ("current", "week-4-old", "minimum", "0", "3", "6"):
        state = os.path.join(folder, "state.sds")
        save = run([serdes, "save", "--from", small, "-o", state, "--serdes-version", version, "--json"])
        expect(save.returncode == 0, f"version {version}: {save.stderr}")
    partial = os.path.join(folder, "partial.safetensors")
    state = os.path.join(folder, "state.sds")
    run([serdes, "save", "--from", small, "-o", state])
    only = run([serdes, "restore", state, "--only", "dtype.F*", "--to", partial])
    expect(only.returncode == 0 and set(tensors_of(partial)[0]) == {name for name in odd if name.startswith("dtype.F")},
           f"--only takes what matches: {only.stderr}")
    same = run([serdes, "diff", small, state, "--json"])
    expect(same.returncode == 0, f"diff of a source and its state: {same.stdout} {same.stderr}")


def memory(serdes, folder, large):
    """Tests that memory beyond the device's own, which here is also host memory, is at most 64 MiB."""
    sizes = [91 << 20, 1 << 30] + ([4 << 30] if large else [])
    for size in sizes:
        source, state = os.path.join(folder, "memory.safetensors"), os.path.join(folder, "memory.sds")
        count = 64
        each = size // count
        header = {f"t{i}": {"dtype": "U8", "shape": [each], "data_offsets": [i * each, (i + 1) * each]} for i in range(count)}
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        block = random.Random(1).randbytes(1 << 20)
        with open(source, "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            left = each * count
            while left:
                left -= file.write(block[:min(left, len(block))])
        for label, command in (("save", [serdes, "save", "--from", source, "-o", state, "--sync", "none"]),
                               ("restore", [serdes, "restore", state, "--to", os.path.join(folder, "memory.out.safetensors"), "--sync", "none"])):
            status, peak, errors = peak_memory(command)
            beyond = peak - each * count
            print(f"{label} of {size >> 20} MiB: {beyond / (1 << 20):.1f} MiB beyond the device's own", flush=True)
            expect(status == 0, f"{label} of {size >> 20} MiB: {errors}")
            expect(beyond <= 64 << 20, f"{label} of {size >> 20} MiB takes {beyond >> 20} MiB beyond the device's own")
        for name in ("memory.safetensors", "memory.sds", "memory.out.safetensors"):
            os.remove(os.path.join(folder, name))


def document_reader(serdes, folder):
    """Tests that the reader that uses only docs/format.md reads the command's states, and finds damage."""
    source, state, out = (os.path.join(folder, name) for name in ("small.safetensors", "document.sds", "document.bin"))
    reader = [sys.executable, os.path.join(ROOT, "examples", "read_device_state.py")]
    expect(run([serdes, "save", "--from", source, "-o", state]).returncode == 0, "the state for the reader is written")
    golden = os.path.join(ROOT, "tests", "golden", "device_state")
    tensors = tensors_of(source)[0]
    for name in tensors:
        read = run([*reader, state, name, out])
        with open(out, "rb") as file:
            expect(read.returncode == 0 and file.read() == tensors[name][2], f"the reader by the document: {name}: {read.stderr}")
        os.remove(out)
    listed = {line.split("bytes  ")[1]: int(line.split()[0]) for line in run([*reader, state]).stdout.splitlines()}
    expect(listed == {name: len(data) for name, (_, _, data) in tensors.items()}, f"the reader by the document lists {listed}")
    # The same array in one file, and in shards in the parts of several processes.
    arrays = []
    for path in ("small.sds", "merged.sds"):
        read = run([*reader, os.path.join(golden, "v0", path), "w", out])
        with open(out, "rb") as file:
            arrays.append(file.read())
        expect(read.returncode == 0, f"the reader by the document: {path}: {read.stderr}")
    expect(len(arrays[0]) == 200 and arrays[0] == arrays[1], "the reader by the document puts shards together")
    future = run([*reader, os.path.join(golden, "future.sds")])
    expect(future.returncode == 1 and "too new" in future.stderr, f"the reader by the document: a future state: {future.stderr}")
    with open(state, "rb") as file:
        content = bytearray(file.read())
    for place, at in (("the header", 40), ("data", content.index(tensors["dtype.I64"][2])), ("the index", -100), ("the end", -30)):
        content[at] ^= 1
        with open(state, "wb") as file:
            file.write(content)
        content[at] ^= 1
        damaged = run([*reader, state])
        expect(damaged.returncode == 1 and "damaged" in damaged.stderr, f"the reader by the document: damage in {place}: {damaged.stderr}")


def direct(serdes, folder):
    """Tests that writes past the page cache have the same bytes, also if the file system refuses them, which the command reports."""
    source, plain = os.path.join(folder, "large.safetensors"), os.path.join(folder, "plain.sds")
    expect(run([serdes, "save", "--from", source, "-o", plain]).returncode == 0, "the state to compare with is written")
    with open(plain, "rb") as file:
        expected = file.read()

    def saved(place, label, went=None):
        state = os.path.join(place, "direct.sds")
        save = run([serdes, "save", "--from", source, "-o", state, "--direct", "--json"])
        expect(save.returncode == 0, f"direct on {label}: {save.stderr}")
        with open(state, "rb") as file:
            expect(file.read() == expected, f"direct on {label}: the same bytes")
        report = json.loads(save.stdout)
        expect(report["direct"] is (went if went is not None else report["direct"]), f"direct on {label}: {report}")
        expect(("takes no direct I/O" in save.stderr) is not report["direct"], f"direct on {label}: says {save.stderr!r}")
        restore = run([serdes, "restore", state, "--direct", "--json"])
        expect(restore.returncode == 0 and json.loads(restore.stdout)["direct"] is report["direct"],
               f"restored directly from {label}: {restore.stdout} {restore.stderr}")
        expect(("takes no direct I/O" in restore.stderr) is not report["direct"], f"restored directly from {label}: says {restore.stderr!r}")
        expect(os.listdir(place) == ["direct.sds"], f"direct on {label}: leaves {os.listdir(place)}")

    place = os.path.join(folder, "direct")
    os.mkdir(place)
    saved(place, "the file system of temporary files")
    # File systems in memory have no disk for direct writes: ramfs refuses them, tmpfs pretends to do them since Linux 6.6.
    for kind, went in (("tmpfs", None), ("ramfs", False)) if os.geteuid() == 0 else ():
        mounted = os.path.join(folder, kind)
        os.mkdir(mounted)
        if run(["mount", "-t", kind, kind, mounted]).returncode == 0:
            try:
                saved(mounted, kind, went)
            finally:
                run(["umount", mounted])
        else:
            print(f"skipped: no {kind} can be mounted here")


def wrong_input(serdes, folder):
    small = os.path.join(folder, "small.safetensors")
    state = os.path.join(folder, "old.sds")
    expect(run([serdes, "save", "--from", small, "-o", state]).returncode == 0, "the old state is written")
    with open(state, "rb") as file:
        old = file.read()

    def refused(label, command, status, **options):
        result = run(command, **options)
        expect(result.returncode == status, f"{label}: status {result.returncode}, not {status}: {result.stdout} {result.stderr}")
        expect(result.stderr.count("error") >= 1 and "panicked" not in result.stderr, f"{label}: says {result.stderr!r}")
        with open(state, "rb") as file:
            expect(file.read() == old, f"{label}: the old file is untouched")
        expect(not [name for name in os.listdir(folder) if ".partial" in name], f"{label}: leaves nothing")

    def save(source, *more):
        return [serdes, "save", "--from", source, "-o", state, *more]

    refused("no such file", save(os.path.join(folder, "absent.safetensors")), 2)
    text = os.path.join(folder, "text.safetensors")
    with open(text, "w") as file:
        file.write("this is no safetensors file, and long enough to look at")
    refused("not safetensors", save(text), 2)
    with open(small, "rb") as file:
        whole = file.read()
    truncated = os.path.join(folder, "truncated.safetensors")
    with open(truncated, "wb") as file:
        file.write(whole[:-3])
    refused("truncated", save(truncated), 2)
    unknown = os.path.join(folder, "unknown.safetensors")
    with open(unknown, "wb") as file:
        file.write(whole.replace(b'"BF16"', b'"XF16"'))
    refused("unknown dtype", save(unknown), 2)
    refused("a plug-in that is none", save(small, "--plugin", small), 2)
    refused("a plug-in that is absent", save(small, "--plugin", os.path.join(folder, "absent.so")), 2)
    refused("a device that is absent", save(small, "--device", "7"), 2)
    refused("a version that is absent", save(small, "--serdes-version", "99"), 2)
    refused("bad usage", [serdes, "save", "--from", small], 2)
    for cut in (0, 10, len(old) // 2, len(old) - 1):
        damaged = os.path.join(folder, "damaged.sds")
        with open(damaged, "wb") as file:
            file.write(old[:cut])
        result = run([serdes, "check", damaged, "--json"])
        expect(result.returncode == 2 and json.loads(result.stdout)["kind"] == "device_state",
               f"a state cut at {cut}: {result.returncode} {result.stdout}")
        refused(f"restore of a state cut at {cut}", [serdes, "restore", damaged], 2)
    if os.geteuid() == 0:
        full = os.path.join(folder, "full")
        os.mkdir(full)
        if run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", full]).returncode == 0:
            try:
                target = os.path.join(full, "state.sds")
                result = run([serdes, "save", "--from", os.path.join(folder, "large.safetensors"), "-o", target])
                expect(result.returncode == 2 and os.listdir(full) == [], f"disk full: {result.returncode} {result.stderr} {os.listdir(full)}")
            finally:
                run(["umount", full])
        else:
            print("skipped: no tmpfs can be mounted here")
    source = os.path.join(folder, "large.safetensors")
    for delay in (0.02, 0.05, 0.1):
        process = subprocess.Popen(save(source), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        with open(state, "rb") as file:
            content = file.read()
        expect(process.returncode in (0, 2) and (process.returncode == 0 or content == old),
               f"interrupted after {delay} s: status {process.returncode} {errors}")
        expect(not [name for name in os.listdir(folder) if ".partial" in name], f"interrupted after {delay} s: leaves nothing")
        if process.returncode == 0:
            with open(state, "wb") as file:
                file.write(old)


if __name__ == "__main__":
    main()
