"""Compiles and runs programs of a real JAX with the PJRT plug-ins from PyPI, through the host of this project.

Each program is a portable StableHLO artifact. The results of the plug-ins on their four devices must equal those of JAX, bit for bit.
Donated arguments must be gone, and others kept, even if the program could use their memory. The example `pjrt_programs` does all of it; it
also loads each executable again from its own bytes, compiles each without a client, and gives the plug-ins a function for a program to
call.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"

import jax  # noqa: E402  (the flags must be there before)
import jax.numpy as jnp  # noqa: E402
import jaxlib  # noqa: E402
import numpy  # noqa: E402
from jaxlib.mlir.dialects import stablehlo  # noqa: E402

from pjrt_plugins import computing  # noqa: E402

# A version that all of these plug-ins read.
STABLEHLO = "1.9.0"
# Result of a program that was compiled for the topology, without a client, and then loaded, by minor.
AHEAD = {81: "No compiler registered for platform cpu", 106: "No compiler factory for platform: cpu", 115: "same"}
# The shardings of parameters and outputs, if a plug-in has the extension: none, as no partitioner ran on the program.
SHARDINGS = {81: None, 106: [None, None], 115: [None, None]}
# The minor of XLA's foreign function interface whose functions each plug-in accepts.
FOREIGN = {81: 1, 106: 3, 115: 3}
CUSTOM_CALL = "a function that the host gives"
TYPES = {"float32": "F32", "int32": "S32", "int8": "S8", "bool": "PRED"}

# The sum over four replicas, as a text: JAX generates it only for shardings, which need a partitioner.
SUM = """
module {
  func.func public @main(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
    %0 = "stablehlo.all_reduce"(%arg0) <{replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    return %0 : tensor<2x3xf32>
  }
}
"""


# A program that calls a function of the host by its name.
CALLS = """
module {
  func.func public @main(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
    %0 = stablehlo.custom_call @serdes_times_three(%arg0) {api_version = 4 : i32, backend_config = {}} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    return %0 : tensor<2x3xf32>
  }
}
"""


def handler(folder, minor):
    """Builds a library with that function, with the header in jaxlib's package; returns its path."""
    library = pathlib.Path(folder) / "custom_call.so"
    source = pathlib.Path(__file__).parent / "custom_call.c"
    include = pathlib.Path(jaxlib.__file__).parent / "include"
    command = [os.environ.get("CC", "cc"), "-shared", "-fPIC", "-O1", f"-DMINOR={minor}", "-I", include, source, "-o", library]
    subprocess.run(command, check=True)
    return str(library)


def artifact(function, arguments, **options):
    # Serializes the module's text: serializing JAX's own module would change it, and JAX uses it again.
    module = jax.jit(function, **options).lower(*arguments).as_text()
    return stablehlo.serialize_portable_artifact_str(module, STABLEHLO)


def cases():
    """Yields name, code, replicas, arguments of each device, which of them are donated, and the outputs of each device."""
    numbers = [numpy.arange(6, dtype=numpy.float32).reshape(2, 3) * (device + 1) for device in range(4)]
    several = lambda x: (x * 3, x.astype(jnp.int8), x > 5, jnp.sum(x.astype(jnp.int32), axis=0))  # noqa: E731
    add = lambda x, y: (x + y, x * y)  # noqa: E731

    def expected(function, lists):
        found = [jax.jit(function)(*arguments) for arguments in lists]
        return [[numpy.asarray(output) for output in (one if isinstance(one, tuple) else (one,))] for one in found]

    single = [[array] for array in numbers]
    pairs = [[array, array + 1] for array in numbers]
    plus = lambda x: x + 1  # noqa: E731
    yield "plus one on one device", artifact(plus, single[0]), 1, single[:1], [], expected(plus, single[:1])
    yield "plus one on four", artifact(plus, single[0]), 4, single, [], expected(plus, single)
    yield "several outputs", artifact(several, single[0]), 4, single, [], expected(several, single)
    total = sum(numbers)
    code = stablehlo.serialize_portable_artifact_str(SUM, STABLEHLO)
    yield "a sum over four devices", code, 4, single, [], [[total]] * 4
    taking = artifact(add, pairs[0], donate_argnums=0)
    yield "an argument that is given", taking, 4, pairs, [0], expected(add, pairs)
    yield "an argument that could be taken and is kept", taking, 4, pairs, [], expected(add, pairs)
    code = stablehlo.serialize_portable_artifact_str(CALLS, STABLEHLO)
    yield CUSTOM_CALL, code, 4, single, [], [[3 * array] for array in numbers]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--example", required=True, help="the example pjrt_programs, built")
    parser.add_argument("--cache", required=True, type=pathlib.Path, help="where packages are kept")
    arguments = parser.parse_args()
    failures = 0
    folder = tempfile.TemporaryDirectory()
    for (package, version, minor, *_), path in computing(arguments.cache):
        if path is None:
            failures += 1
            continue
        for name, code, replicas, lists, gives, outputs in cases():
            program = {
                "code": code.hex(),
                "replicas": replicas,
                "gives": gives,
                "arguments": [
                    [{"type": TYPES[str(array.dtype)], "dims": array.shape, "data": array.tobytes().hex()} for array in device] for device in lists
                ],
            }
            if name == CUSTOM_CALL:
                call = {"target": "serdes_times_three", "symbol": "serdes_times_three", "platform": "Host", "library": handler(folder.name, FOREIGN[minor])}
                program["custom_calls"] = [call]
            with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
                json.dump(program, file)
                file.flush()
                done = subprocess.run([arguments.example, path, file.name], capture_output=True, text=True, timeout=300)
            lines = done.stdout.splitlines()
            found = json.loads(lines[-1]) if done.returncode == 0 and lines else {}
            found["ahead"] = AHEAD[minor] in found.get("ahead", "")
            expected = {
                "outputs": [[array.tobytes().hex() for array in device] for device in outputs],
                "types": [TYPES[str(array.dtype)] for array in outputs[0]],
                "dims": [list(array.shape) for array in outputs[0]],
                "same_when_loaded_again": True,
                "given": True,
                "devices": None if minor < 79 else [list(range(replicas))],
                "optimised": "hlo_with_config",
                "fingerprint": True,
                "ahead": True,
                "shardings": SHARDINGS[minor],
            }
            wrong = {key: (found.get(key), value) for key, value in expected.items() if found.get(key) != value}
            failures += bool(wrong)
            print(f"{'FAILED' if wrong else 'ok'}: {package} {version}: {name}")
            if wrong:
                print(f"  found and expected: {wrong}\n{done.stderr[-2000:]}")
            elif name == "plus one on four":
                told = {key: found[key] for key in ("kinds", "output_layouts", "parameter_layouts", "costs", "arguments")}
                print(f"  {told}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
