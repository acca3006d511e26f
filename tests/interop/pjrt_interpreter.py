"""Tests that real JAX gets the same results from the SDK's example plug-in as from its own CPU.

    PYTHON tests/interop/pjrt_interpreter.py --plugin libinterpreter_pjrt_plugin.so
"""

import argparse
import sys
import threading

from checks import Checks

PLATFORM = "interpreter"


def programs(jax, jnp, lax, numpy):
    """Returns the name, function, and arguments of each program."""
    rng = numpy.random.default_rng(5)
    matrix = rng.standard_normal((7, 5)).astype(numpy.float32)
    other = rng.standard_normal((5, 3)).astype(numpy.float32)
    vector = rng.standard_normal(11).astype(numpy.float32)
    whole = rng.integers(-50, 50, (4, 6)).astype(numpy.int32)
    wide = rng.integers(-(1 << 60), 1 << 60, 9)
    bits = rng.integers(0, 1 << 32, 8, dtype=numpy.uint32)
    flags = rng.integers(0, 2, 12).astype(bool)

    def loss(state, x, y):
        hidden = jnp.tanh(x @ state["first"] + state["bias"])
        return jnp.mean((hidden @ state["second"] - y) ** 2)

    def train(state, x, y):
        def step(state, _):
            value, slope = jax.value_and_grad(loss)(state, x, y)
            return jax.tree.map(lambda weight, change: weight - 0.1 * change, state, slope), value
        return lax.scan(step, state, length=20)

    def collatz(number):
        def body(state):
            number, steps = state
            return jnp.where(number % 2 == 0, number // 2, 3 * number + 1), steps + 1
        return lax.while_loop(lambda state: state[0] != 1, body, (number, jnp.int32(0)))

    def attention(query, key, value):
        weights = jax.nn.softmax(jnp.einsum("bqd,bkd->bqk", query, key) / jnp.sqrt(query.shape[-1]), axis=-1)
        return jnp.einsum("bqk,bkd->bqd", weights, value)

    def normalised(x):
        centred = x - x.mean(-1, keepdims=True)
        return centred * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)

    state = {"first": matrix[:5, :4], "bias": vector[:4], "second": matrix[:4, :2]}
    heads = [rng.standard_normal((2, 4, 8)).astype(numpy.float32) for _ in range(3)]
    return [
        ("addition of scalars", lambda x, y: x + y, (numpy.float32(1.5), numpy.float32(2))),
        ("arithmetic of floats", lambda x: (x * 2 - 1) / (x * x + 3), (matrix,)),
        ("functions of floats", lambda x: jnp.stack([jnp.exp(x), jnp.log(x * x + 1), jnp.sin(x), jnp.cos(x), jnp.sqrt(abs(x)), jnp.sign(x)]), (vector,)),
        ("arithmetic of 64 bits", lambda x, y: (x * y + 7, x // 3, x % 5, -y, abs(x)), (wide, wide[::-1].copy())),
        ("floats of 64 bits", lambda x: jnp.tanh(x) @ jnp.exp(x.T), (matrix.astype(numpy.float64),)),
        ("bfloat16", lambda x: (x * jnp.bfloat16(1.5) + x).sum(), (matrix.astype(jnp.bfloat16),)),
        ("bits", lambda x: ((x << 5) ^ (x >> 7) | 3) & ~x, (bits,)),
        ("truth values", lambda x, y: (x & y, x | ~y, x ^ y, x.any(), x.all()), (flags, ~flags[::-1])),
        ("conversions", lambda x: (x.astype(jnp.int32), x.astype(jnp.uint8), (x > 0).astype(jnp.float64), x.astype(jnp.int64) * 2), (abs(vector) * 10,)),
        ("comparisons and choices", lambda x, y: (jnp.where(x > y, x, -y), jnp.maximum(x, y), jnp.minimum(x, y), jnp.clip(x, -5, 5), x == y), (whole, whole[::-1].copy())),
        ("matrices", lambda x, y: x @ y, (matrix, other)),
        ("sums", lambda x: (x.sum(), x.sum(0), x.sum(1, keepdims=True), x.mean(), x.prod(1)), (matrix,)),
        ("largest and their places", lambda x: (x.max(0), x.min(), jnp.argmax(x, 1), jnp.argmin(x)), (matrix,)),
        ("orders of dimensions", lambda x: (x.T.reshape(2, 12), lax.slice(jnp.concatenate([x, x * 2], 1), (1, 0), (3, 12), (1, 2)), jnp.pad(x, ((1, 0), (2, 1)))), (whole,)),
        ("softmax", lambda x: jax.nn.softmax(x, axis=-1), (matrix,)),
        ("attention", attention, tuple(heads)),
        ("layer norm and its slope", jax.grad(lambda x: (normalised(x) ** 3).sum()), (matrix,)),
        ("activations", lambda x: (jax.nn.relu(x), jax.nn.gelu(x), jax.nn.sigmoid(x), jax.nn.silu(x)), (vector,)),
        ("a loop of known length", lambda x: lax.fori_loop(0, 10, lambda step, total: total * 0.5 + step, x), (vector,)),
        ("a loop of unknown length", collatz, (numpy.int32(27),)),
        ("a scan", lambda x: lax.scan(lambda total, value: (total + value, total * value), jnp.float32(0), x), (vector,)),
        ("a choice of branches", lambda which, x: lax.switch(which, [jnp.sin, jnp.cos, jnp.negative], x), (numpy.int32(2), vector)),
        ("iota and constants", lambda x: x + jnp.arange(11.0) * jnp.array([1, -1] * 5 + [0]), (vector,)),
        ("parts at an index", lambda x, at: lax.dynamic_update_slice(x, lax.dynamic_slice(x, (at,), (3,)) * 2, (at + 1,)), (vector, numpy.int32(6))),
        ("functions in one another", lambda x: jax.jit(lambda y: jax.jit(jnp.tanh)(y) * 2)(x) + jax.jit(jnp.tanh)(x), (vector,)),
        ("random numbers", lambda key: jax.random.uniform(jax.random.wrap_key_data(key), (5,)), (numpy.array([0, 42], numpy.uint32),)),
        ("a training of twenty steps", train, (state, matrix, other[:1].repeat(7, 0)[:, :2])),
    ]


def close(numpy, left, right):
    left, right = numpy.asarray(left), numpy.asarray(right)
    if left.dtype != right.dtype or left.shape != right.shape:
        return False
    if left.dtype.kind in "biu":
        return bool((left == right).all())
    exact = left.dtype == numpy.float64
    tolerance = 1e-12 if exact else 1e-2 if left.dtype.itemsize == 2 else 2e-5
    return numpy.allclose(left.astype(numpy.float64), right.astype(numpy.float64), rtol=tolerance, atol=tolerance, equal_nan=True)


def refusals(check, jax, jnp, lax, numpy, device):
    """Tests the messages for operations that the plug-in lacks, and for mistakes."""
    def words(function, *arguments):
        try:
            jax.block_until_ready(jax.jit(function)(*arguments))
            return "it was run"
        except Exception as error:
            return str(error)

    vector = jax.device_put(numpy.arange(4.0, dtype=numpy.float32), device)
    said = words(jnp.sort, vector)
    check("an operation that it does not have is named", "UNIMPLEMENTED" in said and "sort_v1" in said and "dot_general" in said, said)
    said = words(lambda x: x * 1j, vector)
    check("an element type that it does not have is named", "UNIMPLEMENTED" in said, said)
    said = words(lambda x: jnp.broadcast_to(x, (1 << 16, 1 << 16, 4)).sum(), vector)
    check("an array that is too large is refused", "RESOURCE_EXHAUSTED" in said, said)


def asynchronous(check, jax, jnp, lax, numpy, devices):
    """Tests that a running program does not block its caller, other devices, or copies."""
    slow = jax.jit(lambda x: lax.fori_loop(0, 300_000, lambda _, y: y * 0.5 + 1, x))
    quick = jax.jit(lambda x: x + 1)
    x = [jax.device_put(numpy.float32(3), device) for device in devices]
    jax.block_until_ready([slow.lower(x[0]).compile(), quick(x[1])])
    running = slow(x[0])
    other = float(quick(x[1]))
    check("a program of another device is not kept waiting", other == 4 and not running.is_ready(), other)
    check("a slow program ends", abs(float(running) - 2) < 1e-6, running)
    # Compiled before the threads start: two threads of jaxlib 0.8.0 that submit programs at the same time can crash in its own MLIR.
    jax.block_until_ready([quick(jax.device_put(numpy.zeros(100, numpy.float32), device)) for device in devices])
    results = []
    def work(seed):
        value = jax.device_put(numpy.full(100, seed, numpy.float32), devices[seed % 2])
        for _ in range(30):
            value = quick(value)
        results.append(bool((numpy.asarray(value) == seed + 30).all()))
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check("programs of six threads", results == [True] * 6, results)


def ahead(check, jax, jnp, numpy, device):
    compiled = jax.jit(lambda x: x @ x.T).lower(jax.ShapeDtypeStruct((3, 4), numpy.float32, sharding=jax.sharding.SingleDeviceSharding(device))).compile()
    x = numpy.arange(12, dtype=numpy.float32).reshape(3, 4)
    check("a program compiled ahead", bool((numpy.asarray(compiled(jax.device_put(x, device))) == x @ x.T).all()))
    analysis = compiled.memory_analysis()
    check("the memory of a program", analysis.argument_size_in_bytes == 48 and analysis.output_size_in_bytes == 36, analysis)
    try:
        from jax.experimental import serialize_executable
        again = serialize_executable.deserialize_and_load(*serialize_executable.serialize(compiled), backend=PLATFORM, execution_devices=[device])
        check("a program written and loaded", bool((numpy.asarray(again(jax.device_put(x, device))) == x @ x.T).all()))
    except Exception as error:
        check("a program written and loaded", False, error)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plugin", required=True, help="libinterpreter_pjrt_plugin.so")
    arguments = parser.parse_args()
    from jax._src import xla_bridge

    xla_bridge.register_plugin(PLATFORM, priority=500, library_path=arguments.plugin, options={"devices": 2})
    import jax
    import jax.numpy as jnp
    import numpy
    from jax import lax

    jax.config.update("jax_platforms", f"{PLATFORM},cpu")
    jax.config.update("jax_enable_x64", True)
    checks = Checks()
    devices, cpu = jax.devices(), jax.devices("cpu")[0]
    checks.check(f"jax {jax.__version__} has two devices", [device.platform for device in devices] == [PLATFORM] * 2, devices)
    for index, (name, function, values) in enumerate(programs(jax, jnp, lax, numpy)):
        run = jax.jit(function)
        try:
            found = run(*jax.device_put(values, devices[index % 2]))
            expected = run(*jax.device_put(values, cpu))
            found, expected = jax.tree.leaves(found), jax.tree.leaves(expected)
            places = all(leaf.devices() == {devices[index % 2]} for leaf in found)
            same = len(found) == len(expected) and all(close(numpy, *pair) for pair in zip(found, expected))
            checks.check(f"program: {name}", places and same, (found, expected))
        except Exception as error:
            checks.check(f"program: {name}", False, error)
    refusals(checks.check, jax, jnp, lax, numpy, devices[0])
    asynchronous(checks.check, jax, jnp, lax, numpy, devices)
    ahead(checks.check, jax, jnp, numpy, devices[1])
    sys.exit(checks.end())


if __name__ == "__main__":
    main()
