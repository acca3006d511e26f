"""Tests that real TensorFlow loads StreamExecutor plug-ins of this project, and works with their devices.

    PYTHON tests/interop/tensorflow_plugin.py --serdes BINARY --host-plugin libserdes_host_plugin.so [--template libtemplate_plugin.so]

PYTHON has TensorFlow 2.21. Each case runs in a child process with a time limit, because TensorFlow ends the process when it refuses a
plug-in. Without --template the template plug-in is built with cargo; the C plug-in is always built with cc.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap

from checks import Checks

ROOT = pathlib.Path(__file__).resolve().parents[2]
TIME_LIMIT_SECONDS = 300

# The beginning of every child: loads the plug-in, and lists the devices of its type.
PROLOGUE = """
import os, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf
from tensorflow.python.framework.load_library import load_pluggable_device_library
load_pluggable_device_library(PLUGIN)
devices = [device.name for device in tf.config.list_logical_devices(TYPE)]
assert len(devices) == COUNT, devices
device = devices[0]
generator = np.random.default_rng(42)

def on_device(array, where=None):
    # A tensor on the device, by a copy that the device itself holds.
    with tf.device(where or device):
        return tf.identity(tf.constant(array))

def same(left, right):
    left, right = np.ascontiguousarray(left), np.ascontiguousarray(right)
    assert left.dtype == right.dtype and left.shape == right.shape, (left.dtype, right.dtype, left.shape, right.shape)
    assert left.tobytes() == right.tobytes(), (left.dtype, left.shape)
"""

CONSTANTS = """
with tf.device(device):
    constant = tf.constant([[1.5, -2.0], [0.0, 3.25]])
    copy = tf.identity(constant)
    assert copy.device.endswith(device.split("/")[-1]), copy.device
    same(copy.numpy(), np.array([[1.5, -2.0], [0.0, 3.25]], np.float32))
    same(tf.reshape(copy, [4]).numpy(), np.array([1.5, -2.0, 0.0, 3.25], np.float32))
same(tf.constant(7.0).numpy(), np.float32(7))
"""

VARIABLES = """
array = generator.standard_normal((64, 32)).astype(np.float32)
with tf.device(device):
    variable = tf.Variable(array)
    same(variable.numpy(), array)
    variable.assign(array * 2)
    same(variable.read_value().numpy(), array * 2)
# Without a kernel of its own, an operation runs on the CPU, with copies there and back. (Not so assign_add: it would run on the CPU with
# the variable's memory left on the device, which is only right where the device's memory is the CPU's.)
variable.assign(variable + array)
np.testing.assert_array_equal(variable.numpy(), array * 2 + array)
"""

FUNCTIONS = """
@tf.function
def work(tensor):
    with tf.device(device):
        return tf.identity(tf.reshape(tf.identity(tensor), [-1]))

for size in (1, 1000, 100000):
    array = generator.standard_normal((size, 2)).astype(np.float32)
    same(work(tf.constant(array)).numpy(), array.reshape(-1))
    same(work(on_device(array)).numpy(), array.reshape(-1))
"""

DTYPES = """
dtypes = [tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.complex64, tf.complex128, tf.bool, tf.int8, tf.int16,
          tf.int64, tf.uint8, tf.uint16, tf.uint32, tf.uint64, tf.int32]
assert len(dtypes) == 15
for dtype in dtypes:
    kind = dtype.as_numpy_dtype
    for size in (1, 7, 1024, 100003):
        raw = generator.integers(0, 2 if dtype == tf.bool else 256, size * np.dtype(kind).itemsize, np.uint8)
        array = raw.view(kind)
        same(on_device(array).numpy(), array)
"""

SIZES = """
for size in [0, 1, 3, 63, 64, 65, 4095, 4096, 1 << 16, (1 << 20) + 1, 1 << 22, 1 << 24, (1 << 26) + 5, 1 << 27, 1 << 28]:
    if size > LARGEST:
        continue
    array = np.resize(generator.integers(0, 256, min(size, 1 << 20) + 13, np.uint8), size)
    tensor = on_device(array)
    back = tensor.numpy()
    assert back.shape == array.shape and np.array_equal(back, array), size
    del tensor, back
"""

LIVE = """
arrays = [generator.standard_normal(int(size)).astype(np.float32) for size in generator.integers(1, 20000, 300)]
tensors = [on_device(array) for array in arrays]
order = generator.permutation(300)
for index in order[:150]:
    same(tensors[index].numpy(), arrays[index])
for index in order[:150]:
    tensors[index] = None
for index in order[:150]:
    tensors[index] = on_device(arrays[index] + 1)
for index in order[150:]:
    same(tensors[index].numpy(), arrays[index])
for index in order[:150]:
    same(tensors[index].numpy(), arrays[index] + 1)
"""

THREADS = """
import threading
failures = []

def work(seed):
    try:
        mine = np.random.default_rng(seed)
        for _ in range(40):
            array = mine.integers(0, 256, int(mine.integers(1, 200000)), np.uint8)
            tensor = on_device(array, devices[seed % len(devices)])
            same(tf.identity(tensor).numpy(), array)
    except BaseException as failure:
        failures.append(failure)

threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not failures, failures[0]
"""

BETWEEN = """
for size in (0, 1, 1000, 1 << 20, (1 << 24) + 1):
    array = np.resize(generator.integers(0, 256, min(size, 1 << 16) + 1, np.uint8), size)
    tensor = on_device(array, devices[0])
    for hop in range(4):
        where = devices[(hop + 1) % len(devices)]
        with tf.device(where):
            tensor = tf.identity(tensor)
        assert tensor.device.endswith(where.split("/")[-1]), tensor.device
    same(tensor.numpy(), array)
"""

CASES = {
    "constants": CONSTANTS,
    "variables": VARIABLES,
    "functions": FUNCTIONS,
    "dtypes": DTYPES,
    "sizes": SIZES,
    "live": LIVE,
    "threads": THREADS,
}


def run(arguments, environment=None):
    """Runs a command; returns a description of its failure, or None."""
    try:
        result = subprocess.run(arguments, capture_output=True, text=True, timeout=TIME_LIMIT_SECONDS, env=environment)
    except subprocess.TimeoutExpired:
        return f"did not end within {TIME_LIMIT_SECONDS} seconds"
    if result.returncode == 0:
        return None
    return f"exit status {result.returncode}\n{(result.stdout + result.stderr)[-3000:]}"


def run_cases(checks, title, plugin, device_type, count, names, options=None, largest=1 << 28):
    """Runs all cases of a plug-in in one process, which loads TensorFlow once and prints each finished case."""
    environment = dict(os.environ)
    environment.pop("SERDES_HOST_PLUGIN", None)
    if options is not None:
        environment["SERDES_HOST_PLUGIN"] = options
    program = [f"PLUGIN, TYPE, COUNT, LARGEST = {str(plugin)!r}, {device_type!r}, {count}, {largest}", PROLOGUE]
    for name in names:
        body = BETWEEN if name == "between" else CASES[name]
        program.append(f"def case_{name}():\n{textwrap.indent(body, '    ')}\ncase_{name}()\nprint('done {name}', flush=True)")
    try:
        result = subprocess.run(
            [sys.executable, "-c", "\n".join(program)],
            capture_output=True, text=True, timeout=TIME_LIMIT_SECONDS, env=environment,
        )
        output, error = result.stdout, result.stderr
        ending = None if result.returncode == 0 else f"exit status {result.returncode}"
    except subprocess.TimeoutExpired as late:
        output = (late.stdout or b"").decode(errors="replace")
        error = (late.stderr or b"").decode(errors="replace")
        ending = f"did not end within {TIME_LIMIT_SECONDS} seconds"
    for name in names:
        done = f"done {name}" in output.splitlines()
        checks.check(f"{title}: {name}", done, f"{ending}\n{error[-3000:]}")
    if ending is not None and all(f"done {name}" in output.splitlines() for name in names):
        checks.check(f"{title}: ends", False, f"{ending}\n{error[-3000:]}")


def build_template():
    directory = ROOT / "examples" / "template-plugin"
    command = ["cargo", "build", "--release", "--quiet", "--target-dir", str(directory / "target")]
    failure = run([*command, "--manifest-path", str(directory / "Cargo.toml")])
    return directory / "target" / "release" / "libtemplate_plugin.so", failure


def build_c_plugin(directory):
    library = directory / "libmalloc_plugin.so"
    source = ROOT / "tests" / "plugins" / "malloc_plugin.c"
    command = [os.environ.get("CC", "cc"), "-std=c11", "-O2", "-shared", "-fPIC", f"-I{ROOT / 'include'}"]
    return library, run([*command, str(source), "-o", str(library)])


def check_refusals(checks, directory, host_plugin):
    """Tests that the message of a plug-in's error is in the output when TensorFlow ends the process because of it."""
    environment = {**os.environ, "SERDES_HOST_PLUGIN": "devices=many"}
    program = f"PLUGIN, TYPE, COUNT = {str(host_plugin)!r}, 'SERDES_HOST', 1\n{PROLOGUE}"
    failure = run([sys.executable, "-c", program], environment)
    told = failure is not None and "devices=many" in failure
    checks.check("host plug-in: wrong options are told", told, f"found: {failure}")


def check_with_serdes(checks, serdes, libraries):
    """Tests that the host of this project accepts the plug-ins that TensorFlow accepts."""
    for name, library in libraries:
        failure = run([serdes, "plugin", "check", str(library)])
        checks.check(f"serdes plugin check: {name}", failure is None, failure)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serdes", required=True)
    parser.add_argument("--host-plugin", required=True)
    parser.add_argument("--template")
    arguments = parser.parse_args()
    host_plugin = pathlib.Path(arguments.host_plugin).resolve()
    checks = Checks()
    everything = list(CASES)

    run_cases(checks, "host plug-in, one device", host_plugin, "SERDES_HOST", 1, everything)
    run_cases(checks, "host plug-in, two devices", host_plugin, "SERDES_HOST", 2, [*everything, "between"], "devices=2")
    best_fit = "devices=2,memory=1073741824,allocator=bfc"
    run_cases(checks, "host plug-in, TensorFlow's allocator", host_plugin, "SERDES_HOST", 2, [*everything, "between"], best_fit)

    if arguments.template:
        template, failure = pathlib.Path(arguments.template).resolve(), None
    else:
        template, failure = build_template()
        checks.check("template plug-in: builds", failure is None, failure)
    if failure is None:
        run_cases(checks, "template plug-in", template, "TEMPLATE", 1, everything, largest=1 << 24)

    with tempfile.TemporaryDirectory() as directory:
        directory = pathlib.Path(directory)
        c_plugin, failure = build_c_plugin(directory)
        checks.check("C plug-in: builds", failure is None, failure)
        if failure is None:
            run_cases(checks, "C plug-in", c_plugin, "C_MALLOC", 2, [*everything, "between"])
        check_refusals(checks, directory, host_plugin)
        check_with_serdes(checks, arguments.serdes, [
            ("host plug-in", host_plugin), ("template plug-in", template), ("C plug-in", c_plugin),
        ])

    return checks.end()


if __name__ == "__main__":
    sys.exit(main())
