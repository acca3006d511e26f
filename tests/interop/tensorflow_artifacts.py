"""Tests `serdes check` on artifacts that real TensorFlow writes, and on changed copies of them.

python tests/interop/tensorflow_artifacts.py --serdes BINARY
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from checks import Checks

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

checks = Checks()


def expect(condition, what):
    checks.check(what, condition)


def check(binary, path, *options):
    done = subprocess.run([binary, "check", "--json", str(path), *options], capture_output=True, text=True, timeout=120)
    objects = [json.loads(line) for line in done.stdout.splitlines()]
    return done.returncode, objects[0] if objects else {}


def verdict(binary, path, status, rule=None, *options):
    """Checks the exit status and the first rule; rule None is for an acceptable artifact."""
    code, found = check(binary, path, *options)
    reasons = found.get("reasons") or [{}]
    same = code == status and reasons[0].get("rule") == rule
    expect(same, f"{path} {options}: {code} {reasons[0]} instead of {status} {rule}")
    return found


def damaged(path, name, change):
    copy = path.with_name(name)
    data = bytearray(path.read_bytes())
    copy.write_bytes(change(data))
    return copy


def graphs(binary, work, tf):
    graph = tf.Graph()
    with graph.as_default():
        x = tf.compat.v1.placeholder(tf.float32, [None, 4], name="x")
        w = tf.constant([[1.0]] * 4, name="w")
        tf.matmul(x, w, name="y")
    message = graph.as_graph_def()
    good = work / "good.pb"
    good.write_bytes(message.SerializeToString())
    found = verdict(binary, good, 0)
    expect(found["kind"] == "graph_def" and found["versions"]["producer"] == message.versions.producer, "the producer")
    (work / "good.pbtxt").write_text(str(message))
    verdict(binary, work / "good.pbtxt", 0)
    current = message.versions.producer

    def changed(name, change):
        copy = type(message)()
        copy.CopyFrom(message)
        change(copy)
        path = work / name
        path.write_bytes(copy.SerializeToString())
        (work / (name + "txt")).write_text(str(copy))
        return path, copy

    def imported(copy):
        with tf.Graph().as_default():
            try:
                tf.import_graph_def(copy, name="")
                return True
            except (ValueError, tf.errors.OpError):
                return False

    def deprecated(graph):
        # The node has all attributes, because a missing one would be reported first.
        node = graph.node.add(name="old", op="PlaceholderV2")
        node.attr["dtype"].type = 1
        node.attr["shape"].shape.unknown_rank = True

    cases = [
        ("min_consumer.pb", lambda g: setattr(g.versions, "min_consumer", current + 1), 1, "min_consumer"),
        ("bad_consumer.pb", lambda g: g.versions.bad_consumers.append(current), 1, "bad_consumer"),
        ("producer.pb", lambda g: setattr(g.versions, "producer", -1), 1, "producer_too_old"),
        ("ahead.pb", lambda g: setattr(g.versions, "producer", current + 100), 0, None),
        ("deprecated.pb", deprecated, 1, "deprecated_op"),
        ("duplicate.pb", lambda g: g.node.add(name="x", op="NoOp"), 2, "corrupt"),
    ]
    for name, change, status, rule in cases:
        path, copy = changed(name, change)
        found = verdict(binary, path, status, rule)
        verdict(binary, work / (name + "txt"), status, rule)
        if name != "deprecated.pb":
            expect(imported(copy) == (status == 0), f"TensorFlow on {name}")
        if name == "deprecated.pb":
            expect(found["reasons"][0]["where"] == "old", "the deprecated node is named")
        if name == "ahead.pb":
            expect(any(w["rule"] == "forward_compatibility" for w in found["warnings"]), "the warning of the window")
    verdict(binary, work / "min_consumer.pb", 0, None, "--consumer", f"graph_def={current + 1}")
    verdict(binary, work / "good.pb", 0, None, "--tensorflow", "2.12.0")
    verdict(binary, damaged(good, "cut.pb", lambda data: data[:-3]), 2, "corrupt")
    verdict(binary, damaged(good, "wire.pb", lambda data: data + b"\x07"), 2, "corrupt")
    verdict(binary, work / "nothing.pb", 2, "not_found")


def models(binary, work, tf):
    class Model(tf.Module):
        def __init__(self):
            self.w = tf.Variable([1.0, 2.0])

        @tf.function(input_signature=[tf.TensorSpec([2], tf.float32)])
        def __call__(self, x):
            return x * self.w

    path = work / "model"
    model = Model()
    tf.saved_model.save(model, str(path), signatures=model.__call__)
    found = verdict(binary, path, 0)
    expect(found["kind"] == "saved_model", "the kind of a model")
    verdict(binary, path, 0, None, "--verify-data")
    verdict(binary, path, 2, "not_found", "--tags", "train")
    keras = work / "keras"
    network = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(2)])
    network.export(str(keras), verbose=False)
    verdict(binary, keras, 0, None, "--verify-data")
    from tensorflow.core.protobuf import saved_model_pb2

    file = path / "saved_model.pb"
    message = saved_model_pb2.SavedModel.FromString(file.read_bytes())
    current = message.meta_graphs[0].graph_def.versions.producer
    message.meta_graphs[0].graph_def.versions.min_consumer = current + 1
    file.write_bytes(message.SerializeToString())
    found = verdict(binary, path, 1, "min_consumer")
    expect(any(w["rule"] == "loader_differs" for w in found["warnings"]), "tf.saved_model.load would take it")
    file.write_bytes(b"\x07garbage")
    verdict(binary, path, 2, "corrupt")
    file.write_bytes(b"")
    verdict(binary, path, 2, "not_found")


def checkpoints(binary, work, tf):
    prefix = tf.train.Checkpoint(a=tf.Variable([1.0, 2.0]), s=tf.Variable(["x", "yz"])).save(str(work / "ckpt"))
    verdict(binary, prefix, 0)
    verdict(binary, prefix, 0, None, "--verify-data")
    index, data = pathlib.Path(prefix + ".index"), pathlib.Path(prefix + ".data-00000-of-00001")
    verdict(binary, index, 0)
    whole = data.read_bytes()
    flipped = bytearray(whole)
    flipped[len(flipped) // 2] ^= 1
    data.write_bytes(flipped)
    verdict(binary, prefix, 0)
    verdict(binary, prefix, 2, "corrupt", "--verify-data")
    data.unlink()
    found = verdict(binary, prefix, 0)
    expect(found["warnings"], "a missing shard is warned about")
    verdict(binary, prefix, 2, "not_found", "--verify-data")
    data.write_bytes(whole)
    index.write_bytes(index.read_bytes()[:-1])
    verdict(binary, prefix, 2, "corrupt")


def speed(binary, work):
    """Prints the time of the command's whole check beside a full parse by Python's protobuf."""
    from tensorflow.core.framework import graph_pb2

    message = graph_pb2.GraphDef()
    for number in range(1_000_000):
        message.node.add(name=f"node/number/{number:07}", op="NoOp")
    message.versions.producer = 2474
    path = work / "large.pb"
    path.write_bytes(message.SerializeToString())
    data = path.read_bytes()
    del message

    def best(work):
        times = []
        for _ in range(5):
            start = time.perf_counter()
            work()
            times.append(time.perf_counter() - start)
        return min(times)

    parse = best(lambda: graph_pb2.GraphDef.FromString(data))
    ours = best(lambda: subprocess.run([binary, "check", str(path)], check=True, stdout=subprocess.DEVNULL))
    print(f"check of {len(data)} bytes, 1e6 nodes: {ours:.3f} s for the process; Python protobuf {parse:.3f} s; ratio {ours / parse:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serdes", required=True)
    parser.add_argument("--host-plugin")
    parser.add_argument("--speed", action="store_true", help="also compare with Python's protobuf")
    arguments = parser.parse_args()
    import tensorflow as tf

    with tempfile.TemporaryDirectory() as directory:
        work = pathlib.Path(directory)
        graphs(arguments.serdes, work, tf)
        models(arguments.serdes, work, tf)
        checkpoints(arguments.serdes, work, tf)
        if arguments.speed:
            speed(arguments.serdes, work)
    return checks.end()


if __name__ == "__main__":
    sys.exit(main())
