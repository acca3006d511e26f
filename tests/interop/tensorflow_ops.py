"""Compares the operations of the installed TensorFlow with those that `serdes ops` has for the same release.

    PYTHON tests/interop/tensorflow_ops.py --serdes BINARY       compares each operation
    PYTHON tests/interop/tensorflow_ops.py --delta FILE          adds the installed release to tests/data/tensorflow/ops/deltas.json
                                                                 (FILE), against the newest release in it; then `cargo xtask ops`
    PYTHON tests/interop/tensorflow_ops.py --delta FILE --remove removes it again

A delta has the operations that are registered once `tensorflow` is imported. Those that only Python registers are found with a process
that loads nothing but the C library. The lists of operations without a shape function or a CPU kernel are those of the previous release,
because the C API does not report them: check new operations and correct the lists by hand (`no_shape_fn`, `no_cpu_kernel`).
"""

import argparse
import base64
import json
import math
import os
import pathlib
import struct
import subprocess
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import tensorflow as tf  # noqa: E402
from tensorflow.core.framework import op_def_pb2, types_pb2  # noqa: E402

# Additional operations of a release's package for GPUs; the table is that of the package for CPUs.
GPU_ONLY = {
    "_CopyFromGpuToHost",
    "_CopyFromHostToGpu",
    "TRTEngineOp",
    "CreateTRTResourceHandle",
    "InitializeTRTResource",
    "SerializeTRTResource",
    "GetCalibrationDataOp",
}
FLAGS = ["is_stateful", "is_commutative", "is_aggregate", "allows_uninitialized_input"]


def registered():
    """Returns every operation of this process, as messages."""
    from tensorflow.python.client import pywrap_tf_session

    buffer = pywrap_tf_session.TF_GetAllOpList()
    operations = op_def_pb2.OpList()
    operations.ParseFromString(pywrap_tf_session.TF_GetBuffer(buffer))
    return {operation.name: operation for operation in operations.op if operation.name not in GPU_ONLY}


def type_name(number):
    return types_pb2.DataType.Name(number)


def shape(message):
    if message.unknown_rank:
        return {"unknown_rank": True}
    return {"dims": [dimension.size for dimension in message.dim]}


def text(data):
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"b64": base64.b64encode(data).decode()}


def number(value):
    """Converts a float of 32 bits."""
    value = struct.unpack("f", struct.pack("f", value))[0]
    return value if math.isfinite(value) else str(value)


def element(kind, value):
    return {
        "string": text,
        "int": int,
        "float": number,
        "bool": bool,
        "type": type_name,
        "shape": shape,
        "tensor": lambda message: {"tensor": base64.b64encode(message.SerializeToString(deterministic=True)).decode()},
        "func": lambda message: {"func": message.name},
    }[kind](value)


FIELDS = {"string": "s", "int": "i", "float": "f", "bool": "b", "type": "type", "shape": "shape", "tensor": "tensor", "func": "func"}


def value(kind, message):
    if not kind.startswith("list("):
        return element(kind, getattr(message, FIELDS[kind]))
    kind = kind[5:-1]
    return [element(kind, one) for one in getattr(message.list, FIELDS[kind])]


def argument(message):
    found = {"name": message.name}
    for field in ["type_attr", "type_list_attr", "number_attr"]:
        if getattr(message, field):
            found[field] = getattr(message, field)
    if message.type:
        found["type"] = type_name(message.type)
    if message.is_ref:
        found["is_ref"] = True
    return found


def attribute(message):
    found = {"name": message.name, "type": message.type}
    if message.HasField("default_value"):
        found["default"] = value(message.type, message.default_value)
    if message.HasField("allowed_values"):
        kind = message.type.removeprefix("list(").removesuffix(")")
        found["allowed_values"] = value(f"list({kind})", message.allowed_values)
    if message.has_minimum:
        found["minimum"] = message.minimum
    return found


def operation(message):
    """Returns an operation in the form of tests/data/tensorflow/ops."""
    found = {}
    for key, values in [("inputs", message.input_arg), ("outputs", message.output_arg)]:
        if values:
            found[key] = [argument(one) for one in values]
    if message.attr:
        found["attrs"] = [attribute(one) for one in message.attr]
    found.update({flag: True for flag in FLAGS if getattr(message, flag)})
    if message.HasField("deprecation"):
        found["deprecation"] = message.deprecation.version
    return found


def shortened(json_value):
    """Rounds floats to their shortest text of 32 bits, as `serdes ops` prints them."""
    if isinstance(json_value, dict):
        return {key: shortened(one) for key, one in json_value.items()}
    if isinstance(json_value, list):
        return [shortened(one) for one in json_value]
    if isinstance(json_value, float):
        return number(json_value)
    return json_value


def compare(binary):
    release = ".".join(tf.__version__.split(".")[:2])
    done = subprocess.run([binary, "ops", release, "--json"], capture_output=True, text=True, timeout=120, check=True)
    ours = {}
    for line in done.stdout.splitlines():
        found = json.loads(line)
        name = found.pop("name")
        ours[name] = shortened(found)
    theirs = {name: shortened(operation(message)) for name, message in registered().items()}
    differences = [name for name in sorted(ours.keys() | theirs.keys()) if ours.get(name) != theirs.get(name)]
    for name in differences[:20]:
        print(f"FAILED: {name}: ours {ours.get(name)}, TensorFlow {tf.__version__} {theirs.get(name)}")
    print(f"{len(theirs) - len(differences)} passed, {len(differences)} failed")
    return 1 if differences else 0


def only_in_python(names):
    """Returns the names that the C library alone does not register."""
    program = (
        "import ctypes, glob, os, sys\n"
        "folder = sys.argv[1]\n"
        "for name in ['libtensorflow_framework.so.2', 'libtensorflow_cc.so.2']:\n"
        "    library = ctypes.CDLL(os.path.join(folder, name), ctypes.RTLD_GLOBAL)\n"
        "class Buffer(ctypes.Structure):\n"
        "    _fields_ = [('data', ctypes.c_void_p), ('length', ctypes.c_size_t)]\n"
        "library.TF_GetAllOpList.restype = ctypes.POINTER(Buffer)\n"
        "found = library.TF_GetAllOpList().contents\n"
        "sys.stdout.buffer.write(ctypes.string_at(found.data, found.length))\n"
    )
    folder = str(pathlib.Path(tf.__file__).parent)
    done = subprocess.run([sys.executable, "-c", program, folder], capture_output=True, timeout=120, check=True)
    there = op_def_pb2.OpList()
    there.ParseFromString(done.stdout)
    return sorted(set(names) - {one.name for one in there.op})


def lines(value, depth=3):
    """Formats JSON with one entry per line: releases, their lists, and their operations."""
    if not isinstance(value, dict) or not value or depth == 0:
        return json.dumps(value, separators=(",", ":"))
    rows = (f"{json.dumps(name)}:{lines(one, depth - 1)}" for name, one in value.items())
    return "{\n" + ",\n".join(rows) + "\n}"


def remove(path):
    releases = json.loads(path.read_text())
    release = ".".join(tf.__version__.split(".")[:2])
    if release not in releases:
        print(f"{path} has no {release}", file=sys.stderr)
        return 1
    del releases[release]
    path.write_text(lines(releases) + "\n")
    print(f"{release}: taken out")
    return 0


def delta(path):
    folder = path.parent
    releases = json.loads(path.read_text())
    base = json.loads((folder / "base.json").read_text())
    known, types, in_python = base["ops"], dict(base["datatypes"]), base["python_only"]
    for before in releases.values():
        in_python = in_python if before["python_only"] is None else before["python_only"]
        for name in before["remove"]:
            del known[name]
        known.update(before["change"])
        known.update(before["add"])
        types.update(before["datatypes"])
    now = {name: operation(message) for name, message in registered().items()}
    found = only_in_python(now)
    release = ".".join(tf.__version__.split(".")[:2])
    releases[release] = {
        "release": release,
        "measured": tf.__version__,
        "graph_def_version": tf.version.GRAPH_DEF_VERSION,
        "op_count": len(now),
        "datatypes": {
            name: one for name, one in types_pb2.DataType.items() if one < 100 and name not in types
        },
        "python_only": None if set(found) == set(in_python) else found,
        "no_shape_fn": None,
        "no_cpu_kernel": None,
        "remove": sorted(known.keys() - now.keys()),
        "add": {name: one for name, one in sorted(now.items()) if name not in known},
        "change": {name: one for name, one in sorted(now.items()) if name in known and shortened(known[name]) != shortened(one)},
    }
    path.write_text(lines(releases) + "\n")
    added = releases[release]
    print(f"{release}: {len(added['add'])} added, {len(added['change'])} changed, {len(added['remove'])} removed")
    return 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--serdes")
    parser.add_argument("--host-plugin")
    parser.add_argument("--delta", type=pathlib.Path)
    parser.add_argument("--remove", action="store_true")
    arguments = parser.parse_args()
    if arguments.delta:
        return (remove if arguments.remove else delta)(arguments.delta)
    if not arguments.serdes:
        parser.error("--serdes or --delta is needed")
    return compare(arguments.serdes)


if __name__ == "__main__":
    sys.exit(main())
