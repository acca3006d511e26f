"""Compares TensorFlow and the host of this project on plug-ins with fault switches, built against TensorFlow's own header.

    PYTHON tests/interop/tensorflow_plugin_faults.py --serdes BINARY --host-plugin libserdes_host_plugin.so

PYTHON has TensorFlow 2.21. The stub of tests/plugins is compiled against the StreamExecutor header of the TensorFlow package; a file beside
each copy of it has the switches of that copy. TensorFlow ends the process when it refuses a plug-in, so each copy is loaded in a process
of its own, forked from one that has TensorFlow imported already.

Every case has the expected behaviour of TensorFlow (loads, refuses, fails at use, crashes) and of this project's host, and the reason if they
differ. Both are checked, so a change of TensorFlow fails the case.
"""

import argparse
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from checks import Checks

ROOT = pathlib.Path(__file__).resolve().parents[2]
TIME_LIMIT_SECONDS = 60

# Replaces the header of this project when the stub is built against TensorFlow's.
SHIM = """
#include "tensorflow/c/experimental/stream_executor/stream_executor.h"
#define SERDES_SE_RFC_257 257
#define SERDES_SE_TENSORFLOW_2_5 20500
#define SERDES_SE_TENSORFLOW_2_8 20800
#define SERDES_SE_LAYOUT 21400
#define SERDES_SE_EXPORT __attribute__((visibility("default")))
"""

WORKS = "works"  # loads, and moves bytes to the device and back
REFUSED = "refused"  # at load, with a message
FAILS = "fails"  # at use, with a message
CRASHES = "crashes"  # at load or use, without one of its own
NO_DEVICES = "no devices"
CORRUPT = "corrupt"  # the bytes that come back are others
HANGS = "hangs"

PLATFORM_FUNCTIONS = [
    "create_device", "destroy_device", "create_device_fns", "destroy_device_fns", "create_stream_executor",
    "destroy_stream_executor",
]
EXECUTOR_FUNCTIONS = [
    "allocate", "deallocate", "get_allocator_stats", "host_memory_allocate", "host_memory_deallocate", "device_memory_usage",
    "create_stream", "destroy_stream", "create_stream_dependency", "get_stream_status", "create_event", "destroy_event",
    "get_event_status", "record_event", "wait_for_event", "memcpy_dtoh", "memcpy_htod", "sync_memcpy_dtoh", "sync_memcpy_htod",
    "block_host_for_event", "synchronize_all_activity", "host_callback", "mem_zero", "memset", "memset32",
]
OPTIONAL_FUNCTIONS = [
    "memcpy_dtod", "sync_memcpy_dtod", "block_host_until_done", "create_timer", "destroy_timer", "start_timer", "stop_timer",
    "create_timer_fns", "destroy_timer_fns", "nanoseconds", "get_numa_node", "get_memory_bandwidth", "get_gflops",
    "hardware_name", "device_vendor", "pci_bus_id", "unified_memory_allocate", "unified_memory_deallocate",
]
STRUCTS = ["SE_PlatformRegistrationParams", "SP_Platform", "SP_PlatformFns", "SP_DeviceFns", "SP_StreamExecutor"]

LIES = "the host uses the plug-in all the same; conformance says that the size is wrong"

# The beginning of the plug-in's own messages, which both hosts print.
TOLD = "as told: "


class Case:
    """One set of fault switches: the behaviour of TensorFlow and of this host, and the words that their messages must have."""

    def __init__(self, switches, tensorflow, ours=None, told=(), behaviour=None, why=""):
        self.switches = switches
        self.tensorflow = tensorflow
        self.ours = ours or tensorflow
        self.told = (told,) if isinstance(told, str) else told
        self.behaviour = behaviour
        self.why = why
        assert self.ours == self.tensorflow or why, switches


def cases():
    yield Case("", WORKS)
    # Statuses, handles and ordinals that are never written.
    for switches in ["status=ok", "handles=null", "device=gone", "params=emptied", "deprecated=1", "stats=0", "type=CUSTOM"]:
        yield Case(switches, WORKS)
    # Sizes.
    for structure in STRUCTS:
        yield Case(f"size.{structure}=0", REFUSED, told="struct_size")
        yield Case(f"size.{structure}=unwritten", WORKS)
        yield Case(f"size.{structure}=9999", WORKS, FAILS, behaviour="struct_sizes", why=LIES)
        if structure != "SP_DeviceFns":
            yield Case(f"size.{structure}=8", WORKS, REFUSED,
                       why="TensorFlow asks for more than 0 only; a field beyond a struct's size is not there")
    yield Case("size.SP_DeviceFns=8", WORKS)
    yield Case("size.SP_Platform=40", WORKS)
    yield Case("size.SP_Platform=40\nnull=destroy_timer_fns", WORKS)
    yield Case("size.SP_StreamExecutor=264", WORKS, REFUSED, why="264 is the layout of 2.5, whose last function is another")
    yield Case("size.SP_Device=0", FAILS, FAILS)
    yield Case("size.SP_Device=8", WORKS)
    yield Case("size.SP_Device=9999", WORKS)
    yield Case("device=unwritten", WORKS)
    for structure in ["SP_DeviceMemoryBase", "SP_AllocatorStats", "SP_TimerFns"]:
        for size in ["0", "8", "9999", "unwritten"]:
            lie = {"SP_DeviceMemoryBase0": "allocate", "SP_TimerFns0": "struct_sizes", "SP_TimerFns9999": "struct_sizes"}.get(structure + size)
            yield Case(f"size.{structure}={size}", WORKS, FAILS if lie else WORKS, behaviour=lie, why=LIES)
    # Newer headers. TensorFlow's blocks are as long as its structs: writes beyond them damage other memory.
    for extra in [8, 16, 24, 32, 64, 128, 256]:
        yield Case(f"extra={extra}", {WORKS, CRASHES}, WORKS, why="our blocks are longer than any struct")
    # Functions that are NULL.
    for field in ["destroy_platform", "destroy_platform_fns", *PLATFORM_FUNCTIONS, *EXECUTOR_FUNCTIONS]:
        yield Case(f"null={field}", REFUSED, told=field)
    yield Case("null=get_device_count", CRASHES, REFUSED, told="get_device_count", why="TensorFlow calls it without asking")
    for field in OPTIONAL_FUNCTIONS:
        yield Case(f"null={field}", WORKS)
    for field in ["unified_memory_allocate", "unified_memory_deallocate"]:
        yield Case(f"unified=1\nnull={field}", REFUSED, told=field)
    yield Case("unified=1", WORKS)
    # Names.
    for field in ["name", "type"]:
        for value in ["NULL", "", "stub", "STUB2", "A:B", "A/B", "A-B", "A B", "_STUB"]:
            yield Case(f"{field}={value}", REFUSED, told=field)
    # Version numbers.
    yield Case("major=7", WORKS, REFUSED, told="major_version", why="the versioning strategy: another MAJOR is another API")
    yield Case("major=0", WORKS)
    # Errors at each step.
    for call in ["SE_InitPlugin", "create_device_fns", "create_stream_executor"]:
        yield Case(f"error={call}", REFUSED, told=TOLD + call)
    yield Case("error=after", REFUSED, told="no hardware")
    yield Case("error=create_timer_fns", WORKS, FAILS, behaviour="timer_nanoseconds", why="TensorFlow never asks for timers")
    yield Case("error=get_device_count", NO_DEVICES)
    for count in ["0", "-3", "unwritten"]:
        yield Case(f"devices={count}", NO_DEVICES)
    for call, behaviour in [("create_device", "create_device"), ("memcpy_htod", "memcpy_htod"), ("memcpy_dtoh", "memcpy_dtoh")]:
        yield Case(f"error={call}", FAILS, told=TOLD + call, behaviour=behaviour)
    for call in ["create_stream", "create_event"]:
        yield Case(f"error={call}", {FAILS, CRASHES}, FAILS, told=TOLD + call, behaviour=call, why="TensorFlow cannot go on then")
    # Functions that the conformance suite calls and TensorFlow does not call here.
    for call in ["get_stream_status", "wait_for_event", "block_host_for_event", "block_host_until_done", "sync_memcpy_dtoh",
                 "sync_memcpy_htod", "sync_memcpy_dtod", "mem_zero", "memset", "memset32", "create_timer", "start_timer",
                 "stop_timer"]:
        yield Case(f"error={call}", WORKS, FAILS, told=TOLD + call, why="TensorFlow does not call it here")
    for callback in ["drop", "twice", "refuse"]:
        yield Case(f"callback={callback}", WORKS, FAILS, behaviour="host_callback", why="TensorFlow does not call it here")
    yield Case("memory=null", FAILS, behaviour="allocate")
    yield Case("memory=small", WORKS, FAILS, behaviour="allocate", why="TensorFlow does not look at the size that it was given")
    yield Case("memory=unaligned", WORKS, FAILS, behaviour="allocate_alignment", why="conformance: TensorFlow's kernels need alignment")
    yield Case("usage=0", FAILS, WORKS, why="the C API lets a plug-in say that it cannot tell")
    for state in ["0", "1", "7", "-1"]:
        yield Case(f"event={state}", {REFUSED, FAILS, CRASHES}, FAILS, behaviour="record_event", why="TensorFlow ends the process")
    yield Case("corrupt=1", CORRUPT, FAILS, behaviour="sync_memcpy_dtoh", why="TensorFlow cannot know; conformance compares")
    yield Case("short=1", CORRUPT, FAILS, behaviour="memcpy_dtoh", why="TensorFlow cannot know; conformance compares")
    yield Case("late=1", CORRUPT, FAILS, behaviour="memcpy_dtoh", why="TensorFlow asks neither stream nor event for an error here")
    yield Case("slow=memcpy_htod\nslow=memcpy_dtoh\nslow=create_stream", WORKS)
    for call in ["SE_InitPlugin", "create_stream_executor", "get_device_count", "memcpy_dtoh", "create_stream"]:
        yield Case(f"hang={call}", HANGS, told=call)


# Runs in the forked child: loads the plug-in, finds the device, copies bytes to it and back.
def use_with_tensorflow(tensorflow, load, numpy, library, device_type, corrupts):
    load(str(library))
    devices = tensorflow.config.list_logical_devices(device_type)
    if not devices:
        return NO_DEVICES
    array = numpy.arange(100_000, dtype=numpy.float32)
    # The source is kept, so that the result cannot reuse its memory and be right by chance.
    with tensorflow.device("CPU"):
        source = tensorflow.constant(array.copy())
    with tensorflow.device(devices[0].name):
        tensor = tensorflow.identity(source)
    if corrupts:
        # Two flips of the same bit cancel out; the copy between devices is the third.
        with tensorflow.device(devices[1].name):
            tensor = tensorflow.identity(tensor)
    spoilt = [numpy.full(100_000, 7, numpy.float32) for _ in range(8)]
    del spoilt
    return WORKS if numpy.array_equal(tensor.numpy(), array) else CORRUPT


def in_child(work, limit):
    """Runs `work` in a forked process; returns its outcome, and all of its output."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.dup2(writing, 1)
        os.dup2(writing, 2)
        try:
            print(f"\noutcome: {work()}", flush=True)
        except BaseException as failure:  # noqa: BLE001: all of it is the result
            print(f"\noutcome: {FAILS}\n{type(failure).__name__}: {failure}", flush=True)
        os._exit(0)
    os.close(writing)
    output, end, late = b"", time.monotonic() + limit, False
    while True:
        late = not select.select([reading], [], [], max(0, end - time.monotonic()))[0]
        part = b"" if late else os.read(reading, 1 << 16)
        if not part:
            break
        output += part
    if late:
        os.kill(child, signal.SIGKILL)
    os.close(reading)
    _, status = os.waitpid(child, 0)
    text = output.decode(errors="replace")
    if late:
        return HANGS, text
    outcome = [line.removeprefix("outcome: ") for line in text.splitlines() if line.startswith("outcome: ")]
    if outcome:
        return outcome[-1], text
    # TensorFlow's own checks log a fatal line with a file and a place and abort; anything else is a crash.
    fatal = [line for line in text.splitlines() if " F " in line[:60] or line.startswith("F0")]
    checked = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGABRT and fatal
    return (REFUSED if checked else CRASHES), text


def build(directory, include):
    shim = directory / "include"
    shim.mkdir()
    (shim / "serdes_stream_executor.h").write_text(SHIM)
    library = directory / "libstub.so"
    command = [os.environ.get("CC", "cc"), "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", f"-I{shim}", "-isystem", include]
    subprocess.run([*command, str(ROOT / "tests/plugins/stub_plugin.c"), "-o", str(library)], check=True)
    return library


class Stub:
    """A copy of the stub with fault switches, in a folder of its own."""

    def __init__(self, directory, library, number, switches):
        self.folder = directory / f"case_{number}"
        self.folder.mkdir()
        self.library = self.folder / "libstub.so"
        shutil.copy(library, self.library)
        self.type = "STUB"
        (self.folder / "libstub.so.switches").write_text(switches + "\n")
        for line in switches.splitlines():
            if line.startswith("type="):
                self.type = line.removeprefix("type=")

    def kinds_left(self):
        """Returns the kinds of objects that were created and destroyed a different number of times."""
        counts = (self.folder / "libstub.so.counts").read_bytes()
        numbers = [int.from_bytes(counts[at:at + 8], sys.byteorder, signed=True) for at in range(0, len(counts), 8)]
        return [kind for kind, pair in enumerate(zip(numbers[::2], numbers[1::2])) if pair[0] != pair[1]]


def with_serdes(serdes, stub, case, limit):
    """Returns the outcome of this host: the registration and, if that is accepted, the conformance suite."""
    def run(*arguments):
        # In a child process of the command, a crash of the host would count as the plug-in's.
        command = [serdes, "plugin", *arguments, "--in-process", "--json"]
        return subprocess.run(command, capture_output=True, text=True, timeout=limit)
    if case.ours == HANGS:
        # Status 2 if it hangs when it is opened; a failed behaviour if it hangs later.
        verify = run("verify", str(stub.library), "--time-limit", "2")
        named = case.told[0] in verify.stdout and "2s" in verify.stdout
        return (HANGS if verify.returncode in (1, 2) and named else f"status {verify.returncode}"), verify.stdout
    check = run("check", str(stub.library))
    if check.returncode not in (0, 1):
        return CRASHES, f"exit status {check.returncode}: {check.stdout}{check.stderr}"
    report = json.loads(check.stdout)
    # Objects without a function to destroy them are left. Short parameters have none, and parameters with an error are not used.
    may_leave = "null=destroy_" in case.switches or "size.SE_PlatformRegistrationParams" in case.switches or "error=after" in case.switches
    if not may_leave and (left := stub.kinds_left()):
        return "leaks", f"kinds {left} of {check.stdout}"
    if not report["accepted"]:
        return REFUSED, check.stdout
    if report["devices"] == 0:
        return NO_DEVICES, check.stdout
    verify = run("verify", str(stub.library))
    if verify.returncode not in (0, 1):
        return CRASHES, f"exit status {verify.returncode}: {verify.stdout}{verify.stderr}"
    failed = [line for line in map(json.loads, verify.stdout.splitlines()) if line.get("result") == "fail"]
    if case.behaviour and failed and not any(line["behaviour"] == case.behaviour for line in failed):
        return f"fails without {case.behaviour}", verify.stdout
    return (FAILS if failed else WORKS), "".join(json.dumps(line) for line in failed)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serdes", required=True)
    parser.add_argument("--host-plugin")
    parser.add_argument("--only", help="only cases with this text in their switches")
    arguments = parser.parse_args()

    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "0"
    import numpy
    import tensorflow
    from tensorflow.python.framework.load_library import load_pluggable_device_library

    checks = Checks()
    with tempfile.TemporaryDirectory() as directory:
        directory = pathlib.Path(directory)
        library = build(directory, tensorflow.sysconfig.get_include())
        for number, case in enumerate(cases()):
            if arguments.only and arguments.only not in case.switches:
                continue
            stub = Stub(directory, library, number, case.switches)
            limit = 5 if HANGS in case.tensorflow else TIME_LIMIT_SECONDS
            theirs, said = in_child(
                lambda: use_with_tensorflow(tensorflow, load_pluggable_device_library, numpy, stub.library, stub.type,
                                           "corrupt=" in case.switches), limit)
            (stub.folder / "libstub.so.counts").unlink(missing_ok=True)
            try:
                ours, report = with_serdes(arguments.serdes, stub, case, TIME_LIMIT_SECONDS)
            except subprocess.TimeoutExpired:
                ours, report = HANGS, ""
            expected = case.tensorflow if isinstance(case.tensorflow, set) else {case.tensorflow}
            name = case.switches.replace("\n", ", ") or "no switches"
            problems = []
            if theirs not in expected:
                problems.append(f"TensorFlow: {theirs}, expected {sorted(expected)}\n{said[-1500:]}")
            if ours != case.ours:
                problems.append(f"serdes: {ours}, expected {case.ours}\n{report[-1500:]}")
            problems += [f"not told: {part}\n{report[-1500:]}" for part in case.told if part not in report]
            checks.check(name, not problems, "\n      ".join(problems))
            shutil.rmtree(stub.folder)
    return checks.end()


if __name__ == "__main__":
    sys.exit(main())
