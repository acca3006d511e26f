#!/usr/bin/env python3
"""Makes every call to the system fail that the command makes on its files, and looks at what is left.

    run.py --shim LIBRARY --serdes COMMAND [--example MANY_PROCESSES] [--runs N] [--trip NAME]...

Each trip is done once without faults, which counts its calls. Then each call fails, once and from then on, with each error that it may have, is cut
short, or finds the process killed before it. After each run:

- a writer has left the old files or the new ones, whole; the new ones where it said 0;
- it has left nothing else behind; what a killed one left goes with the next save;
- a reader has said what it says without faults, or 2;
- what the system does again when it is asked again (EINTR, short counts) is no failure at all.

`--runs` bounds the runs of a trip; which are taken is the same every time. Ends with 1 if a rule was broken.
"""

import argparse
import concurrent.futures
import errno
import hashlib
import itertools
import json
import math
import mmap
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile

CLASSES = ["open", "read", "write", "sync", "rename", "close", "mode", "remove", "list", "make", "lock", "cut"]
ERRORS = {
    "open": ["EIO", "EMFILE", "EACCES", "ENOSPC", "EINTR"],
    "read": ["EIO", "EINTR", "short"],
    "write": ["ENOSPC", "EIO", "EDQUOT", "EINTR", "short"],
    "sync": ["EIO", "ENOSPC", "EINTR"],
    "rename": ["EIO", "EACCES", "EXDEV", "ENOSPC"],
    "close": ["EIO", "EINTR"],
    "mode": ["EIO", "EPERM"],
    "remove": ["EIO", "EACCES"],
    "list": ["EIO", "EACCES"],
    "make": ["ENOSPC", "EACCES"],
    "lock": ["ENOLCK"],
    "cut": ["EIO"],
}
# What else a file system may say, NFS and quotas included; for runs in full.
MORE_ERRORS = {
    "open": ["ENFILE", "ENOMEM", "EPERM", "EROFS", "ELOOP", "ESTALE", "ETIMEDOUT", "EBUSY", "EDQUOT"],
    "read": ["ESTALE", "ETIMEDOUT", "ENOMEM", "EACCES", "ENXIO", "EREMOTEIO", "EBADMSG"],
    "write": ["EFBIG", "EPERM", "ESTALE", "ETIMEDOUT", "ENOMEM", "EROFS", "ENXIO"],
    "sync": ["EDQUOT", "ESTALE", "ETIMEDOUT", "ENOMEM", "EROFS"],
    "rename": ["EROFS", "EBUSY", "EPERM", "EDQUOT", "ESTALE", "ENOMEM", "ETIMEDOUT"],
    "close": ["ENOSPC", "EDQUOT", "ESTALE"],
    "mode": ["EROFS", "ESTALE", "EACCES"],
    "remove": ["EBUSY", "EROFS", "ESTALE", "EPERM"],
    "list": ["ESTALE", "ENOMEM", "EMFILE", "ETIMEDOUT"],
    "make": ["EROFS", "EDQUOT", "EIO"],
    "lock": ["EIO", "ENOMEM", "EINTR"],
    "cut": ["ENOSPC", "EPERM"],
}
# A new file may be there and its writer say 2: its name may not be on the disk yet.
AFTER_THE_RENAME = {"sync", "open", "close", "list", "remove", "lock"}
# Seconds; what takes longer hangs.
LONGEST = 120
# Violations of a trip that are printed.
SHOWN = 8
TINY = pathlib.Path(__file__).resolve().parent.parent / "data/safetensors/tiny.safetensors"


def safetensors(path, tensors):
    """A file of zeros, in tensors of these names, types and shapes."""
    header, end = {}, 0
    for name, (kind, width, shape) in tensors.items():
        begin, end = end, end + width * math.prod(shape)
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [begin, end]}
    header = json.dumps(header).encode()
    header += b" " * (-len(header) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        file.truncate(8 + len(header) + end)


def large_file(path):
    """One tensor of 72 MiB, above what is synced at a time."""
    safetensors(path, {"w": ("U8", 1, [72 << 20])})


def medium_file(path):
    """Tensors of several buffers, called as those of the small file."""
    safetensors(path, {
        "dense_0/bias": ("F32", 4, [4096]), "dense_1/bias": ("F32", 4, [1000]), "dense_1/kernel": ("F32", 4, [700, 1000]),
        "embedding": ("U8", 1, [3 << 20]), "step": ("I64", 8, []),
    })


class Trip:
    """A command, what it finds, and what it may leave."""

    statuses = (0, 2)
    # How a run gets what the trip finds: by links, which show what is changed where it lies.
    give = staticmethod(os.link)

    def __init__(self, name, command, inputs, old=(), reads_only=False, share=1):
        self.name, self.command, self.inputs, self.old = name, command, inputs, old
        # Where the runs are bounded, one in `share` of them is enough: they take so much longer.
        self.reads_only, self.share = reads_only, share

    def prepare(self, tools, folder):
        """Makes what the trip finds; `old` are commands that make what it replaces."""
        for make in self.inputs:
            make(tools, folder)
        for command in self.old:
            tools.call(command, folder)

    def run(self, tools, folder, environment):
        return tools.start(self.command, folder, environment)

    def is_whole(self, tools, folder, before, after):
        """Whether what is there can be used, where it is neither the old nor the new to the byte."""
        return False


class Checkpoint(Trip):
    def is_whole(self, tools, folder, before, after):
        data = {path.rsplit("-of-", 1)[1] for path in tree(folder) if ".data-" in path}
        return len(data) == 1 and tools.call(["check", "ck", "--verify-data"], folder).returncode == 0


class ShardSet(Trip):
    """Shards with their index, or one file, in place of others. What shards over others are called differs from run to run."""

    INDEX = "o.safetensors.index.json"
    # Files of others, whose names are nearly the same.
    OTHERS = ("o-00001-of-00009.safetensors", "o2-00001-of-00002.safetensors", "o-x-00001-of-00002.safetensors")

    def __init__(self, name, new, old=None, share=1):
        part = ["convert", "in.safetensors", "o.safetensors", "--only", "dense_1/*", "--shard-bytes", str(old)]
        super().__init__(name, ["convert", "in.safetensors", "o.safetensors", "--shard-bytes", str(new)], [source], [part] if old else [], share=share)

    def prepare(self, tools, folder):
        super().prepare(tools, folder)
        tools.call(["convert", "in.safetensors", "old.safetensors", "--only", "dense_1/*"], folder)
        for name in self.OTHERS if self.old else ():
            (folder / name).write_text(name)

    def places(self, folder):
        return [name for name in (self.INDEX, "o.safetensors") if (folder / name).exists()]

    def untouched(self, before):
        return {name: before[name] for name in ("in.safetensors", "old.safetensors", *self.OTHERS) if name in before}

    def is_whole(self, tools, folder, before, after):
        def is_one_of_them(place):
            return any(tools.call(["diff", place, other], folder).returncode == 0 for other in ("in.safetensors", "old.safetensors"))

        places, left = self.places(folder), tree(folder)
        stays = all(left.get(name) == found for name, found in self.untouched(before).items())
        return stays and (bool(places) or not self.old) and all(map(is_one_of_them, places))

    def more(self, folder, left, before):
        """What is there besides the files of one set and those that it has nothing to do with."""
        places = self.places(folder)
        known = {*self.untouched(before), *places}
        if self.INDEX in places:
            known.update(json.loads((folder / self.INDEX).read_text())["weight_map"].values())
        return [path for path in left if path not in known] + places[1:]


class Serve(Trip):
    """A server with a state, stopped as a service manager stops it: it saves what it has."""

    # A server refuses the file that another one has by another name, and runs go side by side.
    give = staticmethod(shutil.copy2)

    def run(self, tools, folder, environment):
        process = subprocess.Popen([tools.serdes, *self.command], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        # Nothing where it does not start, which is an answer.
        if process.stdout.readline():
            process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=LONGEST)
        return subprocess.CompletedProcess(self.command, process.returncode, output, errors)

    def is_whole(self, tools, folder, before, after):
        return tools.call(["check", "o.sds", "--verify-data"], folder).returncode == 0


class Parts(Trip):
    """Several processes save one state, beside a copy of the index of the state before."""

    statuses = (0, 1)

    def __init__(self):
        super().__init__("parts and merge", None, [])

    def prepare(self, tools, folder):
        self.run(tools, folder, os.environ.copy())
        shutil.copy(folder / "simulated.sds", folder / "backup.sds")

    def run(self, tools, folder, environment):
        command = [tools.example, "2", "3", "1000", str(folder)]
        return subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=LONGEST)

    def is_whole(self, tools, folder, before, after):
        states = [tools.call(["check", state, "--verify-data"], folder).returncode for state in ("simulated.sds", "backup.sds")]
        return states == [0, 0]


def source(tools, folder):
    shutil.copy(tools.source, folder / "in.safetensors")


def large(tools, folder):
    large_file(folder / "in.safetensors")


def state(tools, folder):
    tools.call(["save", "--from", str(tools.source), "-o", "s.sds"], folder)


def other_state(tools, folder):
    tools.call(["save", "--from", str(tools.source), "-o", "t.sds", "--serdes-version", "minimum"], folder)


def cut_state(tools, folder):
    state(tools, folder)
    os.truncate(folder / "s.sds", (folder / "s.sds").stat().st_size * 5 // 6)


def damaged_state(tools, folder):
    state(tools, folder)
    with open(folder / "s.sds", "r+b") as file:
        place = (folder / "s.sds").stat().st_size * 2 // 5
        file.seek(place)
        byte = file.read(1)
        file.seek(place)
        file.write(bytes([byte[0] ^ 1]))


def checkpoint(tools, folder):
    state(tools, folder)
    tools.call(["restore", "s.sds", "--to", "in"], folder)
    (folder / "s.sds").unlink()


def trips():
    older = ["save", "--from", str(TINY), "--serdes-version", "minimum", "-o", "o.sds"]
    save = ["save", "--from", "in.safetensors", "-o", "o.sds"]
    part = ["restore", "s.sds", "--only", "dense_1/*"]
    yield Trip("save", save, [source], [older])
    yield Trip("save, new", save, [source])
    yield Trip("save, direct", [*save, "--direct"], [source], [older])
    yield Trip("save, no sync", [*save, "--sync", "none"], [source], [older])
    yield Trip("save from a checkpoint", ["save", "--from", "in", "-o", "o.sds"], [checkpoint], [older])
    yield Trip("save, 72 MiB", save, [large], [older], share=10)
    yield Trip("restore to sds", ["restore", "s.sds", "--to", "o.sds"], [state], [older])
    for suffix in ("safetensors", "npz"):
        command = [*part, "--to", f"o.{suffix}"]
        yield Trip(f"restore to {suffix}", command, [state], [["restore", "s.sds", "--only", "dense_0/bias", "--to", f"o.{suffix}"]])
    command = ["restore", "s.sds", "--only", "step", "--to", "o.npy"]
    yield Trip("restore to npy", command, [state], [["restore", "s.sds", "--only", "dense_0/bias", "--to", "o.npy"]])
    yield Checkpoint("restore to a checkpoint", [*part, "--to", "ck"], [state], [["restore", "s.sds", "--only", "step", "--to", "ck"]])
    yield Checkpoint("restore to a new checkpoint", [*part, "--to", "ck"], [state])
    old = ["restore", "t.sds", "--to", "o.safetensors"]
    yield Trip("salvage of a cut state", ["restore", "s.sds", "--salvage", "--to", "o.safetensors", "--json"], [cut_state, other_state], [old])
    yield Trip("salvage of a damaged state", ["restore", "s.sds", "--salvage", "--to", "o.safetensors", "--json"], [damaged_state, other_state], [old])
    yield ShardSet("shards over shards", 10_000, 100)
    yield ShardSet("shards over a file", 10_000, 1 << 20, share=2)
    yield ShardSet("a file over shards", 1 << 20, 100, share=2)
    yield ShardSet("shards, new", 10_000, share=2)
    yield Trip("check", ["check", "s.sds", "--verify-data", "--json"], [state], reads_only=True)
    yield Trip("check of a checkpoint", ["check", "in", "--verify-data", "--json"], [checkpoint], reads_only=True)
    yield Trip("diff", ["diff", "s.sds", "t.sds", "--json"], [state, other_state], reads_only=True)
    yield Trip("inspect", ["inspect", "s.sds", "--json"], [state], reads_only=True)
    yield Serve("serve with a state", ["serve", "--listen", "127.0.0.1:0", "--state", "o.sds"], [], [older])
    yield Parts()


class Tools:
    source = TINY

    def __init__(self, options):
        self.serdes, self.shim, self.example = options.serdes, options.shim, options.example

    def start(self, command, folder, environment):
        return subprocess.run([self.serdes, *command], cwd=folder, env=environment, capture_output=True, timeout=LONGEST)

    def call(self, command, folder):
        return self.start(command, folder, os.environ.copy())


def tree(folder):
    """Each file below a folder, and what is in it."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            with open(path, "rb") as file:
                found[str(path.relative_to(folder))] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def results(output):
    """What a command said, without what it measured and where it was."""
    said = []
    for line in output.decode(errors="replace").splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            value = line
        if isinstance(value, dict):
            value = {key: part for key, part in value.items() if "second" not in key}
            # That something beside the point could not be read is said, and changes nothing.
            value["warnings"] = [warning for warning in value.get("warnings", []) if "cannot be read" not in str(warning)]
        said.append(value)
    return said


class Fault:
    def __init__(self, kind, at, how, forever):
        self.kind, self.at, self.how, self.forever = kind, at, how, forever

    def __str__(self):
        return f"{self.kind} {self.at} {self.how}{' and all that follow' if self.forever else ''}"

    def environment(self):
        how = self.how if self.how in ("short", "kill") else str(getattr(errno, self.how))
        return {"FAULTS_CLASS": self.kind, "FAULTS_AT": str(self.at), "FAULTS_HOW": how, **({"FAULTS_FOREVER": "1"} if self.forever else {})}

    def is_transparent(self):
        """Whether asking again is enough."""
        return self.how in ("EINTR", "short") or self.kind in ("close", "lock")


def faults(counts, in_full):
    """Every fault that the calls of a trip may meet."""
    for kind in CLASSES:
        errors = ERRORS[kind] + (MORE_ERRORS[kind] if in_full else [])
        for at, how, forever in itertools.product(range(1, counts[kind] + 1), errors, (False, True)):
            # For ever is for ever.
            if not (forever and how == "EINTR" and kind != "close"):
                yield Fault(kind, at, how, forever)
    for at in range(1, counts["all"] + 1):
        yield Fault("any", at, "kill", False)


def environment(tools, folder, counts, fault):
    with open(counts, "wb") as file:
        file.write(bytes(mmap.PAGESIZE))
    made = {**os.environ, "LD_PRELOAD": tools.shim, "FAULTS_BELOW": str(folder), "FAULTS_COUNTS": str(counts)}
    return made | (fault.environment() if fault else {})


def read_counts(path):
    numbers = struct.unpack(f"{len(CLASSES) + 1}q", path.read_bytes()[: 8 * (len(CLASSES) + 1)])
    return dict(zip([*CLASSES, "all"], numbers))


class Course:
    """The runs of one trip."""

    def __init__(self, tools, trip, place):
        self.tools, self.trip, self.place = tools, trip, place
        self.template = place / "template"
        self.template.mkdir()
        trip.prepare(tools, self.template)
        self.before = tree(self.template)
        folder, counts = self.fresh("first")
        self.normal = trip.run(tools, folder, environment(tools, folder, counts, None))
        self.counts = read_counts(counts)
        self.after = tree(folder)
        self.remove(folder)
        allowed = trip.statuses if not trip.reads_only else (0, 1)
        if self.normal.returncode not in (*allowed, 1) or self.counts["all"] == 0:
            raise SystemExit(f"{trip.name}: does not work without faults: {self.normal}")

    def fresh(self, name):
        folder = self.place / name
        shutil.copytree(self.template, folder, copy_function=self.trip.give)
        return folder, self.place / f"{name}.counts"

    def remove(self, folder):
        shutil.rmtree(folder)
        (self.place / f"{folder.name}.counts").unlink(missing_ok=True)

    def judge(self, number_and_fault):
        """What is wrong after a run with a fault; `None` if all is as it should be."""
        number, fault = number_and_fault
        folder, counts = self.fresh(str(number))
        try:
            try:
                done = self.trip.run(self.tools, folder, environment(self.tools, folder, counts, fault))
            except subprocess.TimeoutExpired:
                return "it hangs"
            wrong = self.judge_run(fault, done, folder)
            if wrong is None:
                return None
            said = " ".join(done.stderr.decode(errors="replace").split())
            return f"{wrong}; status {done.returncode}: {said[:300]}"
        finally:
            self.remove(folder)

    def judge_run(self, fault, done, folder):
        left = tree(folder)
        if fault.how == "kill":
            if done.returncode == -signal.SIGKILL:
                return self.judge_killed(folder, left)
            # It was done before the call came, as threads fall.
        elif done.returncode not in (*self.trip.statuses, self.normal.returncode):
            return "no status of its own"
        if fault.is_transparent() and done.returncode != self.normal.returncode:
            return "what may be asked again was a failure"
        if self.trip.reads_only:
            if left != self.before:
                return "a reader changed files"
            same = results(done.stdout) == results(self.normal.stdout)
            return None if same or done.returncode == 2 else "another answer"
        return self.judge_written(fault, done, folder, left)

    def is_there(self, wanted, left):
        return all(left.get(path) == found for path, found in wanted.items())

    def judge_written(self, fault, done, folder, left):
        old, new = self.is_there(self.before, left), self.is_there(self.after, left)
        whole = old or new or self.trip.is_whole(self.tools, folder, self.before, self.after)
        if not whole:
            return f"neither old nor new is whole: {sorted(left)}"
        if done.returncode == self.normal.returncode and old and not new and self.after != self.before:
            return "a success, and the old is there"
        if done.returncode != self.normal.returncode and new and not old and fault.kind not in {*AFTER_THE_RENAME, "any"}:
            return "a failure, and the new is there"
        if fault.kind != "remove":
            return self.leftovers(fault, done, folder, left)
        return self.judge_next(folder)

    def leftovers(self, fault, done, folder, left):
        if isinstance(self.trip, ShardSet):
            more = self.trip.more(folder, left, self.before)
            # Files of the old set stay while a reader may need them; the next save removes them.
            if more and (fault.kind in AFTER_THE_RENAME or done.returncode == self.normal.returncode):
                return self.judge_next(folder)
            return f"left behind: {more}" if more else None
        more = [path for path in left if path not in self.before and path not in self.after]
        if isinstance(self.trip, Parts):
            more = [path for path in more if ".partial" in path]
        return f"left behind: {more}" if more else None

    def judge_killed(self, folder, left):
        if self.trip.reads_only:
            return None if left == self.before else "a reader changed files"
        old, new = self.is_there(self.before, left), self.is_there(self.after, left)
        if not (old or new or self.trip.is_whole(self.tools, folder, self.before, self.after)):
            return f"neither old nor new is whole: {sorted(left)}"
        return self.judge_next(folder)

    def judge_next(self, folder):
        """Whether the next save works and clears up."""
        again = self.trip.run(self.tools, folder, os.environ.copy())
        if again.returncode != self.normal.returncode:
            return f"the next one fails: {again.stderr.decode(errors='replace')[-300:]}"
        left = tree(folder)
        partial = [path for path in left if ".partial" in path]
        if isinstance(self.trip, ShardSet):
            partial += self.trip.more(folder, left, self.before)
        if partial:
            return f"the next one leaves {partial}"
        if not (self.is_there(self.after, left) or self.trip.is_whole(self.tools, folder, self.before, self.after)):
            return f"the next one is not whole: {sorted(left)}"
        return None


def do_trip(tools, trip, runs, workers):
    # Memory is as good as a disk here, and faster: what a disk may refuse is injected.
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as place:
        course = Course(tools, trip, pathlib.Path(place).resolve())
        all_of_them = list(faults(course.counts, in_full=not runs))
        chosen = all_of_them
        if runs and len(chosen) > runs // trip.share:
            chosen = random.Random(0).sample(all_of_them, runs // trip.share)
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            verdicts = list(pool.map(course.judge, enumerate(chosen)))
        wrong = [(fault, verdict) for fault, verdict in zip(chosen, verdicts) if verdict]
        if tree(course.template) != course.before:
            wrong.append(("some fault", "a file was changed where it lies"))
    print(f"{trip.name}: {len(chosen)} runs of {len(all_of_them)} ({course.counts['all']} calls), {len(wrong)} wrong", flush=True)
    for fault, verdict in wrong[:SHOWN]:
        print(f"    {fault}: {verdict}", flush=True)
    if len(wrong) > SHOWN:
        print(f"    and {len(wrong) - SHOWN} more", flush=True)
    return len(chosen), len(wrong)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--shim", required=True)
    parser.add_argument("--serdes", required=True)
    parser.add_argument("--example")
    parser.add_argument("--runs", type=int, default=0, help="runs of a trip at most; 0 for every call with every error")
    parser.add_argument("--trip", action="append", help="only trips whose name contains this")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    options = parser.parse_args()
    options.shim, options.serdes = os.path.abspath(options.shim), os.path.abspath(options.serdes)
    tools = Tools(options)
    tools.example = options.example and os.path.abspath(options.example)
    chosen = [trip for trip in trips() if not options.trip or any(part in trip.name for part in options.trip)]
    chosen = [trip for trip in chosen if tools.example or not isinstance(trip, Parts)]
    done = wrong = 0
    with tempfile.TemporaryDirectory() as place:
        medium = pathlib.Path(place) / "medium.safetensors"
        medium_file(medium)
        # Small files meet every kind of call; larger ones meet more of each.
        for tools.source in [TINY] if options.runs else [TINY, medium]:
            for trip in chosen:
                # What does not read the source meets nothing new in the second one.
                if tools.source == medium and (trip.share > 1 or isinstance(trip, (Parts, Serve))):
                    continue
                counts = do_trip(tools, trip, options.runs, options.workers)
                done, wrong = done + counts[0], wrong + counts[1]
    print(f"{done} runs, {wrong} wrong")
    sys.exit(1 if wrong or not done else 0)


main()
