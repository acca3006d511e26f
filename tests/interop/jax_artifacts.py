"""Makes artifacts of a JAX, and compares the verdicts of serdes with those of real jaxlibs.

PYTHON tests/interop/jax_artifacts.py --example PATH_OF_which_jaxlib [--reader PYTHON]... [--damaged N] [--seed N]

PYTHON has the JAX that makes them. It and each reader read them, every file in a process of its own; all results must equal the
verdicts of the example. N damaged copies are made of them (bits, cuts, fields): of these, the compiler's verifier may refuse at most 1 in
15 that serdes accepts, but serdes may not refuse any that it reads. Ends with `N passed, N failed`; status 0 if nothing failed.
"""

import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

# Reads the files named on standard input, each in a child process, so that a crash affects no other file.
READ = r"""
import os, pathlib, signal, sys
import jax, jaxlib
from jax import export
import jax._src.interpreters.mlir as mlir
from jaxlib.mlir.dialects import stablehlo

def read(path):
    data = pathlib.Path(path).read_bytes()
    if ".mlirbc" in path:
        with mlir.make_ir_context() as context:
            stablehlo.deserialize_portable_artifact(context, data).operation.verify()
    else:
        export.deserialize(bytearray(data)).mlir_module()

print(jaxlib.__version__, flush=True)
for path in map(str.rstrip, sys.stdin):
    end, begin = os.pipe()
    if (child := os.fork()) == 0:
        signal.alarm(60)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            read(path)
            answer = "accepted"
        except Exception as error:
            answer = "refused " + (type(error).__name__ + " " + str(error)).replace("\n", " ")[:150]
        os.write(begin, answer.encode(errors="replace"))
        os._exit(0)
    os.close(begin)
    with os.fdopen(end, errors="replace") as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    print(answer or "refused: the process died", flush=True)
"""


def functions():
    """Returns functions, their arguments, and options of `export`, by name."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax import export, lax
    from jax.sharding import AxisType, Mesh, NamedSharding
    from jax.sharding import PartitionSpec as P

    def struct(*shape, dtype=jnp.float32, sharding=None):
        return jax.ShapeDtypeStruct(shape, dtype, sharding=sharding)

    x, v, n = struct(4, 6), struct(6), struct(4, 6, dtype=jnp.int32)
    found = {}
    for name in "sin tanh exp cbrt sum max cumsum sort argsort isfinite sinc var".split():
        found[name] = (getattr(jnp, name), (x,))
    for name in "add power remainder arctan2 matmul logaddexp outer".split():
        found[name] = (getattr(jnp, name), (v, v))
    for name in "cholesky inv slogdet svd qr eigh eigvals".split():
        # The results have custom types, which no program has registered.
        function = lambda a, name=name: jax.tree.leaves(getattr(jnp.linalg, name)(a))
        found[f"linalg.{name}"] = (function, (struct(3, 3),))
    for name in "erf_inv lgamma digamma population_count clz".split():
        found[f"lax.{name}"] = (getattr(lax, name), (n if name in ("population_count", "clz") else x,))
    for name in "bool_ int4 uint8 float16 bfloat16 float8_e5m2 float8_e3m4 float4_e2m1fn complex64".split():
        found[f"as {name}"] = (lambda a: a.reshape(-1), (struct(2, 3, dtype=getattr(jnp, name)),))
    found["fft"] = (jnp.fft.rfft, (x,))
    found["top_k"] = (lambda a: lax.top_k(a, 2), (x,))
    found["approx_max_k"] = (lambda a: lax.approx_max_k(a, 2), (x,), {"platforms": ["tpu"]})
    found["gather"] = (lambda a, i: a[i], (x, struct(3, dtype=jnp.int32)))
    found["scatter"] = (lambda a, i: a.at[i].add(1), (x, struct(3, dtype=jnp.int32)))
    found["convolution"] = (lambda a, b: jnp.convolve(a, b), (v, struct(3)))
    found["while"] = (lambda a: lax.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, s[1] * 2), (0, a)), (x,))
    found["cond"] = (lambda a: lax.cond(a.sum() > 0, jnp.sin, jnp.cos, a), (x,))
    found["scan"] = (lambda a: lax.scan(lambda c, r: (c + r, c * r), jnp.zeros(6), a), (x,))
    found["random"] = (lambda: jax.random.normal(jax.random.key(0), (3,)), ())
    found["key"] = (lambda k: jax.random.split(k), (jax.eval_shape(lambda: jax.random.key(0)),))
    found["constant"] = (lambda a: a + np.arange(24, dtype=np.float32).reshape(4, 6), (x,))
    found["tree"] = (lambda t: {"s": t["a"] + t["b"][0], "n": None}, ({"a": v, "b": (v, [v])},))
    found["unused"] = (lambda a, b: b, (x, v))
    found["nothing"] = (lambda: (), ())
    found["float0"] = (lambda a: jax.grad(lambda b: b.astype(jnp.float32).sum(), allow_int=True)(a), (n,))
    found["platforms"] = (jnp.sin, (x,), {"platforms": ["cpu", "cuda", "tpu", "rocm"]})
    found["donated"] = (jax.jit(lambda a: a * 2, donate_argnums=0), (x,))
    found["derivatives"] = (jnp.sin, (x,), {"vjp_order": 2})
    found["derivative of eigh"] = (lambda a: jnp.linalg.eigh(a)[0], (struct(3, 3),), {"vjp_order": 1})
    found["custom call"] = (
        lambda a: jax.ffi.ffi_call("nobody_has_this", struct(6))(a),
        (v,),
        {"disabled_checks": [export.DisabledSafetyCheck.custom_call("nobody_has_this")]},
    )
    symbols = export.symbolic_shape("b, 2*b + 1, c, mod(c, 4), floordiv(c, 2)")
    found["symbols"] = (lambda a: a + 1, (struct(*symbols),))
    found["more symbols"] = (lambda a, b: (jnp.concatenate([a, b]), a[:-1]), (struct(*export.symbolic_shape("b")), struct(7)))
    found["constraints"] = (lambda a: a[:4], (struct(*export.symbolic_shape("b", constraints=["b >= 4"])),))
    devices = np.array(jax.devices()[:8])
    mesh = Mesh(devices.reshape(4, 2), ("x", "y"))
    sharded = NamedSharding(mesh, P("x", "y"))
    found["sharded"] = (lambda a: (a @ a.T, a.sum()), (struct(8, 8, sharding=sharded),))
    found["sharded twice"] = (lambda a: a * 2, (struct(8, 8, sharding=NamedSharding(mesh, P(("x", "y")))),))
    host = sharded.with_memory_kind("pinned_host")
    found["on the host"] = (lambda a: jax.device_put(a, sharded), (struct(8, 8, sharding=host),))
    constrain = lambda a: lax.with_sharding_constraint(a + 1, NamedSharding(mesh, P("y")))
    found["constrained"] = (constrain, (struct(8, 8, sharding=sharded),))
    body = lambda a: (lax.psum(a, "x"), lax.all_gather(a, "y"), lax.ppermute(a, "x", [(0, 1)]))
    mapped = jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=(P(None, "y"), P("x", "y"), P("x", "y")), check_vma=False)
    found["mapped"] = (mapped, (struct(8, 8, sharding=sharded),))
    explicit = Mesh(devices.reshape(4, 2), ("x", "y"), axis_types=(AxisType.Explicit, AxisType.Explicit))
    found["explicit"] = (lambda a: jnp.sin(a) * 2, (struct(8, 8, sharding=NamedSharding(explicit, P("x", "y"))),))
    return found


def random_functions(seed, count):
    """Returns random chains of operations."""
    import jax
    import jax.numpy as jnp

    steps = [
        jnp.sin, jnp.abs, jnp.cumsum, jnp.sort, jnp.log1p, jnp.transpose, lambda a: jnp.outer(a, a), lambda a: a.astype(jnp.bfloat16),
        lambda a: a[::2] if a.ndim else a, lambda a: a.sum(-1) if a.ndim else a, lambda a: jnp.where(a > 0, a, -a), lambda a: jnp.stack([a, a]),
        lambda a: jnp.clip(a, 0, 1), lambda a: a.reshape(-1), lambda a: jnp.pad(a, 1), lambda a: a.astype(jnp.int32), jnp.flip, jnp.exp2,
        lambda a: jax.nn.softmax(jnp.atleast_1d(a).astype(jnp.float32)), lambda a: jnp.take(a, 0, axis=0) if a.ndim else a, lambda a: jnp.roll(a, 1), jnp.square,
    ]
    draw = random.Random(seed)
    for number in range(count):
        chosen = draw.sample(steps, draw.randint(2, 6))

        def chain(a, chosen=tuple(chosen)):
            for step in chosen:
                a = step(a)
            return a

        shape = [draw.randint(1, 4) for _ in range(draw.randint(1, 3))]
        yield f"random {number}", (chain, (jax.ShapeDtypeStruct(tuple(shape), jnp.float32),))


def make(folder, seed):
    """Writes the files; returns the number of functions that could not be exported."""
    import jax
    from jax import export
    from jaxlib.mlir.dialects import stablehlo

    skipped = []
    draw = random.Random(seed)
    for name, (function, arguments, *options) in [*functions().items(), *random_functions(seed, 40)]:
        options = dict(*options)
        order = options.pop("vjp_order", 0)
        stem = name.replace(" ", "_")
        try:
            jitted = function if hasattr(function, "trace") else jax.jit(function)
            exported = export.export(jitted, **options)(*arguments)
            (folder / f"{stem}.jaxexport").write_bytes(exported.serialize(vjp_order=order))
        except Exception as error:
            skipped.append(f"{name}: {type(error).__name__} {str(error)[:100]}")
            continue
        (folder / f"{stem}.mlirbc").write_bytes(exported.mlir_module_serialized)
        target = draw.choice(["1.13.0", "1.9.0", "1.4.0", "0.18.0", "1.0.0", stablehlo.get_current_version()])
        text = exported.mlir_module()
        if "sdy." in text:
            continue
        try:
            (folder / f"{stem}-{target}.mlirbc").write_bytes(stablehlo.serialize_portable_artifact_str(text, target))
        except ValueError:
            skipped.append(f"{name} for {target}, which cannot say it")
    return skipped


def damage(folder, count, seed):
    """Writes damaged copies of files."""
    draw = random.Random(seed)
    whole = sorted(folder.iterdir())
    for number in range(count):
        path = draw.choice(whole)
        data = bytearray(path.read_bytes())
        way = draw.choice(["bit", "bit", "bit", "byte", "cut", "zeros", "head"])
        at = draw.randrange(len(data))
        if way == "cut":
            del data[at:]
        elif way == "zeros":
            data[at : at + 4] = bytes(len(data[at : at + 4]))
        elif way == "byte":
            data[at] = draw.randrange(256)
        else:
            at = draw.randrange(min(len(data), 500)) if way == "head" else at
            data[at] ^= 1 << draw.randrange(8)
        (folder / f"damaged-{number}-{way}-{path.name}").write_bytes(data)


def ask(python, paths, environment):
    """Returns the version of a jaxlib, and its results."""
    process = subprocess.run(
        [python, "-c", READ], input="\n".join(map(str, paths)), env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True
    )
    version, *answers = process.stdout.splitlines()
    assert len(answers) == len(paths), (version, len(answers), len(paths))
    return version, answers


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--example", required=True)
    parser.add_argument("--reader", action="append", default=[])
    parser.add_argument("--damaged", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=pathlib.Path, help="keep the files in this folder")
    options = parser.parse_args()
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
    os.environ["JAX_PLATFORMS"] = "cpu"
    passed, failed, damaged, verified = 0, [], 0, []
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or pathlib.Path(scratch)
        folder.mkdir(exist_ok=True)
        for line in make(folder, options.seed):
            print("not exported:", line)
        damage(folder, options.damaged, options.seed)
        paths = sorted(path for path in folder.iterdir() if path.stat().st_size)
        ours = {}
        for kind, suffix in (("stablehlo", ".mlirbc"), ("jax_export", ".jaxexport")):
            of_kind = [str(path) for path in paths if path.suffix == suffix]
            said = subprocess.run([options.example, "--kind", kind, *of_kind], stdout=subprocess.PIPE, check=True, text=True).stdout
            ours |= {line["path"]: line["verdicts"] for line in map(json.loads, said.splitlines())}
        for python in [sys.executable, *options.reader]:
            python, _, library = python.partition("=")
            environment = dict(os.environ, **({"PYTHONPATH": library} if library else {}))
            version, answers = ask(python, paths, environment)
            counts = [0, 0]
            for path, answer in zip(paths, answers):
                verdict = ours[str(path)][version]
                accepts = answer == "accepted"
                counts[accepts] += 1
                is_damaged = path.name.startswith("damaged-")
                damaged += is_damaged
                # JAX accepts zero bytes as an empty module.
                if verdict["acceptable"] == accepts or any("module has no bytes" in reason for reason in verdict["reasons"]):
                    passed += 1
                elif is_damaged and verdict["acceptable"]:
                    verified.append(f"{path.name} by {version}: {answer}")
                else:
                    failed.append(f"{path.name} by {version}: {answer}; here {verdict}")
            print(f"jaxlib {version}: {counts[1]} accepted, {counts[0]} refused")
    for line in verified:
        print("left to the verifier:", line)
    if len(verified) > damaged / 15:
        failed.append(f"{len(verified)} of {damaged} damaged files are left to the verifier")
    for line in failed:
        print("FAILED", line)
    print(f"{passed} passed, {len(failed)} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
