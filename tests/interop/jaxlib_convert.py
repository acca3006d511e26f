"""Tests that programs of a new JAX, written for this jaxlib by `serdes convert --to-stablehlo`, have the same results.

PYTHON tests/interop/jaxlib_convert.py --serdes PATH_OF_serdes [--write]

The programs of tests/data/programs are portable artifacts of jaxlib 0.12.0.1 at its own version, with arguments and results
beside them. Each is written for four versions of StableHLO, none newer than that of this jaxlib, read by it, and run on the
CPU. An operation that an older version lacks must be refused by its name. `--write` generates the programs again, with a
jaxlib of their release. Ends with `N passed, N failed`; status 0 if nothing failed.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
from jax import lax

DATA = pathlib.Path(__file__).parents[1] / "data" / "programs"


def programs():
    """Returns functions and their arguments, by name."""
    x = jnp.arange(24.0, dtype=jnp.float32).reshape(4, 6) / 7 - 1
    n = jnp.arange(24, dtype=jnp.int32).reshape(4, 6)
    square = jnp.eye(4, dtype=jnp.float32) * 3 + jnp.arange(16.0, dtype=jnp.float32).reshape(4, 4) / 20
    found = {name: (getattr(jnp, name), x) for name in "exp sin tan tanh cbrt expm1 sort argsort cumsum std argmax".split()}
    found |= {
        "logistic": (lax.logistic, x),
        "erf_inv": (lambda a: lax.erf_inv(a / 4), x),
        "lgamma": (lambda a: lax.lgamma(a + 3), x),
        "matmul": (jnp.matmul, x, x.T),
        "convolution": (lambda a, b: lax.conv(a, b, (1, 1), "SAME"), jnp.ones((1, 3, 8, 8)), jnp.ones((4, 3, 3, 3))),
        "fft": (lambda a: jnp.abs(jnp.fft.fft(a)), x),
        "top_k": (lambda a: lax.top_k(a, 3), x),
        "gather": (lambda a, i: a[i], x, jnp.array([0, 2], dtype=jnp.int32)),
        "scatter": (lambda a, i: a.at[i].add(1.0), x, jnp.array([0, 2], dtype=jnp.int32)),
        "scan": (lambda a: lax.scan(lambda c, e: (c + e.sum(), c), 0.0, a), x),
        "while": (lambda a: lax.while_loop(lambda c: c.sum() < 100, lambda c: c * 2 + 1, a), x),
        "cond": (lambda a: lax.cond(a.sum() > 0, jnp.sin, jnp.cos, a), x),
        "grad": (jax.grad(lambda a: jnp.sum(jnp.tanh(a) ** 2)), x),
        "softmax": (jax.nn.softmax, x),
        "gelu": (jax.nn.gelu, x),
        "bits": (lambda a: jax.random.bits(jax.random.wrap_key_data(a), (4,)), jnp.array([3, 4], dtype=jnp.uint32)),
        "bfloat16": (lambda a: (a.astype(jnp.bfloat16) * 3).astype(jnp.float32), x),
        "composite": (lax.composite(lambda a: jnp.sin(a) + 1, "my.thing", version=3), x),
        "cholesky": (jnp.linalg.cholesky, square @ square.T),
        "solve": (jnp.linalg.solve, square, square + 1),
        "eigh": (lambda a: jnp.linalg.eigh(a)[0], square @ square.T),
        "popcount": (lax.population_count, n),
    }
    return found


def leaves(values):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(values)]


def write():
    """Writes the programs, at the newest version of this jaxlib."""
    from jax._src.interpreters import mlir
    from jaxlib import _jax
    from jaxlib.mlir.dialects import stablehlo

    version, values = stablehlo.get_current_version(), {}
    DATA.mkdir(exist_ok=True)
    for name, (function, *arguments) in programs().items():
        lowered = jax.jit(function).lower(*arguments)
        # The text has no locations in files of this machine.
        with mlir.make_ir_context():
            module = mlir.ir.Module.parse(lowered.as_text())
            (DATA / f"{name}.mlirbc").write_bytes(_jax.mlir.serialize_portable_artifact(module, version, True))
        for kind, arrays in (("in", arguments), ("out", leaves(lowered.compile()(*arguments)))):
            values |= {f"{name}/{kind}/{number}": np.asarray(array) for number, array in enumerate(arrays)}
    np.savez_compressed(DATA / "values.npz", **values)
    print(f"{len(programs())} programs of StableHLO {version}")


def called(program, arguments, results):
    """Returns the results of a program, which replaces the module of another function of the same types."""
    zeros = jax.jit(lambda *given: [jnp.zeros(one.shape, one.dtype) for one in results])
    exported = jax.export.export(zeros)(*arguments)
    kept = tuple(range(len(arguments)))
    exported = dataclasses.replace(exported, mlir_module_serialized=program, module_kept_var_idx=kept)
    return leaves(exported.call(*arguments))


def older(version):
    """Returns versions of StableHLO that this jaxlib reads."""
    major, minor, patch = map(int, version.split("."))
    if minor < 13:
        return [f"1.{minor - 2}.0", f"1.{minor - 1}.0", version]
    return ["1.9.0", f"1.13.{patch if minor == 13 else 0}", f"1.{(13 + minor) // 2}.0", version]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--serdes")
    parser.add_argument("--host-plugin", help="not used")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if options.write:
        write()
        return
    from jaxlib.mlir.dialects import stablehlo

    # jax before 0.10 initializes LAPACK when it first uses it itself, and crashes if a loaded program uses it before.
    jnp.linalg.eigh(jnp.eye(2))
    values, failures, passed = np.load(DATA / "values.npz"), [], 0
    own = stablehlo.get_current_version()
    with tempfile.TemporaryDirectory() as folder:
        for path in sorted(DATA.glob("*.mlirbc")):
            arguments, results = (
                [values[key] for key in values.files if key.startswith(f"{path.stem}/{kind}/")] for kind in ("in", "out")
            )
            for target in older(own):
                name, written = f"{path.stem} for {target}", pathlib.Path(folder, path.name)
                command = [options.serdes, "convert", path, "--to-stablehlo", target, "-o", written, "--json"]
                ran = subprocess.run(command, capture_output=True, text=True)
                if ran.returncode:
                    failures.append(f"{name}: {ran.stderr.strip()}")
                    continue
                said = json.loads(ran.stdout)
                if said["read_by"][-1:] != ["0.12.0.1"]:
                    failures.append(f"{name}: {said}")
                try:
                    found = called(written.read_bytes(), arguments, results)
                except Exception as error:
                    failures.append(f"{name}: {str(error)[:300]}")
                    continue
                close = len(found) == len(results) and all(
                    one.dtype == other.dtype and np.allclose(one, other, rtol=1e-4, atol=1e-5, equal_nan=True)
                    for one, other in zip(found, results)
                )
                if close:
                    passed += 1
                else:
                    failures.append(f"{name}: {found} instead of {results}")
        refuse(options.serdes, pathlib.Path(folder, "refused.mlirbc"), failures)
    for failure in failures:
        print(f"FAILED {failure}")
    print(f"{passed} passed, {len(failures)} failed (StableHLO {own})")
    sys.exit(bool(failures))


def refuse(serdes, to, failures):
    """Tests that operations that an older version lacks, and too old versions, are refused and nothing is written."""
    asynchronous = pathlib.Path(__file__).parents[2] / "crates/jax-artifacts/tests/data/files/async-1.17.0-0.10.1.mlirbc"
    for program, target, word in [(asynchronous, "1.14.0", "vhlo.async_start_v1"), (DATA / "tan.mlirbc", "1.2", "vhlo.tan_v2"), (DATA / "exp.mlirbc", "0.19", "1.0.0")]:
        ran = subprocess.run([serdes, "convert", program, "--to-stablehlo", target, "-o", to], capture_output=True, text=True)
        if ran.returncode != 1 or word not in ran.stderr or to.exists():
            failures.append(f"{program.name} for {target}: {ran.returncode}, {ran.stderr}")


main()
