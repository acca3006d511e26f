"""Compares `serdes check` and `tf.saved_model.load` on object graphs of SavedModels, unchanged and with one random change.

The release is that of the interpreter that runs this (2.12, 2.16 or 2.21); it exports the models. Errors that depend on the checkpoint or on a
function that runs are counted and left out.

    PYTHON tests/interop/tensorflow_objects.py --serdes PATH [--count N] [--seed N]

With SERDES_FULL=1 it makes 2,000 changes, else 160.
"""

import argparse
import collections
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import tensorflow as tf
from checks import Checks
from google.protobuf.message import Message
from tensorflow.core.protobuf import saved_model_pb2

# Errors of TensorFlow that depend on the checkpoint, or on a function's run or its results: these are not compared.
LEFT_OUT = re.compile(
    r"not bound to checkpointed values|when attempting to restore|RestoreV2|Unable to save the object|is not callable"
    r"|Binding inputs|Python inputs incompatible|Graph execution error|^KeyError: '(name|slice_spec)'$"
)
FLOAT = tf.TensorSpec([2], tf.float32)


class Variables(tf.Module):
    """A function with all kinds of parameters, and objects in lists and dictionaries."""

    def __init__(self):
        super().__init__()
        self.list = [tf.Variable([1.0, 2.0]), tf.Variable([3])]
        self.dict = {"a": tf.Variable(1.0), "b": [tf.Variable(2.0)]}

    @tf.function(input_signature=[FLOAT])
    def typed(self, x):
        return x * self.list[0] + self.dict["a"]

    @tf.function
    def keyword(self, x, *, y, scale=2.0):
        return {"out": x * scale + y + self.dict["b"][0]}


class Tables(tf.Module):
    """Resources: one that its function fills, and one that is saved."""

    def __init__(self):
        super().__init__()
        rows = tf.lookup.KeyValueTensorInitializer(["a"], [1])
        self.fixed = tf.lookup.StaticHashTable(rows, -1)
        self.growing = tf.lookup.experimental.MutableHashTable(tf.string, tf.int32, -1)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def look_up(self, key):
        return self.fixed.lookup(key) + self.growing.lookup(key)


def export(folder):
    """Exports models of this release."""
    variables = Variables()
    variables.keyword.get_concrete_function(FLOAT, y=FLOAT)
    tf.saved_model.save(variables, str(folder / "variables"), signatures=variables.typed)
    tables = Tables()
    tables.growing.insert(["b"], [2])
    tf.saved_model.save(tables, str(folder / "tables"))
    return [folder / "variables", folder / "tables"]


def fields(message, path=""):
    """Yields every present field, with the message that has it."""
    for field, value in message.ListFields():
        where = f"{path}.{field.name}"
        yield message, field, where
        if field.message_type is None:
            continue
        if field.message_type.GetOptions().map_entry:
            parts = [(f"{where}[{key}]", value[key]) for key in sorted(value)]
        elif isinstance(value, Message):
            parts = [(where, value)]
        else:
            parts = [(f"{where}[{position}]", part) for position, part in enumerate(value)]
        for name, part in parts:
            if isinstance(part, Message):
                yield from fields(part, name)


def other(value, dice):
    """Returns a different value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return dice.choice(
            [number for number in (0, 1, -1, 2, 9, 99, value + 1) if number != value]
        )
    if isinstance(value, float):
        return value + 0.5
    return dice.choice([type(value)(), value + value[:1], value[1:]])


def change_map(values, dice):
    key = dice.choice(sorted(values))
    kept = values[key]
    renamed = key + "x"
    if dice.random() < 0.5 and isinstance(kept, Message):
        values[renamed].CopyFrom(kept)
    del values[key]
    return f"[{key}]"


def change_list(values, dice):
    position = dice.randrange(len(values))
    way = dice.choice(["drop", "twice", "other"])
    if way == "other" and not isinstance(values[position], Message):
        values[position] = other(values[position], dice)
    elif way == "twice":
        values.append(values[position])
    else:
        del values[position]
    return f"[{position}] {way}"


def change(graph, dice):
    """Makes one change; returns its description."""
    message, field, where = dice.choice(list(fields(graph)))
    value = getattr(message, field.name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return where + change_map(value, dice)
    if not isinstance(value, (Message, bool, int, float, str, bytes)):
        return where + change_list(value, dice)
    if isinstance(value, Message) or dice.random() < 0.3:
        message.ClearField(field.name)
        return where + " gone"
    made = other(value, dice)
    setattr(message, field.name, made)
    return f"{where} = {made!r}"


def is_left_out(what, said):
    """Returns True for a change that is not compared. Loaders neither look up the nodes of constants nor run functions that save tables."""
    is_of_constant = ".constant" in what and said.startswith("KeyError")
    return bool(LEFT_OUT.search(said)) or is_of_constant or "[__inference_save_fn" in what


def loaded(model):
    """Returns TensorFlow's error for a model; an empty text if it accepts it."""
    try:
        tf.saved_model.load(str(model))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def judged(serdes, model):
    """Returns whether the command says that `tf.saved_model.load` accepts a model, and the reasons if not."""
    command = [
        serdes,
        "check",
        "--json",
        "--loader",
        "load",
        "--tensorflow",
        tf.__version__,
        str(model),
    ]
    verdict = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=False).stdout)
    return verdict["loaders"]["load"] == "acceptable", [
        reason["message"] for reason in verdict["reasons"]
    ]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--serdes", required=True)
    parser.add_argument("--host-plugin")
    parser.add_argument(
        "--count", type=int, default=2000 if os.environ.get("SERDES_FULL") == "1" else 160
    )
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    checks, counts = Checks(), collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        models = export(pathlib.Path(folder))
        for model in models:
            checks.check(
                f"{model.name} as exported",
                loaded(model) == "" and judged(options.serdes, model)[0],
            )
        changed = pathlib.Path(folder) / "changed"
        for number in range(options.count):
            dice = random.Random(f"{options.seed} {number}")
            shutil.copytree(dice.choice(models), changed)
            message = saved_model_pb2.SavedModel.FromString(
                (changed / "saved_model.pb").read_bytes()
            )
            what = change(message.meta_graphs[0].object_graph_def, dice)
            (changed / "saved_model.pb").write_bytes(message.SerializeToString())
            said, (taken, reasons) = loaded(changed), judged(options.serdes, changed)
            if taken and said and is_left_out(what, said):
                counts["left out"] += 1
            else:
                counts["refused" if said else "taken"] += 1
                checks.check(
                    f"change {number} ({what})",
                    taken == (said == ""),
                    f"TensorFlow: {said[:300]!r}, here: {reasons}",
                )
            shutil.rmtree(changed)
    # Only a small part may be left out, and without refusals nothing was compared.
    checks.check("enough is refused", counts["refused"] * 4 > options.count, counts)
    checks.check("little is left out", counts["left out"] * 8 < options.count, counts)
    print(f"TensorFlow {tf.__version__}: {dict(counts)}")
    return checks.end()


if __name__ == "__main__":
    sys.exit(main())
