"""Compares verdicts of `serdes check` with the installed TensorFlow, on hundreds of artifacts made here.

The consumer is the TensorFlow of the interpreter that runs this (2.12, 2.16 or 2.21): graphs go through its C import, text graphs
through its text parser and importer, MetaGraphs and SavedModels through its graph loaders, checkpoints through its reader and RestoreV2.
Refusals that depend on TensorFlow's registry of operations are left out of the comparison.

    PYTHON tests/interop/tensorflow_verdicts.py --serdes PATH [--seed N] [--scale N] [--only FAMILY]... [--keep DIRECTORY]
"""

import argparse
import json
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile

import verdict_cases
from checks import Checks

ROOT = pathlib.Path(__file__).resolve().parents[2]
CORPUS = ROOT / "tests" / "data" / "tensorflow"
CONSUMERS = {"2.12": 1395, "2.16": 1766, "2.21": 2474}
LIMIT = 600


# ---- Functions that run in a child process with TensorFlow ---------------------------------------------------------------------


class Importer:
    """TensorFlow's C API, which imports unchanged bytes."""

    def __init__(self, tf):
        import ctypes

        self.ctypes = ctypes
        folder = pathlib.Path(tf.__file__).parent
        api = ctypes.CDLL(str(folder / "libtensorflow_cc.so.2"))
        pointer = ctypes.c_void_p
        for name, result, arguments in [
            ("TF_NewGraph", pointer, []), ("TF_NewStatus", pointer, []), ("TF_NewImportGraphDefOptions", pointer, []),
            ("TF_NewBufferFromString", pointer, [ctypes.c_char_p, ctypes.c_size_t]),
            ("TF_GraphImportGraphDef", None, [pointer] * 4), ("TF_GetCode", ctypes.c_int, [pointer]),
            ("TF_Message", ctypes.c_char_p, [pointer]), ("TF_DeleteGraph", None, [pointer]), ("TF_DeleteStatus", None, [pointer]),
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
        code, message = api.TF_GetCode(status), api.TF_Message(status).decode(errors="replace")
        for delete, what in [("Graph", graph), ("Status", status), ("ImportGraphDefOptions", options), ("Buffer", buffer)]:
            getattr(api, "TF_Delete" + delete)(what)
        return None if code == 0 else (code, message)


def load_text(tf, path):
    from google.protobuf import text_format
    from tensorflow.core.framework import graph_pb2

    try:
        text = path.read_bytes().decode()
        graph = text_format.Parse(text, graph_pb2.GraphDef())
    except (text_format.ParseError, UnicodeDecodeError) as error:
        return (-1, f"parse: {error}")
    return IMPORT(graph.SerializeToString())


def load_meta(tf, path):
    with tf.Graph().as_default():
        tf.compat.v1.train.import_meta_graph(str(path), clear_devices=False)


def load_model(tf, path, tags):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        tf.compat.v1.saved_model.loader.load(session, tags, str(path))


def open_checkpoint(tf, path):
    tf.train.load_checkpoint(str(path))


def restore_checkpoint(tf, path):
    """Restores each expected tensor by itself, with the names and types that the case records."""
    prefix, expected = str(path), json.loads(pathlib.Path(str(path) + ".expected").read_text())
    failures = []
    for name, number in expected:
        try:
            tf.raw_ops.RestoreV2(prefix=prefix, tensor_names=[name], shape_and_slices=[""], dtypes=[tf.as_dtype(number)])
        except Exception as error:  # noqa: BLE001 - every class is a verdict
            failures.append(f"{name}: {type(error).__name__}: {error}")
    if failures:
        raise ValueError("; ".join(failures)[:2000])


def child(list_file, begin):
    """Prints one line per case, from number `begin` on: null if it is accepted, else code and message."""
    import tensorflow as tf

    global IMPORT
    IMPORT = Importer(tf)
    for number, line in enumerate(pathlib.Path(list_file).read_text().splitlines()):
        if number < begin:
            continue
        case = json.loads(line)
        path, how = pathlib.Path(case["path"]), case["how"]
        try:
            if how == "graph":
                found = IMPORT(path.read_bytes())
            elif how == "text":
                found = load_text(tf, path)
            else:
                found = None
                if how == "meta":
                    load_meta(tf, path)
                elif how == "model":
                    load_model(tf, path, case["tags"])
                elif how == "open":
                    open_checkpoint(tf, path)
                else:
                    restore_checkpoint(tf, path)
        except Exception as error:  # noqa: BLE001 - every class is a verdict
            found = (-2, f"{type(error).__name__}: {error}")
        print(json.dumps([number, found]), flush=True)


def child_make(directory):
    """Makes what only TensorFlow can make: its version, the deprecated operations as nodes, models and checkpoints to be changed."""
    import tensorflow as tf

    directory = pathlib.Path(directory)
    make_operations(tf, directory / "operations.json")
    make_models(tf, directory)
    make_checkpoint(tf, directory / "base")
    verdict_cases.make_checkpoints(tf, directory / "more")
    from tensorflow.python.framework import versions

    print(json.dumps({"release": tf.__version__, "graph_def": versions.GRAPH_DEF_VERSION}))


def make_operations(tf, path):
    """Writes a node of every deprecated operation, with the inputs and attributes that it needs, in text form."""
    from tensorflow.core.framework import node_def_pb2
    from tensorflow.python.framework import op_def_registry

    wanted = json.loads((ROOT / "crates/graph-index/src/deprecated_ops.json").read_text())["deprecated"]
    found = {}
    for entry in wanted:
        definition = op_def_registry.get(entry["name"])
        if definition is None:
            continue
        node = node_def_pb2.NodeDef(name="old", op=entry["name"])
        types = {}
        for attribute in definition.attr:
            value = node.attr[attribute.name]
            if attribute.HasField("default_value"):
                value.CopyFrom(attribute.default_value)
            elif attribute.type == "type":
                allowed = attribute.allowed_values.list.type
                value.type = 1 if not allowed or 1 in allowed else allowed[0]
            elif attribute.type == "int":
                value.i = max(attribute.minimum, 1)
            elif attribute.type == "float":
                value.f = 1
            elif attribute.type == "bool":
                value.b = True
            elif attribute.type == "string":
                value.s = attribute.allowed_values.list.s[0] if attribute.allowed_values.list.s else b"x"
            elif attribute.type == "shape":
                value.shape.unknown_rank = True
            elif attribute.type.startswith("list("):
                value.list.SetInParent()
                if attribute.has_minimum and attribute.type == "list(int)":
                    value.list.i.extend([1] * attribute.minimum)
                if attribute.has_minimum and attribute.type == "list(type)":
                    value.list.type.extend([1] * attribute.minimum)
            types[attribute.name] = value
        nodes, body = [], node_def_pb2.NodeDef()
        for position, argument in enumerate(definition.input_arg):
            number = argument.type or (types[argument.type_attr].type if argument.type_attr else 1)
            count = types[argument.number_attr].i if argument.number_attr else 1
            for copy in range(count):
                source = node_def_pb2.NodeDef(name=f"in{position}_{copy}", op="Placeholder")
                if argument.is_ref:
                    source.op = "VariableV2"
                    source.attr["shape"].shape.SetInParent()
                source.attr["dtype"].type = number
                nodes.append(source)
                node.input.append(source.name)
                body.input.append(source.name + (":ref:0" if argument.is_ref else ":output:0"))
        inputs = list(body.input)
        body.CopyFrom(node)
        del body.input[:]
        body.input.extend(inputs)
        found[entry["name"]] = {
            "version": entry["version"],
            "node": node.SerializeToString().hex(),
            "body": body.SerializeToString().hex(),
            "inputs": [source.SerializeToString().hex() for source in nodes],
        }
    path.write_text(json.dumps(found))


def make_models(tf, directory):
    v1 = tf.compat.v1
    # Two meta graphs with variables; one model without variables; one of the TF2 format.
    builder = v1.saved_model.builder.SavedModelBuilder(str(directory / "model-two"))
    for number, tags in enumerate([["serve"], ["serve", "gpu"], ["train"]]):
        with tf.Graph().as_default(), v1.Session() as session:
            v1.get_variable("v", initializer=[1.0, 2.0], use_resource=False)
            session.run(v1.global_variables_initializer())
            if number == 0:
                builder.add_meta_graph_and_variables(session, tags)
            else:
                builder.add_meta_graph(tags)
    builder.save()
    builder = v1.saved_model.builder.SavedModelBuilder(str(directory / "model-constant"))
    with tf.Graph().as_default(), v1.Session() as session:
        tf.constant(1.0, name="c")
        builder.add_meta_graph_and_variables(session, ["serve"])
    builder.save()
    module = tf.Module()
    module.v = tf.Variable([1.0, 2.0])
    module.call = tf.function(lambda x: x * module.v, input_signature=[tf.TensorSpec([2], tf.float32)])
    tf.saved_model.save(module, str(directory / "model-tf2"), signatures=module.call)


def make_checkpoint(tf, directory):
    import numpy as np

    directory.mkdir()
    tensors = {
        "alpha": tf.constant(np.arange(12, dtype="float32").reshape(3, 4)),
        "beta": tf.constant([1, 2, 3], tf.int64),
        "empty": tf.zeros((0, 2)),
        "names": tf.constant([b"one", b"", b"three" * 50]),
        "scalar": tf.constant(True),
    }
    names = list(tensors)
    tf.raw_ops.SaveV2(prefix=str(directory / "ckpt"), tensor_names=names, shape_and_slices=[""] * len(names), tensors=list(tensors.values()))
    tf.raw_ops.Save(filename=str(directory / "v1"), tensor_names=names, data=list(tensors.values()))
    whole = tf.reshape(tf.range(20.0), (4, 5))
    for part, (text, rows) in enumerate([("4 5 0,2:-", whole[:2]), ("4 5 2,2:-", whole[2:])]):
        tf.raw_ops.SaveV2(prefix=str(directory / f"part{part}"), tensor_names=["rows"], shape_and_slices=[text], tensors=[rows])
    tf.raw_ops.SaveV2(prefix=str(directory / "part2"), tensor_names=names, shape_and_slices=[""] * len(names), tensors=list(tensors.values()))
    tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=[str(directory / f"part{part}") for part in range(3)],
                                  destination_prefix=str(directory / "merged"), delete_old_dirs=False)


# ---- The parts of the wire format that the cases need ----------------------------------------------------------------------------


def varint(value, length=0):
    """Encodes a varint of at least `length` bytes."""
    value &= 2**64 - 1
    out = bytearray()
    while value >= 0x80 or len(out) + 1 < length:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number, value, length=0):
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    return varint(number << 3) + varint(value, length)


def version_def(producer=None, min_consumer=None, bad=()):
    out = b"" if producer is None else field(1, producer)
    out += b"" if min_consumer is None else field(2, min_consumer)
    return out + (field(3, b"".join(varint(version) for version in bad)) if bad else b"")


def node(name, operation="NoOp", inputs=(), attributes=b""):
    return field(1, name.encode()) + field(2, operation.encode()) + b"".join(field(3, text.encode()) for text in inputs) + attributes


def type_attribute(name, number):
    return field(5, field(1, name.encode()) + field(2, field(6, number)))


def graph(nodes=(node("a"),), versions=None, library=None):
    out = b"".join(field(1, each) for each in nodes)
    out += b"" if library is None else field(2, library)
    return out + (b"" if versions is None else field(4, versions))


# ---- The cases -------------------------------------------------------------------------------------------------------------------


class Cases:
    def __init__(self, directory, made, consumer, rng, scale):
        self.directory, self.made, self.consumer, self.rng, self.scale = directory, made, consumer, rng, scale
        self.all = []

    def add(self, family, how, path, **more):
        self.all.append({"family": family, "how": how, "path": str(path), **more})

    def file(self, family, how, suffix, data, **more):
        folder = self.directory / family
        folder.mkdir(exist_ok=True)
        path = folder / f"{len(self.all):05}{suffix}"
        path.write_bytes(data)
        self.add(family, how, path, **more)


def edges(consumer):
    near = [version + step for version in CONSUMERS.values() for step in (-1, 0, 1, 21, 22)]
    return [None, 0, 1, 7, 28, 29, 30, 9999, 2**31 - 1, -1, -(2**31), consumer, consumer, consumer + 1, consumer - 1] + near


def lists(consumer):
    return [(), (), (), (consumer,), (consumer - 1, consumer), (consumer + 1,), (-1, 0), (consumer,) * 50, tuple(range(consumer - 9, consumer)),
            tuple(CONSUMERS.values())]


def versions_of_graphs(cases):
    rng, values = cases.rng, edges(cases.consumer)
    for _ in range(150 * cases.scale):
        versions = version_def(rng.choice(values), rng.choice([None, None, *values]), rng.choice(lists(cases.consumer)))
        cases.file("versions", "graph", ".pb", graph(versions=versions))
    # Merged, repeated, unpacked, overlong, of other wire types, among unknown fields and groups.
    for _ in range(250 * cases.scale):
        parts = []
        for _ in range(rng.randrange(1, 5)):
            content = []
            for _ in range(rng.randrange(0, 5)):
                number, value = rng.choice([1, 1, 2, 2, 3, 3, 4, 15, 16]), rng.choice(values) or 0
                form = rng.randrange(12)
                if form < 5:
                    content.append(field(number, value & (2**32 - 1) if form == 4 else value, rng.choice([0, 0, 5, 10])))
                elif form == 5:
                    content.append(field(number, value + (rng.randrange(1, 2**31) << 32)))
                elif form == 6:
                    content.append(field(3, b"".join(varint(rng.choice(values) or 0) for _ in range(3))))
                elif form == 7:
                    content.append(varint(number << 3 | 5) + struct.pack("<I", value & (2**32 - 1)))
                elif form == 8:
                    content.append(varint(number << 3 | 1) + struct.pack("<Q", value & (2**64 - 1)))
                elif form == 9:
                    content.append(varint(number << 3 | 3) + field(1, value) + varint(number << 3 | 4))
                elif form == 10:
                    content.append(field(number, b"".join(varint(rng.choice(values) or 0) for _ in range(2))))
                else:
                    content.append(field(number, 1, rng.choice([10, 10, 10, 11])))
            parts.append(field(4, b"".join(content)) if rng.random() < 0.9 else field(rng.choice([3, 5, 6, 99]), b"".join(content)))
        parts.insert(rng.randrange(len(parts) + 1), field(1, node("a")))
        if rng.random() < 0.2:
            parts.insert(0, field(3, rng.choice(values) or 0))
        cases.file("merged", "graph", ".pb", b"".join(parts))


def function(name, nodes):
    return field(1, field(1, name.encode())) + b"".join(field(3, each) for each in nodes)


def deprecations(cases):
    operations = json.loads((cases.made / "operations.json").read_text())
    for name, entry in operations.items():
        old, inputs = bytes.fromhex(entry["node"]), [bytes.fromhex(source) for source in entry["inputs"]]
        limit = entry["version"]
        for producer in (limit - 1, limit, limit + 1, cases.consumer):
            cases.file("deprecated", "graph", ".pb", graph([*inputs, old], version_def(producer)), operation=name)
        # In a function, the name of an output includes the name of the operation's output.
        body = [*inputs, bytes.fromhex(entry["body"])]
        for producer in (limit - 1, limit):
            for calls in (0, 1):
                nodes = [node("a")] + [node("call", "f")] * calls
                library = field(1, function("f", body))
                cases.file("in_functions", "graph", ".pb", graph(nodes, version_def(producer), library))
    # Tests which node is checked first: nodes that wait for each other, written in any order.
    names = ["PlaceholderV2", "Old", "Placeholder", "NoOp"]
    rng = cases.rng
    for _ in range(150 * cases.scale):
        count = rng.randrange(2, 12)
        nodes = []
        for number in range(count):
            operation = rng.choice(names)
            inputs = [f"^n{other}" for other in rng.sample(range(count), rng.randrange(0, 3)) if other < number or rng.random() < 0.03]
            attributes = type_attribute("dtype", 1) if "Placeholder" in operation else b""
            if operation == "PlaceholderV2":
                attributes += field(5, field(1, b"shape") + field(2, field(7, b"")))
            nodes.append(node(f"n{number}", operation, inputs, attributes))
        rng.shuffle(nodes)
        cases.file("visits", "graph", ".pb", graph(nodes, version_def(rng.choice([7, 8, 22, 23, cases.consumer]))))


def structures(cases):
    rng = cases.rng
    names = ["a", "b", "c", "d", "e", "f/g", "h.i", "j-k", "l_m", "A>b", "0"]
    odd = ["", "_x", "-x", "a b", "a>", ">a", "a:0", "^a", "é", "a\\b", "x" * 300, "a>_b", "/a", "a/", "a//b", "."]
    for _ in range(250 * cases.scale):
        nodes = []
        used = [rng.choice(names) if rng.random() < 0.93 else rng.choice(odd) for _ in range(rng.randrange(1, 9))]
        if rng.random() < 0.8:
            used = list(dict.fromkeys(used))
        for name in used:
            operation = rng.choice(["NoOp", "NoOp", "Placeholder", "Identity", "AddN", "Merge", "NextIteration", "Old", ""])
            if operation == "" and rng.random() < 0.8:
                operation = "NoOp"
            data = {"Identity": 1, "AddN": 2, "Merge": 2, "NextIteration": 1}.get(operation, 0)
            if rng.random() < 0.05:
                data = rng.randrange(3)
            pool = used if rng.random() < 0.9 else names + odd
            inputs = [rng.choice(pool) + rng.choice(["", "", "", ":0", ":1", ":x", ":"][: 7 if rng.random() < 0.1 else 4]) for _ in range(data)]
            inputs += ["^" + rng.choice(pool) for _ in range(rng.choice([0, 0, 1, 2]))]
            if rng.random() < 0.05:
                rng.shuffle(inputs)
            attributes = {"Placeholder": type_attribute("dtype", 1), "NoOp": b"", "Old": b"", "": b""}.get(operation, type_attribute("T", 1))
            if operation in ("AddN", "Merge"):
                attributes += field(5, field(1, b"N") + field(2, field(3, 2)))
            nodes.append(node(name, operation, inputs, attributes))
        cases.file("structure", "graph", ".pb", graph(nodes, version_def(rng.choice([7, 8, cases.consumer]))))
    # Loops as the control-flow operations make them, unchanged and with one changed part.
    for _ in range(60 * cases.scale):
        t = type_attribute("T", 1)
        two = field(5, field(1, b"N") + field(2, field(3, 2)))
        frame = field(5, field(1, b"frame_name") + field(2, field(2, b"w")))
        nodes = [
            node("x", "Placeholder", [], type_attribute("dtype", 1)),
            node("enter", "Enter", ["x"], t + frame),
            node("merge", "Merge", ["enter", "next"], t + two),
            node("cond", "LoopCond", ["p"]),
            node("p", "Placeholder", ["^merge"], type_attribute("dtype", 10)),
            node("switch", "Switch", ["merge", "cond"], t),
            node("body", "Identity", ["switch:1"], t),
            node("next", rng.choice(["NextIteration"] * 4 + ["Identity"]), ["body", *rng.choice([[], ["^p"], ["^merge"]])], t),
            node("exit", "Exit", ["switch"], t),
        ]
        if rng.random() < 0.5:
            nodes.append(node("old", "Old", rng.choice([["^exit"], ["^merge"], ["^next"], ["^x"]])))
        rng.shuffle(nodes)
        cases.file("loops", "graph", ".pb", graph(nodes, version_def(rng.choice([7, 8, cases.consumer]))))


def damages(cases):
    rng = cases.rng
    sources = [path.read_bytes() for path in sorted((CORPUS / "graphs").glob("*.pb")) if path.stat().st_size < 4000]
    for _ in range(300 * cases.scale):
        data = bytearray(rng.choice(sources))
        for _ in range(rng.randrange(1, 4)):
            if not data:
                break
            at = rng.randrange(len(data))
            kind = rng.randrange(5)
            if kind == 0:
                data[at] ^= 1 << rng.randrange(8)
            elif kind == 1:
                data[at] = rng.randrange(256)
            elif kind == 2:
                del data[at:]
            elif kind == 3:
                del data[at : at + rng.randrange(1, 4)]
            else:
                data[at:at] = rng.randbytes(rng.randrange(1, 4))
        cases.file("damaged", "graph", ".pb", bytes(data))


TEXTS = [
    "", "# nothing\n", "node{}", 'node { name: "a" op: "NoOp" }', "node < name: 'a' op: 'NoOp' >", 'node: { name: "a", op: "NoOp"; }',
    'node [{ name: "a" op: "NoOp" }, { name: "b" op: "NoOp" }]', 'node { name: "a" op: "NoOp" } versions { producer: P }',
    'node { name: "a" op: "NoOp" } versions { producer: P producer: P }', "versions { producer: 1 } versions { min_consumer: 1 }",
    "versions { bad_consumers: [1, 2, P] }", "versions { bad_consumers: 1 bad_consumers: P }", "versions { bad_consumers: [] }",
    "versions { bad_consumers: [1,] }", "versions { producer: 0x10 }", "versions { producer: 010 }", "versions { producer: 08 }",
    "versions { producer: -0x1 }", "versions { producer: - 1 }", "versions { producer: +1 }", "versions { producer: 1.0 }",
    "versions { producer: 1f }", "versions { producer: 2147483647 }", "versions { producer: 2147483648 }",
    "versions { min_consumer: -2147483648 }", "versions { min_consumer: -2147483649 }", "versions { producer: true }",
    "versions { producer: \"1\" }", "versions: { producer: 1 }", "versions { producer 1 }", "versions { producer: }", "versions {", "versions }",
    "versions { [a.b/c.d] { } }", "versions { unknown: 1 }", "version: P", "version: P version: P", "4 { 1: 5 }", "node { name: 'a' 'b' op: \"No\" \"Op\" }",
    'node { name: "\\141" op: "NoOp" }', 'node { name: "\\x61" op: "NoOp" }', 'node { name: "\\u0061" op: "NoOp" }', 'node { name: "\\q" op: "NoOp" }',
    'node { name: "a\nb" op: "NoOp" }', "node { name: 'a\" op: \"NoOp' }", 'node { name: "a" op: "NoOp" attr { key: "k" value { i: 3 } } }',
    'node { name: "a" op: "NoOp" attr { key: "k" value { i: 3 b: true } } }', 'node { name: "a" op: "NoOp" attr { key: "k" } }',
    'node { name: "a" op: "NoOp" attr { key: "k" value { type: DT_FLOAT } } }', 'node { name: "a" op: "NoOp" attr { key: "k" value { type: 1 } } }',
    'node { name: "a" op: "NoOp" attr { key: "k" value { type: DT_NONE_SUCH } } }', 'node { name: "a" op: "NoOp" attr { key: "k" value { type: 9999 } } }',
    'node { name: "a" op: "NoOp" attr { key: "k" value { f: inf } } }', 'node { name: "a" op: "NoOp" attr { key: "k" value { f: -nan } } }',
    'node { name: "a" op: "NoOp" attr { key: "k" value { f: 1e400 } } }', 'node { name: "a" op: "NoOp" attr { key: "k" value { f: .5f } } }',
    'node { name: "a" op: "NoOp" attr { key: "k" value { f: 5. } } }', 'node { name: "a" op: "NoOp" attr { key: "k" value { b: t } } }',
    'node { name: "a" op: "NoOp" attr { key: "k" value { b: 1 } } }', 'node { name: "a" op: "NoOp" attr { key: "k" value { b: True } } }',
    'node { name: "a" op: "NoOp" attr { key: "k" value { b: 2 } } }', 'node { name: "a" op: "NoOp" attr { key: "k" value { s: "\\377" } } }',
    'node { name: "\\377" op: "NoOp" }', 'node { name: "a" op: "NoOp" attr { key: "k" value { list { i: [1, 2] i: 3 } } } }',
    'node { name: "a" op: "NoOp" attr { key: "k" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 2 } } float_val: [1, 2.5] } } } }',
    "node { name: \"a\" op: \"NoOp\" } garbage", "\ufeffversions { producer: 1 }", "versions { producer: 1 } \x00", "library { }",
    "library { function { signature { name: 'f' } node_def { name: 'n' op: 'Old' } } } versions { producer: P }",
    "node { name: 'a' op: 'Old' } versions { producer: P }", "node { name: 'a' op: 'Old' } versions { producer: 7 }",
    "versions { producer: 1, min_consumer: 2; bad_consumers: 3 }", "versions { producer: 1,, }", "versions { producer: 1 };", ", versions { }",
    "versions { producer : 1 }", "versions{producer:1}", "versions { producer: 1 # comment\n }", "VERSIONS { producer: 1 }", "versions { Producer: 1 }",
    "versions < producer: 1 }", "versions { producer: 1 } versions: < >", "debug_info { }", "node { experimental_type { type_id: TFT_UNSET } name: 'a' op: 'NoOp' }",
]


def texts(cases):
    for text in TEXTS:
        for version in dict.fromkeys([cases.consumer, cases.consumer + 1]):
            if version == cases.consumer or "P" in text:
                cases.file("texts", "text", ".pbtxt", text.replace("producer: P", f"producer: {version}").replace("P }", f"{version} }}").replace(
                    "P]", f"{version}]").replace(": P", f": {version}").encode())
    rng = cases.rng
    sources = [text for text in TEXTS if text] + [path.read_text(errors="replace") for path in sorted((CORPUS / "graphs").glob("*.pbtxt"))]
    for _ in range(200 * cases.scale):
        text = rng.choice(sources)
        for _ in range(rng.randrange(1, 3)):
            at = rng.randrange(len(text) + 1)
            kind = rng.randrange(4)
            if kind == 0:
                text = text[:at] + rng.choice("{}<>[]:,;#'\"\\ \n\t-+.0x1aE_") + text[at:]
            elif kind == 1:
                text = text[:at] + text[at + rng.randrange(1, 3) :]
            elif kind == 2:
                text = text[:at] + rng.choice(["0x1F", "017", "1e3", "-1", "inf", "'s'", "[1]", "[]", "{}", ": ", "#c\n", "99999999999999999999"]) + text[at:]
            else:
                text = text[:at]
        cases.file("mutated_texts", "text", ".pbtxt", text.encode())


def metas(cases):
    from_file = (CORPUS / "meta" / "ok.meta").read_bytes()
    rng, values = cases.rng, edges(cases.consumer)
    for _ in range(25 * cases.scale):
        versions = version_def(rng.choice(values), rng.choice([None, *values]), rng.choice(lists(cases.consumer)))
        cases.file("metas", "meta", ".meta", from_file + field(2, field(4, versions)))
    for operation in ("Old", "NoOp"):
        for producer in (7, 8):
            cases.file("metas", "meta", ".meta", field(2, graph([node("a", operation)], version_def(producer))))
    cases.file("metas", "meta", ".meta", b'graph_def { node { name: "a" op: "NoOp" } versions { min_consumer: 9999 } }')
    cases.file("metas", "meta", ".meta", b'graph_def { node { name: "a" op: "NoOp" } versions { producer: 9 } }')
    cases.file("metas", "meta", ".meta", b"\x07 nothing")


def models(cases):
    rng, values = cases.rng, edges(cases.consumer)
    tags = {"model-two": [["serve"], ["serve", "gpu"], ["gpu", "serve"], ["train"], ["gpu"], []], "model-constant": [["serve"], ["train"]], "model-tf2": [["serve"]]}

    def copy(name):
        path = cases.directory / "models" / f"{len(cases.all):05}-{name}"
        path.parent.mkdir(exist_ok=True)
        shutil.copytree(cases.made / name, path)
        return path

    for name, choices in tags.items():
        for wanted in choices:
            cases.add("models", "model", copy(name), tags=wanted)
        for _ in range(14 * cases.scale):
            # The versions of one meta graph, or of all.
            path = copy(name)
            file = path / "saved_model.pb"
            versions = version_def(rng.choice(values), rng.choice([None, *values]), rng.choice(lists(cases.consumer)))
            change_meta_graphs(file, rng.choice([None, 0, 1]), field(2, field(4, versions)))
            cases.add("models", "model", path, tags=rng.choice(choices))
        for operation, producer in [("Old", 7), ("Old", 8), ("Old", cases.consumer)]:
            path = copy(name)
            extra = field(2, graph([node("ancient", operation)], version_def(producer, 0)))
            change_meta_graphs(path / "saved_model.pb", 0, extra)
            cases.add("models", "model", path, tags=choices[0])
            path = copy(name)
            extra = field(2, field(2, field(1, function("f_old", [node("ancient", operation)]))) + field(4, version_def(producer, 0)))
            change_meta_graphs(path / "saved_model.pb", 0, extra)
            cases.add("models", "model", path, tags=choices[0])
        for damage in range(12):
            path = copy(name)
            file = path / "saved_model.pb"
            data = file.read_bytes()
            index = path / "variables" / "variables.index"
            if damage == 0:
                file.write_bytes(data[: len(data) // 2])
            elif damage == 1:
                file.write_bytes(b"")
            elif damage == 2:
                file.unlink()
            elif damage == 3:
                shutil.rmtree(path / "variables", ignore_errors=True)
            elif damage == 4 and index.exists():
                index.unlink()
            elif damage == 5 and index.exists():
                index.write_bytes(index.read_bytes()[:-1])
            elif damage == 6 and index.exists():
                index.write_bytes(b"")
            elif damage == 7:
                file.write_bytes(data + field(1, 99))
            elif damage == 8:
                (path / "fingerprint.pb").write_bytes(b"\xff\xff")
            elif damage in (9, 10, 11):
                write_text(file, path / "saved_model.pbtxt", damage)
            else:
                shutil.rmtree(path)
                continue
            cases.add("models", "model", path, tags=choices[0])


def change_meta_graphs(file, which, extra):
    """Appends fields to the meta graph with a number, or to all."""
    data, out, at, number = file.read_bytes(), b"", 0, 0
    while at < len(data):
        begin = at
        tag, at = read_varint(data, at)
        value, at = read_varint(data, at)
        if tag & 7 == 2:
            content, at = data[at : at + value], at + value
            if tag >> 3 == 2:
                out += field(2, content + extra) if which in (None, number) else data[begin:at]
                number += 1
                continue
        out += data[begin:at]
    file.write_bytes(out)


def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at, value, shift = at + 1, value | (byte & 0x7F) << shift, shift + 7
        if byte < 0x80:
            return value, at


def write_text(file, text, variant):
    """Writes the text form in place of the binary one (9), beside it (10: the binary one counts), or damaged (11)."""
    code = (
        "import sys\nfrom google.protobuf import text_format\nfrom tensorflow.core.protobuf import saved_model_pb2 as s\n"
        "print(text_format.MessageToString(s.SavedModel.FromString(open(sys.argv[1], 'rb').read())))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(file)], capture_output=True, text=True, timeout=LIMIT, env=environment(), check=True)
    if variant == 10:
        text.write_text("garbage {")
        return
    text.write_text(done.stdout if variant == 9 else done.stdout[: len(done.stdout) // 3] + " oops: 1")
    file.unlink()


# The table format of an index in a simple form: one block for all entries.


CRC = [0] * 256
for _i in range(256):
    _c = _i
    for _ in range(8):
        _c = _c >> 1 ^ (0x82F63B78 if _c & 1 else 0)
    CRC[_i] = _c


def masked(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def block(entries):
    out, restarts = b"", []
    for key, value in entries:
        restarts.append(len(out))
        out += varint(0) + varint(len(key)) + varint(len(value)) + key + value
    return out + b"".join(struct.pack("<I", at) for at in restarts or [0]) + struct.pack("<I", len(restarts) or 1)


def table(entries):
    out = b""

    def put(content):
        nonlocal out
        handle = varint(len(out)) + varint(len(content))
        out += content + b"\x00" + struct.pack("<I", masked(content + b"\x00"))
        return handle

    data = put(block(entries))
    meta = put(block([]))
    index = put(block([((entries[-1][0] if entries else b"") + b"\xff", data)]))
    footer = meta + index
    return out + footer + bytes(40 - len(footer)) + bytes.fromhex("57fb808b247547db")


def entries_of(data):
    """Returns the entries of every data block of an uncompressed table."""

    def walk(content):
        count = struct.unpack("<I", content[-4:])[0]
        end, at, key, found = len(content) - 4 - 4 * count, 0, b"", []
        while at < end:
            shared, at = read_varint(content, at)
            unshared, at = read_varint(content, at)
            size, at = read_varint(content, at)
            key, at = key[:shared] + content[at : at + unshared], at + unshared
            found.append((key, content[at : at + size]))
            at += size
        return found

    _, at = read_varint(data, len(data) - 48)
    _, at = read_varint(data, at)
    offset, at = read_varint(data, at)
    size, at = read_varint(data, at)
    found = []
    for _, handle in walk(data[offset : offset + size]):
        offset, at = read_varint(handle, 0)
        size, _ = read_varint(handle, at)
        found += walk(data[offset : offset + size])
    return found


def checkpoints(cases):
    rng, values = cases.rng, [value for value in edges(1) if value is None or value < 40] + [2, 1, 1, 1]
    for name in ("ckpt", "merged"):
        source = cases.made / "base"
        original = entries_of((source / f"{name}.index").read_bytes())
        meant = []
        for key, value in original:
            if key and not key.startswith(b"\x00"):
                number = read_varint(value, 1)[0] if value[:1] == b"\x08" else 1
                meant.append([key.decode(), number])

        def put(entries, family, how, index=None):
            folder = cases.directory / family / f"{len(cases.all):05}"
            folder.mkdir(parents=True)
            for file in source.glob(f"{name}.data*"):
                (folder / file.name).write_bytes(file.read_bytes())
            (folder / f"{name}.index").write_bytes(table(entries) if index is None else index)
            (folder / f"{name}.expected").write_text(json.dumps(meant))
            cases.add(family, how, folder / name)
            return folder

        put(original, "ckpt_open", "open")
        put(original, "ckpt_restore", "restore")
        rest = [entry for entry in original if entry[0]]
        shards = field(1, 1) if name == "ckpt" else field(1, 3)
        for _ in range(60 * cases.scale):
            versions = version_def(rng.choice(values), rng.choice([None, *values]), rng.choice([(), (), (1,), (2,), (0,), (1, 2), (-1,)]))
            header = rng.choice([shards + field(3, versions), shards, field(3, versions), shards + field(2, rng.choice([0, 1, 7])) + field(3, versions),
                                 shards + field(3, versions) + field(3, version_def(rng.choice(values), rng.choice(values)))])
            put([(b"", header), *rest], "ckpt_open", "open")
        for _ in range(120 * cases.scale):
            # Changed bytes of an entry, with a correct checksum.
            entries = list(original)
            at = rng.randrange(1, len(entries))
            key, value = entries[at]
            value = bytearray(value)
            kind = rng.randrange(4)
            if value and kind == 0:
                value[rng.randrange(len(value))] ^= 1 << rng.randrange(8)
            elif value and kind == 1:
                value[rng.randrange(len(value))] = rng.randrange(256)
            elif kind == 2:
                value += rng.choice([field(3, rng.randrange(-1, 4)), field(4, rng.randrange(-2, 300)), field(5, rng.randrange(-2, 100)), field(1, rng.randrange(0, 36)),
                                     varint(6 << 3 | 5) + rng.randbytes(4), field(7, b""), field(2, field(2, field(1, rng.randrange(-2, 6)))), field(2, field(3, 1))])
            elif value:
                del value[rng.randrange(len(value)) :]
            entries[at] = (key, bytes(value))
            put(entries, "ckpt_restore", "restore")
        whole = (source / f"{name}.index").read_bytes()
        for _ in range(60 * cases.scale):
            data = bytearray(whole)
            if rng.random() < 0.8:
                data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            else:
                del data[rng.randrange(len(data)) :]
            put(None, rng.choice(["ckpt_flips_open"]), "open", bytes(data))
        for _ in range(40 * cases.scale):
            folder = put(original, "ckpt_data", "restore")
            file = rng.choice(sorted(folder.glob("*.data*")))
            data = bytearray(file.read_bytes())
            if rng.random() < 0.7 and data:
                data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            elif rng.random() < 0.7:
                del data[rng.randrange(len(data) + 1) :]
            elif rng.random() < 0.5:
                data += b"more"
            else:
                file.unlink()
                continue
            file.write_bytes(data)


def old_checkpoints(cases):
    """Adds cases of V1: one table, whose header is the list of tensors, and whose other values are the tensors."""
    rng, values = cases.rng, [value for value in edges(1) if value is None or value < 40] + [2, 1, 1, 1]
    whole = (cases.made / "base" / "v1").read_bytes()
    original = entries_of(whole)
    meant = [["alpha", 1], ["beta", 9], ["empty", 1], ["names", 7], ["scalar", 10]]

    def put(data, family, how):
        folder = cases.directory / family / f"{len(cases.all):05}"
        folder.mkdir(parents=True)
        (folder / "v1.ckpt").write_bytes(data)
        (folder / "v1.ckpt.expected").write_text(json.dumps(meant))
        cases.add(family, how, folder / "v1.ckpt")

    put(whole, "v1_open", "open")
    put(whole, "v1_restore", "restore")
    put(table(original), "v1_restore", "restore")
    header = original[0][1]
    for _ in range(40 * cases.scale):
        versions = version_def(rng.choice(values), rng.choice([None, *values]), rng.choice([(), (), (1,), (2,), (0,), (1, 2), (-1,)]))
        put(table([(b"", header + field(1, field(2, versions))), *original[1:]]), "v1_open", "open")
    for _ in range(100 * cases.scale):
        entries = list(original)
        at = rng.randrange(0, len(entries))
        key, value = entries[at]
        value = bytearray(value)
        if rng.random() < 0.7 and value:
            value[rng.randrange(len(value))] ^= 1 << rng.randrange(8)
        elif value:
            del value[rng.randrange(len(value)) :]
        entries[at] = (key, bytes(value))
        put(table(entries), "v1_changed", "restore")
    for _ in range(40 * cases.scale):
        data = bytearray(whole)
        if rng.random() < 0.8:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        else:
            del data[rng.randrange(len(data)) :]
        put(bytes(data), "v1_flips", "open")


def corpus(cases):
    for path in sorted((CORPUS / "graphs").glob("*.pb")):
        cases.add("corpus", "graph", path)
    for path in sorted((CORPUS / "graphs").glob("*.pbtxt")):
        cases.add("corpus", "text", path)
    for path in sorted((CORPUS / "meta").glob("*.meta")):
        cases.add("corpus", "meta", path)
    tags = {}
    for line in (CORPUS / "verdicts.jsonl").read_text().splitlines():
        record = json.loads(line)
        if record["op"] == "load_v1":
            cases.add("corpus", "model", CORPUS / record["path"], tags=record["props"].get("tags", ["serve"]))
        elif record["op"] == "open":
            cases.add("corpus", "open", CORPUS / record["path"])


FAMILIES = [versions_of_graphs, deprecations, structures, damages, texts, metas, models, checkpoints, old_checkpoints, corpus, *verdict_cases.FAMILIES]


# ---- The comparison --------------------------------------------------------------------------------------------------------------


def environment():
    return dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="", TF_ENABLE_ONEDNN_OPTS="0")


def real(cases, directory):
    """Returns TensorFlow's result for every case: None, (code, message), or "crash"."""
    list_file = directory / "cases.jsonl"
    list_file.write_text("".join(json.dumps(case) + "\n" for case in cases))
    found = []
    while len(found) < len(cases):
        command = [sys.executable, os.path.abspath(__file__), "--child", str(list_file), str(len(found))]
        with subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as run:
            for line in run.stdout:
                if not line.startswith("["):
                    continue
                number, result = json.loads(line)
                assert number == len(found)
                found.append(result)
        if len(found) < len(cases):
            found.append("crash")
    return found


def ours(binary, release, case):
    options = ["--tensorflow", release]
    if case["how"] == "model":
        options += ["--tags", ",".join(case["tags"])]
    if case["how"] == "restore":
        options += ["--verify-data"]
    done = subprocess.run([binary, "check", "--json", case["path"], *options], capture_output=True, text=True, timeout=LIMIT)
    lines = done.stdout.splitlines()
    return done.returncode, json.loads(lines[0]) if lines else {}


# The meaning of a refusal of the importer, by parts of its message; the first match counts.
REASONS = [
    ("producer_too_old", ["below min producer"]),
    ("min_consumer", ["min consumer version"]),
    ("bad_consumer", ["disallows consumer"]),
    ("deprecated_op", ["is not available in GraphDef version"]),
    ("corrupt", ["Invalid GraphDef", "parse:", "DecodeError", "Error parsing", "Cannot parse file", "ParseError"]),
    ("structure", ["a different function with the same name", "already has gradient function", "expects to be colocated with unknown node"]),
    ("registry", ["Op type not registered", "No OpKernel", "Op has no registered", "has no kernel", "not a registered op"]),
    ("registry", ["NodeDef missing attr", "NodeDef mentions attr", "does not match", "expects to be colocated", "inputs do not match", "Input ",
                  "inconsistent with definition", "has inputs", "AttrValue", "expected inputs", "which is not a member", "expected to have", "outputs",
                  "Attr ", "attr ", "incompatible with expected", "shape", "Shape", "Value for attr", "list(", "Expected ", "control dependency", "Cannot convert",
                  "Attempt to access beyond input size", "Could not find valid device", "already exist", "Cannot add function", "function"]),
]

LEFT_OUT = ("No type fields", "to be a control input", "expected type INVALID", "Failed to bind all placeholders", "invalid input index")


def meaning(result):
    text = result[1]
    for reason, parts in REASONS:
        if any(part in text for part in parts):
            return reason
    return "other"


def agrees(case, result, code, verdict):
    """Returns None if both agree, "skip" if serdes does not judge the reason, or else a description of the difference."""
    rule = (verdict.get("reasons") or [{}])[0].get("rule")
    expected_code = {"acceptable": 0, "unacceptable": 1, "unreadable": 2}.get(verdict.get("verdict"))
    if expected_code != code or code not in (0, 1, 2):
        return f"status {code} for {verdict.get('verdict')}"
    if result == "crash":
        # Opening may succeed; a checkpoint with a tensor that cannot be restored must be refused.
        return None if case["how"] == "open" or code == 2 else "accepted where TensorFlow crashes"
    if result is None and case["how"] == "restore" and "its place needs" in str(verdict.get("reasons")):
        # TensorFlow copies a part of a piece that is larger than its place, with arbitrary contents.
        return "skip"
    if result is None:
        return None if code == 0 else f"refused by {rule}"
    reason = meaning(result)
    version_rules = ("producer_too_old", "min_consumer", "bad_consumer", "deprecated_op")
    if "reason" in case and reason not in (*version_rules, "corrupt"):
        # The message about a function does not determine the reason, so the case does.
        reason = case["reason"]
    if reason in version_rules:
        if rule != reason:
            return f"rule {rule} instead of {reason}"
        if reason == "deprecated_op":
            name = result[1].split("Op ")[1].split(" ")[0]
            if f" {name} " not in verdict["reasons"][0]["message"]:
                return f"another operation than {name} first"
        return None
    if case["how"] in ("graph", "text", "meta"):
        if reason == "corrupt":
            # A file that gzip compressed is a valid file of another kind, with any name.
            path = pathlib.Path(case["path"])
            expected = "other_kind" if path.read_bytes()[:3] == b"\x1f\x8b\x08" else "corrupt"
            return None if rule == expected else f"rule {rule} instead of {expected}"
        if reason == "registry":
            # Refusals by shape functions are accepted; tensorflow_operations.py compares the other classes that depend on
            # operations.
            return None if code == 1 else "skip"
        # A part that is missing in a signature or a call is found when the types of operations are checked, and has their rule.
        if rule in ("input_type", "input_count", "deprecated_op") and any(text in result[1] for text in LEFT_OUT):
            return None
        if "Op type not registered" in result[1]:
            # A node in a body with an empty operation name is looked up like any other.
            return None if rule == "unknown_op" else f"rule {rule} instead of unknown_op"
        return None if rule == "corrupt" else f"rule {rule} instead of a fault of structure"
    if case["how"] == "model":
        if reason == "registry" and "variables" not in result[1]:
            return "skip"
        # The C++ loader, which decides here, accepts a model without its variables; the Python loaders do not.
        missing = any(text in result[1] for text in ("NotFoundError", "Unsuccessful TensorSliceReader", "not a valid checkpoint"))
        if code == 0 and missing and any("variables" in (w.get("where") or "") for w in verdict["warnings"]):
            return None
        return None if code == 2 else f"accepted, or refused by {rule}"
    if case["how"] == "restore" and code == 0 and "does not equal original dtype" in result[1]:
        # Another type of the same size: the checkpoint is intact, but does not have the requested type.
        return "skip"
    if case["how"] == "restore" and code == 0 and "not found in checkpoint" in result[1] and result[1].count("Error: ") == 1 + result[1].count("NotFoundError: "):
        # The change removed a tensor from the list: TensorFlow lacks a requested name, but no data.
        return "skip"
    return None if code == 2 else f"code {code}, rule {rule}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--serdes", required=True)
    parser.add_argument("--host-plugin")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scale", type=int, default=1)
    parser.add_argument("--only", action="append")
    parser.add_argument("--keep")
    options = parser.parse_args()
    checks, skipped = Checks(), 0
    with tempfile.TemporaryDirectory() as scratch:
        directory = pathlib.Path(options.keep or scratch)
        made = directory / "made"
        made.mkdir(parents=True)
        done = subprocess.run([sys.executable, os.path.abspath(__file__), "--make", str(made)], capture_output=True, text=True, timeout=LIMIT, env=environment())
        if done.returncode != 0:
            print(done.stderr[-3000:])
            sys.exit("TensorFlow could not make the inputs")
        about = json.loads(done.stdout.splitlines()[-1])
        cases = Cases(directory, made, about["graph_def"], random.Random(options.seed), options.scale)
        for family in FAMILIES:
            if not options.only or family.__name__ in options.only:
                family(cases)
        results = real(cases.all, directory)
        counts = {}
        for case, result in zip(cases.all, results):
            code, verdict = ours(options.serdes, about["release"], case)
            outcome = agrees(case, result, code, verdict)
            tally = counts.setdefault(case["family"], [0, 0, 0])
            found = f"{outcome}\n    TensorFlow: {str(result)[:300]}\n    serdes: {verdict.get('reasons')}"
            if outcome != "skip":
                checks.check(f"{case['path']} {case.get('tags', '')}", outcome is None, found)
            if outcome is None:
                tally[0] += 1
            elif outcome == "skip":
                skipped += 1
                tally[1] += 1
            else:
                tally[2] += 1
        for family, (same, out, other) in counts.items():
            print(f"{family}: {same} agree, {out} decided by the registry, {other} differ")
        print(f"TensorFlow {about['release']} (GraphDef version {about['graph_def']}), {skipped} left to its registry of operations")
    sys.exit(checks.end())


if __name__ == "__main__":
    verdict_cases.use(sys.modules[__name__])
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], int(sys.argv[3]))
    elif sys.argv[1:2] == ["--make"]:
        child_make(sys.argv[2])
    else:
        main()
