"""Compares checkpoints of serdes and real TensorFlow byte for byte.

TensorFlow writes V1 and V2 checkpoints of every type, partitioned and over several files: every tensor is read byte-exactly. serdes
writes V2 checkpoints: tf.train.load_checkpoint and RestoreV2 read every tensor byte-exactly. With --time, both are timed on the same
checkpoints and the ratios printed.

    PYTHON tests/interop/tensorflow_checkpoints.py [--serdes PATH] [--host-plugin PATH] [--example PATH] [--time]

PYTHON has TensorFlow 2.21. --example is the built example `tensorflow_checkpoint`; without it, cargo builds it. With --serdes, the
command also copies a checkpoint over a device.
"""

import argparse
import glob
import json
import os
import subprocess
import sys
import tempfile

from checks import Checks

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LIMIT = 600
checks = Checks()


def check(condition, what, detail=""):
    checks.check(what, condition, detail)


# ---- Functions that run in a child process with TensorFlow ---------------------------------------------------------------------


def tensors_of_every_type(tf, np, v1):
    import ml_dtypes

    rng = np.random.default_rng(7)
    found = {}
    plain = ["float32", "float64", "int32", "int16", "int8", "int64", "uint8", "uint16", "bool", "complex64", "complex128", "float16"]
    if not v1:
        plain += ["uint32", "uint64"]
    for name in plain:
        values = rng.integers(0, 2**16, (3, 5)) - 2**15
        found[name] = tf.constant((values.astype("float32") if "float" in name else values).astype(name))
    for name, base in [("qint8", "int8"), ("quint8", "uint8"), ("qint32", "int32")] + (
        [] if v1 else [("qint16", "int16"), ("quint16", "uint16")]
    ):
        bits = rng.integers(0, 255, (7,)).astype(base)
        found[name] = tf.bitcast(tf.constant(bits), tf.as_dtype(name))
    if not v1:
        small = ["bfloat16", "float8_e5m2", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e4m3b11fnuz", "float8_e5m2fnuz"]
        small += ["int4", "uint4", "int2", "uint2", "float4_e2m1fn"]
        for name in small:
            values = (rng.integers(0, 2, (2, 3)) * 1.0).astype(getattr(ml_dtypes, name))
            found[name] = tf.constant(values)
    found["scalar"] = tf.constant(3.25)
    found["empty"] = tf.zeros((0, 4))
    found["rank6"] = tf.reshape(tf.range(64), (2, 2, 2, 2, 2, 2))
    found["nan"] = tf.constant([float("nan"), float("inf"), -0.0])
    found["strings"] = tf.constant([b"", b"a", "h\u00e9llo".encode(), b"x" * 300, b"\x00\xff"])
    found["string_scalar"] = tf.constant(b"one")
    found["string_empty"] = tf.zeros((0,), tf.string)
    if not v1:
        found["large"] = tf.constant(rng.integers(0, 255, (3_000_000,)).astype("uint8"))
        found["strings_many"] = tf.constant([bytes([i % 256]) * (i % 700) for i in range(3000)])
    return found


def save(tensors, directory):
    """Writes TensorFlow's tensors: one file per tensor, and a manifest."""
    os.makedirs(directory, exist_ok=True)
    with open(f"{directory}/manifest.jsonl", "w") as manifest:
        for number, (name, tensor) in enumerate(tensors.items()):
            line = {"name": name, "dtype": tensor.dtype.name, "shape": tensor.shape.as_list(), "file": f"{number}.bin"}
            array = tensor.numpy()
            if tensor.dtype.name == "string":
                strings = [array] if isinstance(array, bytes) else list(array.reshape(-1))
                line["lengths"] = [len(string) for string in strings]
                data = b"".join(strings)
            else:
                data = array.tobytes()
            with open(f"{directory}/{number}.bin", "wb") as file:
                file.write(data)
            manifest.write(json.dumps(line) + "\n")


def restore(tf, prefix, lines):
    """Returns every tensor, read by one call of RestoreV2."""
    names = [line["name"] for line in lines]
    types = [tf.as_dtype(line["dtype"]) for line in lines]
    return dict(zip(names, tf.raw_ops.RestoreV2(prefix=prefix, tensor_names=names, shape_and_slices=[""] * len(names), dtypes=types)))


def manifest(directory):
    with open(f"{directory}/manifest.jsonl") as file:
        return [json.loads(line) for line in file]


def child_write(directory):
    import numpy as np
    import tensorflow as tf

    v1 = tf.compat.v1
    everything = tensors_of_every_type(tf, np, v1=False)
    names = list(everything)
    tf.raw_ops.SaveV2(prefix=f"{directory}/v2", tensor_names=names, shape_and_slices=[""] * len(names), tensors=list(everything.values()))
    save(everything, f"{directory}/v2-expected")
    old = tensors_of_every_type(tf, np, v1=True)
    tf.raw_ops.Save(filename=f"{directory}/v1", tensor_names=list(old), data=list(old.values()))
    save(old, f"{directory}/v1-expected")
    # Pieces, in both formats; V2 over two files that are merged.
    whole = {"rows": tf.reshape(tf.range(60.0), (12, 5)), "columns": tf.reshape(tf.range(60, dtype=tf.int64), (4, 15))}
    pieces = [("rows", "12 5 0,5:-", (slice(0, 5), slice(None))), ("rows", "12 5 5,7:-", (slice(5, 12), slice(None)))]
    pieces += [("columns", "4 15 -:0,8", (slice(None), slice(0, 8))), ("columns", "4 15 -:8,7", (slice(None), slice(8, 15)))]
    for suffix, mine in [("a", pieces[::2]), ("b", pieces[1::2])]:
        tf.raw_ops.SaveV2(prefix=f"{directory}/part-{suffix}", tensor_names=[p[0] for p in mine],
                          shape_and_slices=[p[1] for p in mine], tensors=[whole[p[0]][p[2]] for p in mine])
    tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=[f"{directory}/part-a", f"{directory}/part-b"],
                                  destination_prefix=f"{directory}/merged", delete_old_dirs=False)
    save(whole, f"{directory}/merged-expected")
    # A call for V1 accepts only one slice of a name, so each slice gets a file; they are read by a pattern.
    for number, mine in enumerate([pieces[::2], pieces[1::2]]):
        tf.raw_ops.SaveSlices(filename=f"{directory}/v1parts-0000{number}-of-00002", tensor_names=[p[0] for p in mine],
                              shapes_and_slices=[p[1] for p in mine], data=[whole[p[0]][p[2]] for p in mine])
    save(whole, f"{directory}/v1parts-expected")
    # Typical contents: a Keras model and an object-based checkpoint.
    layer = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(3), tf.keras.layers.Dense(2)])
    written = tf.train.Checkpoint(model=layer, step=tf.Variable(7, dtype=tf.int64)).save(f"{directory}/keras")
    reader = tf.train.load_checkpoint(written)
    names = sorted(reader.get_variable_to_shape_map())
    save({name: tf.constant(reader.get_tensor(name)) for name in names}, f"{directory}/keras-expected")
    print(written)


def child_read(prefix, directory, expected):
    import tensorflow as tf

    lines = manifest(expected)
    restored = restore(tf, prefix, lines)
    save(restored, directory)
    reader = tf.train.load_checkpoint(prefix)
    shapes = reader.get_variable_to_shape_map()
    assert sorted(shapes) == sorted(line["name"] for line in lines), sorted(shapes)
    for line in lines:
        assert shapes[line["name"]] == line["shape"], line
        reader.get_tensor(line["name"])


def remove(prefix):
    for path in glob.glob(f"{prefix}.*"):
        os.remove(path)


def best(run, before=None, times=3):
    import time

    seconds = []
    for _ in range(times):
        if before:
            before()
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def child_time(directory):
    import numpy as np
    import tensorflow as tf

    names = [f"layer_{i // 100}/block_{i % 100}/kernel" for i in range(100_000)]
    scalars = [tf.constant(float(i)) for i in range(100)] * 1000
    tf.raw_ops.SaveV2(prefix=f"{directory}/many", tensor_names=names, shape_and_slices=[""] * len(names), tensors=scalars)
    large = [tf.constant(np.random.default_rng(i).integers(0, 2**31, (4 << 20,)).astype("int32")) for i in range(64)]
    names = [f"t{i}" for i in range(64)]
    save = lambda prefix: tf.raw_ops.SaveV2(prefix=prefix, tensor_names=names, shape_and_slices=[""] * 64, tensors=large)  # noqa: E731
    save(f"{directory}/large")
    lines = [{"name": name, "dtype": "int32"} for name in names]
    works = {
        "list": [lambda: tf.train.load_checkpoint(f"{directory}/many").get_variable_to_shape_map()],
        # In one call, and one by one: the faster one counts.
        "read": [lambda: restore(tf, f"{directory}/large", lines), lambda: [restore(tf, f"{directory}/large", [line]) for line in lines]],
        "write": [lambda: save(f"{directory}/written")],
    }
    print("ready", flush=True)
    for line in sys.stdin:
        # Every checkpoint is written to a free prefix, as in training: replacing an old one would add the file system's work.
        before = (lambda: remove(f"{directory}/written")) if line.strip() == "write" else None
        print(min(best(work, before) for work in works[line.strip()]), flush=True)


# ---- The driver ----------------------------------------------------------------------------------------------------------------


def tensorflow(*arguments):
    environment = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
    run = subprocess.run([sys.executable, os.path.abspath(__file__), "--child", *arguments], env=environment, timeout=LIMIT,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if run.returncode != 0:
        print(run.stderr[-3000:])
    return run


def command(*arguments):
    return subprocess.run(arguments, timeout=LIMIT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def compare(expected, found, what):
    wanted = {line["name"]: line for line in manifest(expected)}
    have = {line["name"]: line for line in manifest(found)} if os.path.exists(f"{found}/manifest.jsonl") else {}
    check(sorted(wanted) == sorted(have), f"{what}: names", f"{sorted(set(wanted) ^ set(have))}")
    for name, line in wanted.items():
        other = have.get(name)
        if other is None:
            continue
        same = all(line.get(key) == other.get(key) for key in ("dtype", "shape", "lengths"))
        with open(f"{expected}/{line['file']}", "rb") as a, open(f"{found}/{other['file']}", "rb") as b:
            check(same and a.read() == b.read(), f"{what}: {name}", f"{line} {other}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--serdes")
    parser.add_argument("--host-plugin")
    parser.add_argument("--example")
    parser.add_argument("--time", action="store_true")
    options = parser.parse_args()
    example = options.example
    if example is None:
        subprocess.run(["cargo", "build", "--release", "--example", "tensorflow_checkpoint", "-p", "serdes"], cwd=ROOT, check=True)
        target = os.environ.get("CARGO_TARGET_DIR", f"{ROOT}/target")
        example = f"{target}/release/examples/tensorflow_checkpoint"
    with tempfile.TemporaryDirectory() as directory:
        written = tensorflow("write", directory)
        check(written.returncode == 0, "TensorFlow writes", written.stderr[-500:])
        keras = written.stdout.strip().splitlines()[-1] if written.stdout.strip() else ""
        sources = [("v2", f"{directory}/v2"), ("v1", f"{directory}/v1"), ("merged", f"{directory}/merged"),
                   ("v1parts", f"{directory}/v1parts-?????-of-00002"), ("keras", keras)]
        for name, path in sources:
            run = command(example, "export", path, f"{directory}/{name}-read")
            check(run.returncode == 0, f"{name} is read", run.stderr)
            compare(f"{directory}/{name}-expected", f"{directory}/{name}-read", f"{name} read by serdes")
            run = command(example, "verify", path)
            check(run.returncode == 0 and run.stdout == "", f"{name} is verified", run.stdout + run.stderr)
        # TensorFlow reads the checkpoints of serdes, with one data file and with three.
        for shards in ("1", "3"):
            prefix = f"{directory}/ours-{shards}/ckpt"
            os.makedirs(os.path.dirname(prefix))
            run = command(example, "import", f"{directory}/v2-expected", prefix, shards)
            check(run.returncode == 0, f"{shards} data files are written", run.stderr)
            run = tensorflow("read", prefix, f"{directory}/ours-{shards}-read", f"{directory}/v2-expected")
            check(run.returncode == 0, f"{shards} data files are read by TensorFlow", run.stderr[-500:])
            compare(f"{directory}/v2-expected", f"{directory}/ours-{shards}-read", f"{shards} data files read by TensorFlow")
        # With tensors in the order in which TensorFlow got them, the files are equal to its own.
        for suffix in (".index", ".data-00000-of-00001"):
            with open(f"{directory}/v2{suffix}", "rb") as theirs, open(f"{directory}/ours-1/ckpt{suffix}", "rb") as ours:
                check(theirs.read() == ours.read(), f"{suffix} is byte for byte TensorFlow's")
        # A checkpoint that replaces one with the same number of data files has an additional empty one.
        prefix = f"{directory}/ours-1/ckpt"
        run = command(example, "import", f"{directory}/v2-expected", prefix, "1")
        check(run.returncode == 0, "a checkpoint is replaced", run.stderr)
        sizes = {path[len(prefix):]: os.path.getsize(path) for path in glob.glob(f"{prefix}.data-*")}
        check(sorted(sizes) == [".data-00000-of-00002", ".data-00001-of-00002"] and sizes[".data-00001-of-00002"] == 0, "its files", sizes)
        run = tensorflow("read", prefix, f"{directory}/replaced-read", f"{directory}/v2-expected")
        check(run.returncode == 0, "an empty last data file is read by TensorFlow", run.stderr[-500:])
        compare(f"{directory}/v2-expected", f"{directory}/replaced-read", "an empty last data file read by TensorFlow")
        if options.serdes:
            trip(options, directory)
        if options.time:
            timings(example, directory)
    sys.exit(checks.end())


def trip(options, directory):
    """Tests `save --from` a V2 checkpoint over a device, and `restore --to` another, which TensorFlow reads."""
    plugins = ["host"] + ([options.host_plugin] if options.host_plugin else [])
    for number, plugin in enumerate(plugins):
        state, prefix = f"{directory}/trip-{number}.sds", f"{directory}/trip-{number}/ckpt"
        os.makedirs(os.path.dirname(prefix))
        run = command(options.serdes, "save", "--from", f"{directory}/merged", "-o", state, "--plugin", plugin)
        check(run.returncode == 0, f"save over {plugin}", run.stderr)
        run = command(options.serdes, "restore", state, "--plugin", plugin, "--to", prefix)
        check(run.returncode == 0, f"restore over {plugin}", run.stderr)
        run = tensorflow("read", prefix, f"{directory}/trip-{number}-read", f"{directory}/merged-expected")
        check(run.returncode == 0, f"what went over {plugin} is read by TensorFlow", run.stderr[-500:])
        compare(f"{directory}/merged-expected", f"{directory}/trip-{number}-read", f"trip over {plugin}")


def timings(example, directory):
    """Times both sides in turn, so that other load affects both alike: five rounds of the best of three each; the median counts."""
    environment = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
    child = [sys.executable, os.path.abspath(__file__), "--child", "time", directory]
    with subprocess.Popen(child, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as run:
        ready = run.stdout.readline()
        while ready and ready.strip() != "ready":
            ready = run.stdout.readline()
        check(bool(ready), "TensorFlow is timed")
        for what, prefix in (("list", "many"), ("read", "large"), ("write", "large")) if ready else ():
            rounds = []
            for _ in range(5):
                print(what, file=run.stdin, flush=True)
                theirs = float(run.stdout.readline())
                mine = command(example, "time", what, f"{directory}/{prefix}")
                check(mine.returncode == 0, f"{what} is timed", mine.stderr)
                rounds.append((theirs / float(mine.stdout), float(mine.stdout), theirs))
            ratio, ours, theirs = sorted(rounds)[len(rounds) // 2]
            worst, most = min(rounds)[0], max(rounds)[0]
            print(f"{what}: serdes {ours:.4f} s, TensorFlow {theirs:.4f} s, {ratio:.1f} times as fast ({worst:.1f} to {most:.1f})", flush=True)
        run.stdin.close()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        {"write": child_write, "read": child_read, "time": child_time}[sys.argv[2]](*sys.argv[3:])
    else:
        main()
