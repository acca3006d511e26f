"""Compares the installed TensorFlow and `serdes check` on random changes of the names in a SavedModel outside its graph: in collections,
savers, signatures and assets.

The release itself makes a model of TF1 with variables of both kinds, a queue, a condition, a loop, a table, an asset and signatures.
Each case changes one name in it, or the name of a node, and goes through the three loaders. No model that loads may be refused; an
accepted model that does not load must have an error of the classes that serdes leaves to TensorFlow.

    PYTHON tests/interop/tensorflow_named_nodes.py --serdes PATH [--count N] [--seed N]

With SERDES_FULL=1 it makes 2,000 cases, else 250.
"""

import argparse
import collections
import os
import pathlib
import random
import re
import shutil
import sys
import tempfile

import tensorflow_operations

# Errors that a release reports only when it computes something, or that depend on the kind of an existing node.
OUTSIDE = re.compile(
    r"no attr named|append-only|tuple index|has no attribute|could not convert|Graph execution error|cannot compute|uninitialized"
    r"|Restoring from checkpoint|Unsuccessful TensorSliceReader|must feed a value|Shapes must|Tensor conversion|not compatible|not found in checkpoint"
    r"|already exists|NewRandomAccessFile|Expected to restore|expected type|can only be|is not valid|is not a valid|not fetchable|cannot be fed|cannot be fetched|may not be fed"
)
RESTORED = re.compile(r"feed_devices|PruneForTargets|does not have output -1")
LOADERS = {"load_v1": "load_v1", "load_v2": "load", "capi_load": "cpp"}


def make_model(directory):
    """Saves a model of TF1 with names of all kinds."""
    import tensorflow as tf

    v1 = tf.compat.v1
    v1.disable_control_flow_v2()
    index = tf.lookup.TextFileIndex
    asset = directory.parent / "words.txt"
    asset.write_text("one\ntwo\n")
    with tf.Graph().as_default():
        fed, other = v1.placeholder(tf.float32, [None, 2], name="fed"), v1.placeholder(tf.float32, [], name="other")
        resource = v1.get_variable("resource", [2, 3], use_resource=True)
        reference = v1.get_variable("reference", [3], use_resource=False)
        v1.get_variable("local", [1], use_resource=True, collections=["local_variables"])
        product = tf.matmul(fed, resource) + reference
        branch = v1.cond(tf.reduce_sum(product) > 0, lambda: product * 2.0, lambda: tf.identity(product), name="branch")
        looped = v1.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x + branch), [0, branch], name="loop")[1]
        queue = v1.FIFOQueue(4, [tf.float32], name="queue")
        v1.train.add_queue_runner(v1.train.QueueRunner(queue, [queue.enqueue(tf.constant(1.0))]))
        file = v1.constant(str(asset), name="file")
        words = tf.lookup.StaticVocabularyTable(tf.lookup.TextFileInitializer(file, tf.string, index.WHOLE_LINE, tf.int64, index.LINE_NUMBER), 1)
        v1.add_to_collection("mine", looped)
        v1.add_to_collection("mine", words.lookup(tf.constant(["one"])).op)
        v1.add_to_collection("number", 7)
        unique = tf.unique(tf.reshape(looped, [-1]), name="unique")
        build, info = v1.saved_model.signature_def_utils.build_signature_def, v1.saved_model.utils.build_tensor_info
        signatures = {
            "one": build({"x": info(fed)}, {"y": info(looped), "values": info(unique[0])}, "m"),
            "two": build({"x": info(fed), "z": info(other)}, {"y": info(looped * other)}, "m"),
        }
        with v1.Session() as session:
            session.run([v1.global_variables_initializer(), v1.local_variables_initializer(), v1.tables_initializer()])
            builder = v1.saved_model.Builder(str(directory))
            saver = v1.train.Saver()
            builder.add_meta_graph_and_variables(session, ["serve"], signatures, assets_collection=v1.get_collection("asset_filepaths"), main_op=v1.tables_initializer(name="main"), saver=saver)
            builder.save()


def texts_of(meta_graph):
    """Returns each name in a meta graph outside its graph, with its place and a function that replaces it."""
    from google.protobuf import message
    from tensorflow.core.framework import variable_pb2
    from tensorflow.core.protobuf import control_flow_pb2, queue_runner_pb2

    kinds = {"cond_context": control_flow_pb2.CondContextDef, "while_context": control_flow_pb2.WhileContextDef, "queue_runners": queue_runner_pb2.QueueRunnerDef}
    found = []

    def names_in(inner, where, write):
        for field, value in inner.ListFields():
            many = isinstance(value, (str, message.Message)) is False and hasattr(value, "__len__") and not isinstance(value, (bytes, int, float))
            if field.type == field.TYPE_STRING and not many:
                found.append((f"{where}.{field.name}", value, lambda text, i=inner, f=field: (setattr(i, f.name, text), write(i))))
            elif field.type == field.TYPE_STRING:
                for at, one in enumerate(value):
                    found.append((f"{where}.{field.name}", one, lambda text, v=value, n=at, i=inner: (v.__setitem__(n, text), write(i))))
            elif field.name == "values_def":
                names_in(value, f"{where}.values", lambda _, i=inner: write(i))

    for key, collection in meta_graph.collection_def.items():
        for at, name in enumerate(collection.node_list.value):
            found.append((f"{key}.node", name, lambda text, c=collection, n=at: c.node_list.value.__setitem__(n, text)))
        kind = kinds.get(key) or (variable_pb2.VariableDef if key.endswith("variables") else None)
        for at, data in enumerate(collection.bytes_list.value if kind else []):
            inner = kind()
            inner.ParseFromString(data)
            names_in(inner, key, lambda i, c=collection, n=at: c.bytes_list.value.__setitem__(n, i.SerializeToString()))
    for field in ("filename_tensor_name", "save_tensor_name", "restore_op_name"):
        found.append((f"saver.{field}", getattr(meta_graph.saver_def, field), lambda text, f=field: setattr(meta_graph.saver_def, f, text)))
    for key, signature in meta_graph.signature_def.items():
        for side in ("inputs", "outputs"):
            for name, info in getattr(signature, side).items():
                found.append((f"{key}.{side}.{name}", info.name, lambda text, i=info: setattr(i, "name", text)))
    for asset in meta_graph.asset_file_def:
        found.append(("asset", asset.tensor_info.name, lambda text, a=asset: setattr(a.tensor_info, "name", text)))
    return [one for one in found if "context_name" not in one[0]]


def other_name(rng, name, nodes):
    """Returns a different name: of a missing node, of another output, of another node, or an invalid or empty name."""
    node = name.split(":")[0]
    one = rng.choice(nodes)
    choices = ["missing", "missing:0", "", f"{node}:0", f"{node}:1", f"{node}:7", f"{node}:x", node, f"{node}:-1", f"{node}: 0", f"^{node}", f"{node}:0:0", one, f"{one}:0", f"{name}x"]
    return rng.choice(choices)


def spoil(rng, saved_model):
    """Changes one name; returns a description of the change."""
    meta_graph = saved_model.meta_graphs[0]
    nodes = [node.name for node in meta_graph.graph_def.node]
    texts = texts_of(meta_graph)
    if rng.random() < 0.3:
        used = {name.lstrip("^").split(":")[0] for node in meta_graph.graph_def.node for name in node.input}
        used |= {text.decode()[5:] for node in meta_graph.graph_def.node for text in node.attr["_class"].list.s}
        loose = [node for node in meta_graph.graph_def.node if node.name not in used]
        if loose:
            node = rng.choice(loose)
            words, node.name = f"renamed {node.name}", f"{node.name}_renamed"
            return words
    where, name, write = rng.choice(texts)
    text = other_name(rng, name, nodes)
    write(text)
    return f"{where}: {name} -> {text!r}"


def cases_of(directory, count, seed):
    from tensorflow.core.protobuf import saved_model_pb2

    rng = random.Random(seed)
    model = directory / "made" / "model"
    model.parent.mkdir()
    make_model(model)
    data = (model / "saved_model.pb").read_bytes()
    cases = []
    for number in range(count):
        path = directory / "models" / f"{number:04}"
        shutil.copytree(model, path)
        saved_model = saved_model_pb2.SavedModel.FromString(data)
        words = spoil(rng, saved_model) if number else "nothing"
        (path / "saved_model.pb").write_bytes(saved_model.SerializeToString())
        cases.append({"id": f"{number:04}", "path": str(path), "ways": list(LOADERS), "faults": [words]})
    return cases


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--serdes", required=True)
    parser.add_argument("--host-plugin")
    parser.add_argument("--count", type=int, default=2000 if os.environ.get("SERDES_FULL") else 250)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    import tensorflow as tf

    counts, wrong = collections.Counter(), 0
    with tempfile.TemporaryDirectory() as scratch:
        directory = pathlib.Path(scratch)
        cases = cases_of(directory, options.count, options.seed)
        answers = tensorflow_operations.real(cases, directory)
        found = tensorflow_operations.ours(options.serdes, tf.__version__, directory / "models")
        for case, answer in zip(cases, answers):
            for way, loader in LOADERS.items():
                is_taken, loads = found[case["path"]]["loaders"][loader] == "acceptable", answer[way] is None
                is_outside = not loads and (answer[way] == "crash" or OUTSIDE.search(answer[way][1]) is not None)
                # It uses the saver only if there is a checkpoint beside the graph, which the graph does not say.
                is_outside |= way == "capi_load" and RESTORED.search(str(answer[way])) is not None
                outcome = "same" if is_taken == loads else "outside" if is_taken and is_outside else "differs"
                counts[loader, outcome] += 1
                counts[loader, "loads" if loads else "refused"] += 1
                if outcome == "differs":
                    wrong += 1
                    print(f"DIFFERS {loader} {case['faults']}: TensorFlow {str(answer[way])[:200]}; serdes {str(found[case['path']]['reasons'])[:300]}")
    for loader in LOADERS.values():
        print(loader, {outcome: count for (one, outcome), count in counts.items() if one == loader})
    print(f"TensorFlow {tf.__version__}: {wrong} of {len(cases) * len(LOADERS)} verdicts differ")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
