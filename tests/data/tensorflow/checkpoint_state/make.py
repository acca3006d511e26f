"""Makes the folders beside this file with the installed TensorFlow (2.21), and asks it about texts of the file `checkpoint`.

    PYTHON tests/data/tensorflow/checkpoint_state/make.py

`run` is what a CheckpointManager keeps, `v1` what a Saver of V1 checkpoints writes, `sharded` the same in several files. A line of
cases.jsonl: a text for `run/checkpoint` (in hexadecimal), and the name of the checkpoint that tf.train.latest_checkpoint gives, null for
none, or the exception that it raises.
"""

import json
import os
import pathlib
import shutil
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import tensorflow as tf  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
v1 = tf.compat.v1

TEXTS = [
    'model_checkpoint_path: "ckpt-4"\n',
    'model_checkpoint_path: "ckpt-3"\n',
    'model_checkpoint_path: "./ckpt-4"\n',
    'model_checkpoint_path: "ckpt-9"\n',
    'model_checkpoint_path: "/nowhere/ckpt-4"\n',
    'model_checkpoint_path: "ckpt-4"\nmodel_checkpoint_path: "ckpt-3"\n',
    'model_checkpoint_path: "ckpt-4"\nfoo: 1\n',
    "",
    'all_model_checkpoint_paths: "ckpt-4"\n',
    'model_checkpoint_path: ""\n',
    '# hello\nmodel_checkpoint_path: "ckpt-4" # x\r\n',
    'model_checkpoint_path: "ckpt-4"; all_model_checkpoint_paths: ["ckpt-3", "ckpt-4"], last_preserved_timestamp: 1e9',
    '\ufeffmodel_checkpoint_path: "ckpt-4"\n',
    b'model_checkpoint_path: "ckpt-\xe9"\n',
    'model_checkpoint_path: "ckpt-4"\nall_model_checkpoint_timestamps: nan\nall_model_checkpoint_timestamps: 1e400\n',
    'model_checkpoint_path "ckpt-4"\n',
    "model_checkpoint_path: \"ck\" 'pt-4'\n",
    'model_checkpoint_path: "ckpt\\0554"\n',
    'model_checkpoint_path: "s3://bucket/ckpt-4"\n',
    'model_checkpoint_path: "ckpt-4"\nall_model_checkpoint_paths: "ckpt-1"\n',
    'model_checkpoint_path: "ckpt-4',
    'model_checkpoint_path: 4\n',
]


def manager(folder):
    variable = tf.Variable([1.0, 2.0, 3.0])
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=variable), folder, 3)
    for _ in range(4):
        variable.assign_add([1, 1, 1])
        manager.save()


def saver(folder, name, **arguments):
    folder.mkdir()
    with tf.Graph().as_default(), v1.Session() as session:
        a = v1.get_variable("a", initializer=[1.0, 2.0, 3.0])
        b = v1.get_variable("b", initializer=[[1, 2], [3, 4]])
        session.run(v1.global_variables_initializer())
        saver = v1.train.Saver([a, b], write_version=v1.train.SaverDef.V1, save_relative_paths=True, **arguments)
        saver.save(session, str(folder / name), write_meta_graph=False)


def latest(text):
    with tempfile.TemporaryDirectory() as folder:
        run = pathlib.Path(folder, "run")
        shutil.copytree(HERE / "run", run)
        (run / "checkpoint").write_bytes(text)
        try:
            found = tf.train.latest_checkpoint(str(run))
        except Exception as error:
            return {"raises": type(error).__name__}
        return {"latest": found and os.path.basename(found)}


def main():
    for name in ("run", "v1", "sharded"):
        shutil.rmtree(HERE / name, ignore_errors=True)
    manager(HERE / "run")
    saver(HERE / "v1", "model.ckpt")
    saver(HERE / "sharded", "model.ckpt", sharded=True)
    texts = [text if isinstance(text, bytes) else text.encode() for text in TEXTS]
    lines = [json.dumps({"text": text.hex(), **latest(text)}) for text in texts]
    (HERE / "cases.jsonl").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
