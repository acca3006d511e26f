"""Asks two parsers of protobuf which bytes they take for a GraphDef, and writes their answers beside this file.

TensorFlow's C++ parser answers through its C API, which is given the bytes as they are; upb answers through Python's protobuf. Fields
have numbers that a GraphDef does not have, so that all is skipped, but for those that say `min_consumer`, whose value is written too.

    PYTHON_WITH_TENSORFLOW tests/data/wire/capture.py > tests/data/wire/dialects.txt
"""

import ctypes
import pathlib
import random
import re

import google.protobuf
import tensorflow as tf
from google.protobuf.internal import api_implementation
from tensorflow.core.framework import graph_pb2

assert api_implementation.Type() == "upb"


class Importer:
    """TensorFlow's C API, for the import of the bytes as they are."""

    def __init__(self):
        api = ctypes.CDLL(str(pathlib.Path(tf.__file__).parent / "libtensorflow_cc.so.2"))
        pointer = ctypes.c_void_p
        for name, result, arguments in [
            ("TF_NewGraph", pointer, []), ("TF_NewStatus", pointer, []), ("TF_NewImportGraphDefOptions", pointer, []),
            ("TF_NewBufferFromString", pointer, [ctypes.c_char_p, ctypes.c_size_t]),
            ("TF_GraphImportGraphDef", None, [pointer] * 4), ("TF_Message", ctypes.c_char_p, [pointer]),
            ("TF_DeleteGraph", None, [pointer]), ("TF_DeleteStatus", None, [pointer]),
            ("TF_DeleteBuffer", None, [pointer]), ("TF_DeleteImportGraphDefOptions", None, [pointer]),
        ]:
            function = getattr(api, name)
            function.restype, function.argtypes = result, arguments
        self.api = api

    def __call__(self, data):
        api = self.api
        graph, status, options = api.TF_NewGraph(), api.TF_NewStatus(), api.TF_NewImportGraphDefOptions()
        buffer = api.TF_NewBufferFromString(data, len(data))
        api.TF_GraphImportGraphDef(graph, buffer, options, status)
        message = api.TF_Message(status).decode(errors="replace")
        for what, value in [("Graph", graph), ("Status", status), ("ImportGraphDefOptions", options), ("Buffer", buffer)]:
            getattr(api, "TF_Delete" + what)(value)
        if message == "Invalid GraphDef":
            return "refused"
        found = re.search(r"min consumer version (-?\d+)", message)
        return f"taken:{found[1]}" if found else "taken"


def upb(data):
    graph = graph_pb2.GraphDef()
    try:
        graph.ParseFromString(data)
    except Exception:
        return "refused"
    consumer = graph.versions.min_consumer
    return f"taken:{consumer}" if consumer > tf.version.GRAPH_DEF_VERSION else "taken"


def varint(value, length=None, last=None):
    """The bytes of a varint, in `length` bytes, the last of them replaced."""
    out = []
    while value >= 0x80 or (length and len(out) < length - 1):
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value if last is None else last)
    return bytes(out)


def groups(depth, content=b""):
    return b"\x7b" * depth + content + b"\x7c" * depth


def cases():
    # Tags: longer than they need be, with bits above the 32nd, without an end, of number 0.
    for length in range(1, 12):
        yield varint(0x78, length) + b"\x01"
        yield varint(0, length) + b"\x01"
        yield varint(0xFFFFFFF8, length) + b"\x01" if length > 4 else varint(0x3FF8, max(length, 2)) + b"\x01"
    for last in range(0, 256, 5):
        yield varint(0x78, 5, last) + b"\x01"
    # Numbers: the same, and in a field that is known.
    for length in range(1, 13):
        yield b"\x78" + varint(1, length)
        yield b"\x22" + varint(length + 1) + b"\x10" + varint(0x7FFFFFFF, max(length, 5))[:length]
    for last in [0, 1, 2, 3, 0x40, 0x7F, 0x80, 0x81, 0xFF]:
        yield b"\x78" + varint(2**64 - 1, 10, last)
        yield b"\x22\x0b\x10" + varint(2**31 - 1, 10, last)
        yield b"\x22\x06\x10" + varint(2**31 - 1, 5, last)
    # Lengths.
    for length in range(1, 12):
        yield b"\x7a" + varint(3, length) + b"abc"
        yield b"\x7a" + varint(4, length) + b"abc"
    for last in range(0, 256, 5):
        yield b"\x7a" + varint(3, 5, last) + b"abc"
    for value in [2**31 - 17, 2**31 - 16, 2**31 - 1, 2**31, 2**32, 2**32 + 3, 2**63, 2**64 - 1]:
        yield b"\x7a" + varint(value) + b"abc"
    # Groups: as deep as may be, with and without fields; ends of others; no ends.
    for depth in [1, 2, 98, 99, 100, 101, 102, 200]:
        for content in [b"", b"\x78\x01", b"\x7a\x01a", b"\x7d1234", b"\x73\x74", b"\x74", b"\x78"]:
            yield groups(depth, content)
        yield groups(depth)[:-1]
        yield groups(depth) + b"\x7c"
    yield from [b"\x7c", b"\x7b\x74", b"\x73\x7b\x74\x7c", b"\x04", b"\x03\x04"]
    # Wire types, and fields that are cut off.
    for kind in range(8):
        for count in range(10):
            yield bytes([0x78 | kind]) + b"\x01" * count
            yield bytes([kind]) + b"\x01" * count
    # Anything made of such bytes.
    draw = random.Random(20261122)
    marks = [0x78, 0x79, 0x7A, 0x7B, 0x7C, 0x7D, 0x7B, 0x7C, 0x73, 0x74, 0, 1, 2, 3, 0x80, 0x81, 0xFF, 0xF8]
    for _ in range(1500):
        yield bytes(draw.choice(marks) for _ in range(draw.randrange(1, 14)))


def main():
    importer = Importer()
    print(f"# TensorFlow {tf.__version__}, protobuf {google.protobuf.__version__}; made by capture.py: bytes, C++, upb")
    for data in sorted(set(cases()), key=lambda data: (len(data), data)):
        print(data.hex(), importer(data), upb(data))


main()
