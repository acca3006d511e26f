"""Compares signatures, assets and fingerprints of `serdes inspect` with `saved_model_cli show --all` of the installed TensorFlow.

    PYTHON tests/interop/tensorflow_signatures.py --serdes PATH [--models DIRECTORY]...

The models are those of tests/data, those below the named directories, and some that are made here: with assets, with two meta
graphs, with sparse and ragged inputs, in the text form.
"""

import argparse
import contextlib
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import tensorflow as tf  # noqa: E402
from google.protobuf import text_format  # noqa: E402
from tensorflow.core.protobuf import fingerprint_pb2, saved_model_pb2  # noqa: E402
from tensorflow.python.tools import saved_model_cli, saved_model_utils  # noqa: E402

from checks import Checks  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
HASHES = ["saved_model_checksum", "graph_def_program_hash", "signature_def_hash", "saved_object_graph_hash", "checkpoint_hash"]


def printed(model):
    """Returns the listing of TensorFlow's command, without functions, for which it would load the model."""
    saved_model_cli._show_defined_functions = lambda *_: None
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        saved_model_cli._show_all(str(model))
    return output.getvalue()


def listed(text):
    """Parses a listing: [tags, {key: {"inputs": {name: (dtype, shape, tensor)}, "outputs": {…}, "method": …}}] per meta graph."""
    graphs, tensors, tensor = [], None, None
    for line in text.splitlines():
        if found := re.fullmatch(r"MetaGraphDef with tag-set: '(.*)' contains the following SignatureDefs:", line):
            graphs.append([found[1], {}])
        elif found := re.fullmatch(r"signature_def\['(.*)'\]:", line):
            signature = {"inputs": {}, "outputs": {}, "method": ""}
            graphs[-1][1][found[1]] = signature
        elif found := re.fullmatch(r"    (inputs|outputs)\['(.*)'\] tensor_info:", line):
            tensors, tensor = signature[found[1]], found[2]
            tensors[tensor] = []
        elif found := re.fullmatch(r"        (dtype|shape|name): (.*)", line):
            tensors[tensor].append(found[2])
        elif found := re.fullmatch(r"  Method name is: (.*)", line):
            signature["method"] = found[1]
    return graphs


def described(summary):
    """Returns the same from the output of serdes."""

    def tensor(found):
        shape = found["shape"]
        words = "unknown_rank" if shape is None else "(" + ", ".join(map(str, shape)) + ")"
        return [found["tensorflow_dtype"], words, found["name"]]

    def tensors(found):
        return {name: tensor(one) for name, one in found.items()}

    graphs = []
    for graph in sorted(summary["meta_graphs"], key=lambda graph: graph["tags"]):
        signatures = {
            key: {"inputs": tensors(one["inputs"]), "outputs": tensors(one["outputs"]), "method": one["method_name"]}
            for key, one in graph["signatures"].items()
        }
        graphs.append([", ".join(graph["tags"]), signatures])
    return graphs


def assets(model):
    message = saved_model_utils.read_saved_model(str(model))
    found = [asset.filename for graph in message.meta_graphs for asset in graph.asset_file_def]
    return list(dict.fromkeys(found))


def fingerprint(model):
    path = model / "fingerprint.pb"
    if not path.is_file():
        return None
    message = fingerprint_pb2.FingerprintDef()
    try:
        message.ParseFromString(path.read_bytes())
    except Exception:
        return None
    numbers = {name: str(getattr(message, name)) for name in HASHES}
    return {**numbers, "uuid": message.uuid, "version": str(message.version.producer)}


def make(folder):
    """Saves models that the corpus lacks."""
    words = folder / "words.txt"
    words.write_text("a\nb\n")

    class Words(tf.Module):
        def __init__(self):
            initializer = tf.lookup.TextFileInitializer(
                tf.saved_model.Asset(str(words)), tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER)
            self.table = tf.lookup.StaticHashTable(initializer, -1)

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="word"), tf.TensorSpec(None, tf.bfloat16, name="weight")])
        def __call__(self, word, weight):
            return {"number": self.table.lookup(word), "weight": tf.cast(weight, tf.complex128)}

    tf.saved_model.save(Words(), str(folder / "assets"))

    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        sparse = tf.compat.v1.sparse_placeholder(tf.float64, [None, 4], name="sparse")
        ragged = tf.compat.v1.ragged.placeholder(tf.int32, 1)
        plain = tf.compat.v1.placeholder(tf.uint8, [2, None, 3], name="plain")
        info = tf.compat.v1.saved_model.utils.build_tensor_info
        signature = tf.compat.v1.saved_model.build_signature_def(
            {"sparse": info(sparse), "ragged": info(ragged), "plain": info(plain)}, {"out": info(tf.identity(plain))}, "a/method")
        builder = tf.compat.v1.saved_model.Builder(str(folder / "several"))
        builder.add_meta_graph_and_variables(session, ["train"], {"t": signature})
        builder.add_meta_graph(["serve", "gpu"], {"s": signature, "": signature})
        builder.save()
        builder.save(as_text=True)

    message = saved_model_pb2.SavedModel.FromString((folder / "several/saved_model.pb").read_bytes())
    (folder / "text").mkdir()
    (folder / "text/saved_model.pbtxt").write_text(text_format.MessageToString(message))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--serdes", required=True)
    parser.add_argument("--host-plugin")
    parser.add_argument("--models", action="append", default=[])
    arguments = parser.parse_args()
    checks = Checks()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        make(folder)
        roots = [folder, ROOT / "tests/data/tensorflow", *map(pathlib.Path, arguments.models)]
        models = sorted({path.parent for root in roots for path in root.rglob("saved_model.pb*")})
        compared = 0
        for model in models:
            try:
                expected = listed(printed(model))
            except Exception:
                continue
            result = subprocess.run([arguments.serdes, "inspect", "--json", str(model)], capture_output=True, text=True)
            found = json.loads(result.stdout.splitlines()[0]) if result.stdout else {}
            if "meta_graphs" not in found:
                # Python's parser accepts messages that other parsers refuse.
                checks.check(f"{model}: {result.stderr.strip()} {result.stdout.strip()}", result.returncode == 2)
                continue
            compared += 1
            checks.check(f"signatures of {model}", described(found) == expected, f"{described(found)}, expected {expected}")
            checks.check(f"assets of {model}", found["assets"] == assets(model), f"{found['assets']}, expected {assets(model)}")
            checks.check(f"fingerprint of {model}", found["fingerprint"] == fingerprint(model), found["fingerprint"])
            shown = subprocess.run([arguments.serdes, "inspect", "--signatures", str(model)], capture_output=True, text=True).stdout
            for _, signatures in expected:
                for key, signature in signatures.items():
                    names = [key, signature["method"], *(part for tensors in (signature["inputs"], signature["outputs"])
                                                         for name, one in tensors.items() for part in [name, *one])]
                    lost = [name for name in names if name.isprintable() and name not in shown]
                    checks.check(f"listing of {model}", not lost, f"{lost} not in {shown}")
        checks.check("models were compared", compared >= 20, compared)
        print(f"{compared} of {len(models)} models compared")
    return checks.end()


if __name__ == "__main__":
    sys.exit(main())
