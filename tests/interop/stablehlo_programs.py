"""Tests that an old jaxlib reads programs of a new JAX that this library writes for older readers.

PYTHON tests/interop/stablehlo_programs.py --reader PYTHON_OF_AN_OLDER_JAXLIB --example PATH_OF_program_for_reader

Some hundred programs are written by the real serializer at its own version, at the version that a proxy client sends, and at that of the
reader. This library rewrites the two newer forms. The old jaxlib must read the results as the same module as the real one, locations
included. It must refuse some of the newer forms: else nothing was tested. Ends with `N passed, N failed`; status 0 if nothing failed.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

READ = r"""
import pathlib, sys
import jax._src.interpreters.mlir as mlir
from jaxlib.mlir.dialects import stablehlo

def text(path):
    with mlir.make_ir_context() as context:
        module = stablehlo.deserialize_portable_artifact(context, path.read_bytes())
        module.operation.verify()
        return module.operation.get_asm(enable_debug_info=True)

real, ours, newer = map(pathlib.Path, sys.argv[1:4])
for path in sorted(ours.iterdir()):
    try:
        print("same" if text(path) == text(real / path.name) else "another module", path.name)
    except Exception as error:
        print("refused", path.name, str(error)[:200].replace("\n", " "))
for path in sorted(newer.iterdir()):
    try:
        text(path)
        print("newer-read", path.name)
    except Exception:
        print("newer-refused", path.name)
"""


def programs():
    """Returns functions and their arguments, by name."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax import lax
    from jax.sharding import Mesh, NamedSharding
    from jax.sharding import PartitionSpec as P

    x = jnp.arange(24.0, dtype=jnp.float32).reshape(4, 6)
    v, n, key = jnp.arange(6.0), jnp.arange(24).reshape(4, 6), jax.random.key(0)
    names = "abs ceil floor exp expm1 log1p sin cos tan tanh sqrt sign sinh cosh arcsinh cbrt sum prod max mean std argmax cumsum sort argsort median flip"
    found = {name: (getattr(jnp, name), x) for name in names.split()}
    found |= {f"lax.{name}": (getattr(lax, name), x) for name in "logistic erf erfc erf_inv lgamma digamma rsqrt log".split()}
    for name in "add multiply divide power maximum arctan2 mod less hypot logaddexp".split():
        found[f"{name} of two"] = (getattr(jnp, name), x, x + 1)
    types = "bool int4 int8 int16 uint2 uint32 float16 bfloat16 float8_e4m3fn float8_e5m2 float8_e3m4 float8_e8m0fnu float4_e2m1fn complex64"
    for name in types.split():
        found[f"to {name}"] = (lambda a, name=name: a.astype(getattr(jnp, name)), x)
    found |= {
        "matmul": (jnp.matmul, x, x.T),
        "dot with an algorithm": (lambda a, b: lax.dot_general(a, b, (((1,), (0,)), ((), ())), precision=lax.DotAlgorithmPreset.F32_F32_F32), x, x.T),
        "convolution": (lambda a, b: lax.conv(a, b, (1, 1), "SAME"), jnp.ones((1, 3, 8, 8)), jnp.ones((4, 3, 3, 3))),
        "fft": (jnp.fft.fft, x),
        "top_k": (lambda a: lax.top_k(a, 3), x),
        "approx_max_k": (lambda a: lax.approx_max_k(a, 3), x),
        "gather": (lambda a, i: a[i], x, jnp.array([0, 2])),
        "scatter": (lambda a, i: a.at[i].add(1.0), x, jnp.array([0, 2])),
        "batched gather": (jax.vmap(lambda a, i: a[i]), x, jnp.array([0, 2, 1, 3])),
        "scan": (lambda a: lax.scan(lambda c, e: (c + e.sum(), c), 0.0, a), x),
        "while": (lambda a: lax.while_loop(lambda c: c.sum() < 100, lambda c: c * 2 + 1, a), x),
        "cond": (lambda a: lax.cond(a.sum() > 0, jnp.sin, jnp.cos, a), x),
        "grad": (jax.grad(lambda a: jnp.sum(jnp.tanh(a) ** 2)), x),
        "hessian": (jax.hessian(lambda a: jnp.sum(jnp.sin(a))), v),
        "softmax": (jax.nn.softmax, x),
        "gelu": (jax.nn.gelu, x),
        "attention": (lambda q: jax.nn.dot_product_attention(q, q, q), jnp.ones((1, 4, 2, 8))),
        "random normal": (lambda k: jax.random.normal(k, (4,)), key),
        "random bits of rbg": (lambda: jax.random.normal(jax.random.key(0, impl="rbg"), (4,)),),
        "gradient of pooling": (jax.grad(lambda a: lax.reduce_window(a, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID").sum()), jnp.ones((1, 4, 4, 2))),
        "accuracy": (lambda a: lax.exp(a, accuracy=lax.AccuracyMode.HIGHEST), x),
        "composite": (lax.composite(lambda a: jnp.sin(a) + 1, "my.thing", version=3), x),
        "composite with attributes": (lax.composite(lambda a, *, n=1: a * n, "my.other"), x),
        "callback": (lambda a: jax.pure_callback(np.sin, jax.ShapeDtypeStruct(a.shape, a.dtype), a), x),
        "constants": (lambda a: jnp.where(np.array([[True, False, True] * 2] * 4), a, np.ones((4, 6), np.float32)), x),
        "population": (lax.population_count, n),
        "no result": (lambda: (),),
    }
    found |= {f"linalg.{name}": (getattr(jnp.linalg, name), jnp.eye(4)) for name in "cholesky inv det svd eigh qr".split()}
    devices, big = np.array(jax.devices()), jnp.arange(64.0).reshape(8, 8)
    flat, square = Mesh(devices, ("a",)), Mesh(devices.reshape(2, 4), ("x", "y"))
    cube, turned = Mesh(devices.reshape(2, 2, 2), ("p", "q", "r")), Mesh(devices[::-1].reshape(2, 4), ("x", "y"))
    collectives = {
        "psum": lambda a, axis: lax.psum(a, axis),
        "pmax": lambda a, axis: lax.pmax(a, axis),
        "all_gather": lambda a, axis: lax.all_gather(a, axis, tiled=True),
        "psum_scatter": lambda a, axis: lax.psum_scatter(jnp.tile(a, (8, 1)), axis, tiled=True),
        "all_to_all": lambda a, axis: lax.all_to_all(a, axis, 1, 0, tiled=True),
        "axis_index": lambda a, axis: a + lax.axis_index(axis),
    }
    for mesh, axis in [(flat, "a"), (square, "x"), (square, "y"), (square, ("x", "y")), (square, ("y", "x")), (cube, "q"), (cube, ("r", "p")), (turned, "y")]:
        for name, collective in collectives.items():
            mapped = jax.shard_map(lambda a, f=collective, axis=axis: f(a, axis), mesh=mesh, in_specs=P(axis), out_specs=P(axis), check_vma=False)
            turn = " turned" if mesh is turned else ""
            found[f"{name} over {axis}{turn}"] = (mapped, big)
    found["sharded argument"] = (lambda a: a * 2, jax.device_put(big, NamedSharding(square, P("x", "y"))))
    found["constraint"] = (lambda a: lax.with_sharding_constraint(a @ a, NamedSharding(square, P("y", "x"))), big)
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--reader", required=True)
    parser.add_argument("--example", required=True)
    options = parser.parse_args()
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
    import jax
    from jaxlib import _jax
    from jaxlib.mlir.dialects import stablehlo

    said = "from jaxlib.mlir.dialects import stablehlo; print(stablehlo.get_current_version())"
    target = subprocess.run([options.reader, "-c", said], check=True, capture_output=True, text=True).stdout.strip()
    twelve_weeks = stablehlo.get_version_from_compatibility_requirement(stablehlo.StablehloCompatibilityRequirement.WEEK_12)
    failures, passed, refused = [], 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for version in [twelve_weeks, stablehlo.get_current_version()]:
            real, ours, newer = (pathlib.Path(folder, version, name) for name in ("real", "ours", "newer"))
            for place in (real, ours, newer):
                place.mkdir(parents=True)
            for number, (name, (function, *arguments)) in enumerate(programs().items()):
                module = jax.jit(function).lower(*arguments).compiler_ir("stablehlo")
                file = f"{number:03} {name}".replace("/", " ")
                for place, written in ((newer, version), (real, target)):
                    (place / file).write_bytes(_jax.mlir.serialize_portable_artifact(module, written, True))
                made = subprocess.run([options.example, target, newer / file, ours / file], capture_output=True, text=True)
                if made.returncode:
                    failures.append(f"{file} of {version}: {made.stderr.strip()}")
            read = subprocess.run([options.reader, "-c", READ, real, ours, newer], check=True, capture_output=True, text=True)
            for line in read.stdout.splitlines():
                word = line.split()[0]
                if word == "same":
                    passed += 1
                elif word == "newer-refused":
                    refused += 1
                elif word != "newer-read":
                    failures.append(f"{line} (of {version} for {target})")
    if not refused:
        failures.append(f"{options.reader} reads all of the newer programs: nothing was tried")
    print(f"of the newer programs themselves it refuses {refused}")
    for failure in failures:
        print(f"FAILED {failure}")
    print(f"{passed} passed, {len(failures)} failed")
    sys.exit(bool(failures))


main()
