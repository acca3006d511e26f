"""Compares the three loaders of the installed TensorFlow with `serdes check` on SavedModels with randomly damaged files beside the message.

The release itself exports models of several kinds: variables of both kinds in graphs, in parts, in two files and in the V1 format; objects in
lists and dictionaries, tables, assets, and an empty model. Each case deletes, cuts, swaps, renames, retypes or reshapes one thing of a checkpoint,
or changes its description of objects; the verdict of `serdes check` for each loader must be that loader's result.

    PYTHON tests/interop/tensorflow_variables.py --serdes PATH [--count N] [--seed N]

With SERDES_FULL=1 it makes 2,000 cases, else 150, and also tests the undamaged models.
"""

import argparse
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import tensorflow as tf
import tensorflow_operations
from checks import Checks
from tensorflow.core.protobuf import trackable_object_graph_pb2

v1 = tf.compat.v1
LOADERS = {"load_v1": "load_v1", "load_v2": "load", "capi_load": "cpp"}
DESCRIPTION = "_CHECKPOINTABLE_OBJECT_GRAPH"
PREFIX = pathlib.PurePath("variables", "variables")


def graph_model(folder, build, saver=None, has_asset=False, main=lambda: v1.tables_initializer(name="main")):
    """Saves a model of `tf.compat.v1`."""
    with tf.Graph().as_default(), v1.Session() as session:
        outputs, unused = build(), v1.placeholder(tf.float32, [], name="unused")
        session.run([v1.global_variables_initializer(), v1.local_variables_initializer()])
        session.run(v1.tables_initializer())
        builder = v1.saved_model.Builder(str(folder))
        signature = v1.saved_model.signature_def_utils.predict_signature_def({"x": unused}, {"y": outputs})
        more = {"saver": saver()} if saver else {}
        if has_asset:
            more |= {"assets_collection": v1.get_collection("asset_filepaths"), "main_op": main()}
        builder.add_meta_graph_and_variables(session, ["serve"], {"serving_default": signature}, **more)
        builder.save()


def variables(use_resource, partitioner=None):
    def build():
        kernel = v1.get_variable("kernel", [4, 3], use_resource=use_resource, partitioner=partitioner)
        step = v1.get_variable("step", [], tf.int64, use_resource=use_resource, initializer=v1.zeros_initializer())
        return tf.convert_to_tensor(kernel) + tf.cast(step, tf.float32)

    return build


def words_initializer(file):
    index = tf.lookup.TextFileIndex
    return tf.lookup.TextFileInitializer(file, tf.string, index.WHOLE_LINE, tf.int64, index.LINE_NUMBER)


class Objects(tf.Module):
    """Variables in places of every kind, one of them in two."""

    def __init__(self):
        super().__init__()
        self.kernel = tf.Variable([[1.0, 2.0]])
        self.list = [tf.Variable([1.0, 2.0]), tf.Module()]
        self.list[1].text = tf.Variable("a")
        self.dict = {"a": tf.Variable(3, dtype=tf.int64), "b": self.kernel}
        self.any_rows = tf.Variable([[1.0]], shape=[None, 1])


class Tables(tf.Module):
    """Tables: from a file, from constants, and saved ones."""

    def __init__(self, file):
        super().__init__()
        self.file = tf.saved_model.Asset(file)
        self.words = tf.lookup.StaticHashTable(words_initializer(self.file.asset_path), -1)
        self.mutable = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
        self.mutable.insert(["b", "c"], [2, 3])
        self.rows = tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, [0.0, 0.0])
        self.rows.insert([1], [[1.0, 2.0]])


class Unread(tf.Module):
    """An asset that no table uses."""

    def __init__(self, file):
        super().__init__()
        self.file = tf.saved_model.Asset(file)
        self.value = tf.Variable([1.0])

    @tf.function(input_signature=[])
    def read(self):
        return tf.io.read_file(self.file.asset_path)


def export(folder):
    """Exports models of this release."""
    words = folder / "words.txt"
    words.write_text("one\ntwo\n")

    def table():
        file = v1.constant(str(words), name="file")
        found = tf.lookup.StaticVocabularyTable(words_initializer(file), 1).lookup(tf.constant(["one"]))
        return tf.cast(found, tf.float32) + v1.get_variable("kernel", [1], use_resource=True)

    def path_in_variable():
        """Builds the model of tensorflow/serving#1437: the table may be filled before its file's path is assigned."""
        file = v1.constant(str(words), name="file")
        path = v1.get_variable("path", initializer=file, trainable=False, use_resource=False, collections=["local_variables"])
        path.assign(file, name="set_path")
        return v1.get_variable("kernel", [1]) + tf.cast(tf.lookup.StaticHashTable(words_initializer(path.value()), -1).size(), tf.float32)

    def set_path_and_fill():
        return tf.group(v1.get_default_graph().get_operation_by_name("set_path"), v1.tables_initializer(), name="main")

    halves = v1.fixed_size_partitioner(2)
    graph_model(folder / "references", variables(False))
    graph_model(folder / "resources", variables(True))
    graph_model(folder / "parts", variables(False, halves))
    graph_model(folder / "reshaped", variables(False), lambda: v1.train.Saver(reshape=True))
    graph_model(folder / "old_format", variables(False), lambda: v1.train.Saver(write_version=v1.train.SaverDef.V1))
    graph_model(folder / "table", table, has_asset=True)
    graph_model(folder / "path_in_variable", path_in_variable, has_asset=True, main=set_path_and_fill)
    graph_model(folder / "constant", lambda: tf.constant([1.0]))
    tf.saved_model.save(Objects(), str(folder / "objects"))
    tf.saved_model.save(Tables(str(words)), str(folder / "tables"))
    tf.saved_model.save(Unread(str(words)), str(folder / "unread"))
    tf.saved_model.save(tf.Module(), str(folder / "nothing"))
    return sorted(path for path in folder.iterdir() if path.is_dir())


def read(prefix):
    reader = tf.train.load_checkpoint(str(prefix))
    types = reader.get_variable_to_dtype_map()
    return {
        name: tf.raw_ops.RestoreV2(prefix=str(prefix), tensor_names=[name], shape_and_slices=[""], dtypes=[types[name]])[0]
        for name in sorted(types)
    }


def write(prefix, tensors):
    for file in prefix.parent.glob(f"{prefix.name}*"):
        file.unlink()
    names, values = list(tensors), list(tensors.values())
    tf.raw_ops.SaveV2(prefix=str(prefix), tensor_names=names, shape_and_slices=[""] * len(names), tensors=values)


def damage_files(rng, model, others):
    """Changes files; returns a description of the change."""
    folder = model / rng.choice(["variables"] * 3 + (["assets"] if (model / "assets").exists() else []))
    files = sorted(folder.iterdir()) if folder.exists() else []
    way = rng.choice(["gone", "other"] if not files else ["gone", "delete", "cut", "empty", "longer", "index byte", "other", "twice", "empty line"])
    if way == "gone":
        shutil.rmtree(folder, ignore_errors=True)
        return f"{folder.name} gone"
    if way == "other":
        other = rng.choice(others)
        if not (other / "variables").exists():
            return "whole"
        shutil.rmtree(model / "variables", ignore_errors=True)
        shutil.copytree(other / "variables", model / "variables")
        return f"variables of {other.name}"
    file = rng.choice(files)
    data = file.read_bytes()
    if way == "delete":
        file.unlink()
    elif way == "cut":
        # An asset that lost its last letters would be a valid table with other contents.
        file.write_bytes(b"" if folder.name == "assets" else data[: -rng.choice([1, 10, 40])])
    elif way == "empty":
        file.write_bytes(b"")
    elif way in ("twice", "empty line") and folder.name == "assets":
        # A table may have each key only once, and no empty key.
        file.write_bytes(data + (data if way == "twice" else b"\nthree\n"))
    elif way == "longer":
        file.write_bytes(data + b"x")
    elif file.suffix == ".index":
        at = rng.randrange(len(data))
        file.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    else:
        return "whole"
    return f"{file.name} {way}"


def damage_tensors(rng, model, _others):
    """Rewrites the checkpoint with one tensor changed."""
    prefix = model / PREFIX
    if not prefix.with_suffix(".index").exists():
        return "whole"
    tensors = read(prefix)
    name = rng.choice(list(tensors))
    tensor = tensors[name]
    way = rng.choice(["drop", "rename", "retype", "flat", "one more dimension", "longer", "extra"])
    if way == "extra":
        tensors["extra"] = tf.constant([1.0])
    elif way in ("drop", "rename"):
        tensors[name + ("x" if way == "rename" else "")] = tensors.pop(name)
        if way == "drop" and len(tensors) > 1:
            del tensors[name]
    elif name != DESCRIPTION:
        flat = tf.reshape(tensor, [-1])
        is_text = tensor.dtype == tf.string
        tensors[name] = {
            "retype": lambda: tf.zeros(tensor.shape) if is_text else tf.cast(tensor, tf.float64),
            "flat": lambda: flat,
            "one more dimension": lambda: tensor[None],
            "longer": lambda: tf.concat([flat, flat], 0),
        }[way]()
    write(prefix, tensors)
    return f"{name} {way}"


def damage_objects(rng, model, _others):
    """Changes the checkpoint's description of objects."""
    prefix = model / PREFIX
    tensors = read(prefix) if prefix.with_suffix(".index").exists() else {}
    if DESCRIPTION not in tensors:
        return "whole"
    graph = trackable_object_graph_pb2.TrackableObjectGraph.FromString(tensors[DESCRIPTION].numpy())
    way = rng.choice(["child", "number", "value", "key", "name", "text", "object"])
    parents = [node for node in graph.nodes if node.children]
    valued = [node for node in graph.nodes if node.attributes]
    if way in ("child", "number") and parents:
        children = rng.choice(parents).children
        at = rng.randrange(len(children))
        if way == "child":
            del children[at]
        else:
            children[at].node_id = rng.choice([0, 1, -1, 2, 99])
    elif way in ("value", "key", "name") and valued:
        attributes = rng.choice(valued).attributes
        if way == "value":
            del attributes[0]
        elif way == "key":
            attributes[0].checkpoint_key = rng.choice(["other", "other/.ATTRIBUTES/VARIABLE_VALUE", attributes[0].checkpoint_key + "x"])
        else:
            attributes[0].name = "other"
    elif way == "object":
        del graph.nodes[rng.randrange(len(graph.nodes)) :]
    data = b"\xff\xff" if way == "text" else graph.SerializeToString()
    tensors[DESCRIPTION] = rng.choice([tf.constant(data)] * 9 + [tf.constant([data])])
    write(prefix, tensors)
    return f"objects: {way}"


# Two operations of this model have no order: about once in some hundred loads, a session runs them in the other order and accepts the model.
RACES = {"path_in_variable"}


def judged(serdes, paths):
    """Returns the command's verdicts for each loader, with all details, by path."""
    command = [serdes, "check", "--json", "--tensorflow", tf.__version__, *map(str, paths)]
    lines = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False).stdout.splitlines()
    return {verdict["path"]: verdict for verdict in map(json.loads, lines)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--serdes", required=True)
    parser.add_argument("--host-plugin")
    parser.add_argument("--count", type=int, default=2000 if os.environ.get("SERDES_FULL") == "1" else 150)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng, checks = random.Random(options.seed), Checks()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "models").mkdir()
        models = export(folder / "models")
        cases = [(model.name, "as exported", model) for model in models]
        for number in range(options.count):
            model = rng.choice(models)
            path = folder / "damaged" / str(number)
            shutil.copytree(model, path)
            damage = rng.choice([damage_files, damage_files, damage_tensors, damage_tensors, damage_objects])
            cases.append((model.name, damage(rng, path, models), path))
        answers = tensorflow_operations.real([{"path": str(path), "ways": list(LOADERS)} for _, _, path in cases], folder)
        verdicts = judged(options.serdes, [path for _, _, path in cases])
        refused = 0
        for (model, what, path), answer in zip(cases, answers):
            verdict = verdicts[str(path)]
            for way, loader in LOADERS.items():
                taken = answer[way] is None
                refused += not taken
                said = verdict["loaders"][loader] == "acceptable"
                found = f"TensorFlow {answer[way]}, serdes {verdict['loaders']}, {[reason['message'] for reason in verdict['reasons']]}"
                checks.check(f"{model}, {what}: {loader}", taken == said or (taken and model in RACES), found)
            is_taken = verdict["loaders"]["load_v1"] == "acceptable"
            checks.check(f"{model}, {what}: the verdict", (verdict["verdict"] == "acceptable") == is_taken, verdict["verdict"])
        # Without damage the comparison would prove nothing.
        checks.check("many are refused", refused >= options.count / 2, refused)
    sys.exit(checks.end())


if __name__ == "__main__":
    main()
