"""Programs of a real JAX client, run by a server over the PJRT plug-ins of PyPI that compute without an accelerator.

PYTHON tests/interop/jaxlib_programs.py --serdes PATH_OF_BINARY [--host-plugin PATH_OF_SO] [--cache FOLDER] [--plugin NAME]

The same jaxlib runs the same cases twice: in its own process on four devices of its own, and through the proxy on four of the plug-in.
Their results must be equal: exactly for integers, within rounding for other numbers (the two compilers are of different dates). Then it tests
mistakes: each must give an error that a person understands, and the session must continue. Then a platform of another name, two clients of
different builds at once, a client that is killed while its program runs, a state that is saved while a loop runs, and many compilations,
after which the server must not have grown. With SERDES_FULL these are a thousand with every plug-in, else a hundred with one: the newest
plug-in for the oldest client, and the oldest one, for which programs are rewritten, for the newest client. Ends with `N passed, N failed`;
status 0 if nothing failed.
"""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

from checks import Checks, hear_signals
from pjrt_plugins import PLUGINS, download

DEVICES = 4

# The beginning of both runs. `remote` is the address of the server, or empty for the run in the own process.
BEGIN = r"""
import functools, json, os, sys, threading, time
remote = sys.argv[1]
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["IFRT_PROXY_USE_INSECURE_GRPC_CREDENTIALS"] = "true"
if not remote:
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
import numpy as np
import jax
import jax.numpy as jnp
import ml_dtypes
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
if remote:
    from jax._src import xla_bridge
    from jaxlib import _ifrt_proxy
    options = _ifrt_proxy.ClientConnectionOptions()
    options.connection_timeout_in_seconds = 30
    if len(sys.argv) > 3:
        options.initialization_data = {"serdes.state.name": sys.argv[3].encode()}
    xla_bridge.register_backend_factory("proxy", lambda: _ifrt_proxy.get_client("grpc://" + remote, options), priority=500)
    jax.config.update("jax_platforms", "proxy")
jax.config.update("jax_enable_x64", True)
shard_map = getattr(jax, "shard_map", None)
if shard_map is None:
    from jax.experimental.shard_map import shard_map
devices = jax.devices()
results, failures, passed = {}, [], 0

def leave():
    print(json.dumps({"passed": passed, "failures": failures}), flush=True)
    os._exit(0)

def check(name, condition, detail=""):
    global passed
    if condition:
        passed += 1
    else:
        failures.append(f"{name}: {detail}")
"""

CASES = r"""
def case(function):
    global passed
    name = function.__name__
    try:
        found = jax.tree_util.tree_leaves(function())
        for at, leaf in enumerate(found):
            array = np.asarray(leaf)
            if array.dtype.kind not in "biufc":
                array = array.astype(np.float64)
            results[f"{name}.{at}"] = array
        passed += 1
    except Exception as error:
        failures.append(f"{name}: {type(error).__name__}: {str(error)[:400]} ... {str(error)[-400:]}")
    return function

x = np.arange(24, dtype=np.float32).reshape(4, 6) / 7
y = np.linspace(-2, 2, 24, dtype=np.float32).reshape(6, 4)

@case
def arithmetic():
    a, b = jnp.asarray(x), jnp.asarray(y).T
    return a + b, a - b, a * b, a / (b + 3), a ** 2, -a, a % 2, a // 2, jnp.exp(b), jnp.tanh(a), a > b, jnp.where(a > b, a, b)

@case
def indexing():
    a = jnp.asarray(x)
    return a[1], a[:, 2], a[::2, 1:4], a[jnp.array([0, 3, 1])], a.at[1, 2].set(9), a.at[:, 0].add(1), a[-1, -1], lax.dynamic_slice(a, (1, 2), (2, 3))

@case
def constructors():
    return (jnp.zeros((2, 3)), jnp.ones(4, jnp.int32), jnp.full((2,), 7.5), jnp.arange(5), jnp.linspace(0, 1, 5), jnp.eye(3), jnp.array([[1, 2], [3, 4]]),
            jnp.zeros_like(x), jnp.tri(3), jnp.zeros((0, 3)), jnp.float32(3), jnp.stack([x, x]), jnp.concatenate([x, x], 1), jnp.tile(x, (1, 2)))

@case
def reductions():
    a = jnp.asarray(x)
    return a.sum(), a.mean(0), a.max(1), a.argmax(), jnp.std(a), jnp.cumsum(a, 1), jnp.sort(-a, axis=1), jnp.argsort(-a, axis=0), jnp.any(a > 3), jnp.median(a)

@case
def products():
    a, b = jnp.asarray(x), jnp.asarray(y)
    return a @ b, jnp.dot(a, b), jnp.einsum("ij,jk->ki", a, b), jnp.outer(a[0], b[0]), jnp.tensordot(a, b, 1), jnp.vdot(a, a)

@case
def convolution():
    image, kernel = jnp.ones((1, 3, 8, 8)) * jnp.arange(8.0), jnp.arange(54.0).reshape(2, 3, 3, 3) / 54
    return lax.conv(image, kernel, (1, 1), "SAME"), lax.reduce_window(image, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")

@case
def transforms():
    return jnp.fft.fft(jnp.asarray(x)), jnp.fft.rfft2(jnp.asarray(x)), jnp.fft.ifft(jnp.asarray(x) + 1j)

@case
def largest():
    return lax.top_k(jnp.asarray(x), 2)

@case
def number_types():
    found = []
    names = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
    for name in names:
        a = jnp.asarray(np.array([0, 1, 2, 3]).astype(ml_dtypes.bfloat16 if name == "bfloat16" else name))
        found += [a + a, a.astype(jnp.float32 if "complex" not in name else a.dtype)]
    for name in ["float8_e4m3fn", "float8_e5m2", "int4", "uint4"]:
        a = jnp.asarray(np.array([0, 1, 2, 3], np.float32)).astype(getattr(jnp, name))
        found.append((a.astype(jnp.float32) * 2).astype(a.dtype).astype(jnp.float32))
    return found

@case
def jitted():
    @functools.partial(jax.jit, static_argnames=("times", "how"))
    def f(a, times, how="sum"):
        for _ in range(times):
            a = a * 2
        return a.sum() if how == "sum" else a
    return f(x, 3), f(x, 4), f(x, 1, how="all"), jax.jit(lambda a: {"a": a, "b": (a + 1, None)})(x), jax.jit(lambda: jnp.arange(3))()

@case
def unused_and_repeated_arguments():
    return jax.jit(lambda a, b, c: a + c)(x, y, x), jax.jit(lambda a, b: a * b)(*[jnp.asarray(x)] * 2), jax.jit(lambda a: (a, a, a))(x), jax.jit(lambda a: a)(x)

@case
def donation():
    f = jax.jit(lambda a, b: (a + b, a * 2), donate_argnums=0)
    a, b = jnp.asarray(x), jnp.asarray(x)
    first = f(a, b)
    assert a.is_deleted() and not b.is_deleted()
    try:
        np.asarray(a)
        raise AssertionError("a donated array was read")
    except RuntimeError as error:
        assert "deleted" in str(error), error
    # One that is read, or seen as another array, before it is given away.
    c = jnp.asarray(x) + 1
    seen = np.asarray(c)
    view = c.addressable_shards[0].data
    second = f(c, b)
    return first, second, seen, b

@case
def donation_in_a_loop():
    step = jax.jit(lambda a: a * 1.5 + 1, donate_argnums=0)
    a = jnp.asarray(x)
    for _ in range(50):
        a = step(a)
    return a

@case
def gradients():
    loss = lambda w: jnp.sum(jnp.tanh(w @ jnp.asarray(y)) ** 2)
    return jax.grad(loss)(x), jax.value_and_grad(loss)(x), jax.hessian(lambda v: jnp.sum(v ** 3))(x[0]), jax.jvp(loss, (x,), (x,)), jax.vjp(loss, x)[1](jnp.float32(1))

@case
def mapped():
    return jax.vmap(lambda a, b: a @ b, in_axes=(0, None))(x, y), jax.vmap(jnp.sum)(x), jax.jit(jax.vmap(jax.grad(lambda a: jnp.sum(a ** 2))))(x), lax.map(lambda a: a * 2, x)

@case
def control():
    scan = lax.scan(lambda carry, a: (carry + a, carry * a), jnp.zeros(6, jnp.float32), x)
    return (scan, lax.while_loop(lambda s: s[0] < 10, lambda s: (s[0] + 1, s[1] * 2), (0, 1.0)), lax.fori_loop(0, 5, lambda i, s: s + i, 0),
            lax.cond(True, lambda a: a + 1, lambda a: a - 1, x), lax.switch(2, [lambda a: a, lambda a: a * 2, lambda a: a * 3], x), lax.associative_scan(jnp.add, x))

@case
def random_numbers():
    key = jax.random.PRNGKey(7)
    a, b = jax.random.split(key)
    return (jax.random.normal(a, (5,)), jax.random.uniform(b, (5,)), jax.random.permutation(a, 10), jax.random.randint(b, (4,), 0, 100),
            jax.random.bernoulli(a, 0.5, (8,)), jax.random.choice(a, 10, (3,)), jax.random.categorical(b, jnp.asarray(x)), jax.random.key_data(jax.random.key(3)))

@case
def second_device():
    a = jax.device_put(x, devices[1])
    found = jax.jit(lambda a: a + 1)(a)
    assert found.devices() == {devices[1]}, found.devices()
    moved = jax.device_put(found, devices[2])
    return found, moved * 2

mesh = Mesh(np.array(devices), ("x",))
square = Mesh(np.array(devices).reshape(2, 2), ("a", "b"))
reverse = Mesh(np.array(devices)[::-1].reshape(2, 2), ("a", "b"))

def put(value, where, spec):
    return jax.device_put(value, NamedSharding(where, spec))

@case
def named_shardings():
    found = []
    big = np.arange(64, dtype=np.float32).reshape(8, 8)
    for where in (mesh, square, reverse):
        for spec in (P("x"), P(None, "x"), P()) if where is mesh else (P("a", "b"), P("b", "a"), P("a"), P(None, "b"), P(("a", "b")), P(("b", "a")), P(None, ("a", "b"))):
            a = put(big, where, spec)
            doubled = jax.jit(lambda a: a * 2 + 1)(a)
            assert doubled.sharding.is_equivalent_to(a.sharding, 2), (doubled.sharding, a.sharding)
            out = jax.jit(lambda a: a.T @ a, out_shardings=NamedSharding(where, P(*reversed(spec)) if len(spec) == 2 else P()))(a)
            found += [a, doubled, out, a.sum(), jnp.sort(-a, axis=0)]
            shards = [np.asarray(s.data) for s in doubled.addressable_shards]
            assert all(np.array_equal(s, (big * 2 + 1)[shard.index]) for s, shard in zip(shards, doubled.addressable_shards))
    return found

@case
def shardings_that_change():
    a = put(x.reshape(8, 3), mesh, P("x"))
    b = jax.device_put(a, NamedSharding(square, P("b", None)))
    c = jax.jit(lambda a: lax.with_sharding_constraint(a + 1, NamedSharding(mesh, P())))(a)
    d = jax.jit(lambda a, b: a + b)(a, put(x.reshape(8, 3), mesh, P()))
    return b + 1, c, d, jax.device_put(c, devices[3])

@case
def collectives():
    a = put(x.reshape(4, 6), mesh, P("x"))
    def f(a):
        ring = [(i, (i + 1) % 4) for i in range(4)]
        return lax.psum(a, "x"), lax.all_gather(a, "x"), lax.ppermute(a, "x", ring), lax.pmax(a, "x"), lax.axis_index("x")[None] + 0 * a[0, :1].astype(int)
    mapped = jax.jit(shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=(P(), P("x"), P("x"), P(), P("x"))))
    g = jax.jit(shard_map(lambda a: lax.psum_scatter(a, "x", tiled=True), mesh=mesh, in_specs=P(None, "x"), out_specs=P("x")))
    return mapped(a), g(put(np.ones((4, 8), np.float32), mesh, P(None, "x")))

@case
def parallel_map():
    f = jax.pmap(lambda a: (a / lax.psum(a, "i"), lax.pmean(a, "i")), axis_name="i")
    return f(jnp.asarray(x) + 1)

@case
def training():
    # A hundred steps, the parameters given away in each of them.
    key = jax.random.PRNGKey(0)
    keys = jax.random.split(key, 4)
    data = jax.random.normal(keys[0], (64, 8), jnp.float32)
    target = jnp.sin(data.sum(1, keepdims=True))
    parameters = {"a": jax.random.normal(keys[1], (8, 16), jnp.float32) / 4, "b": jnp.zeros(16, jnp.float32), "c": jax.random.normal(keys[2], (16, 1), jnp.float32) / 4}
    def loss(p, data, target):
        return jnp.mean((jnp.tanh(data @ p["a"] + p["b"]) @ p["c"] - target) ** 2)
    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def step(p, momentum, data, target):
        value, gradient = jax.value_and_grad(loss)(p, data, target)
        momentum = jax.tree_util.tree_map(lambda m, g: 0.9 * m + g, momentum, gradient)
        return jax.tree_util.tree_map(lambda p, m: p - 0.05 * m, p, momentum), momentum, value
    momentum = jax.tree_util.tree_map(jnp.zeros_like, parameters)
    losses = []
    for _ in range(100):
        parameters, momentum, value = step(parameters, momentum, data, target)
        losses.append(value)
    assert float(losses[-1]) < float(losses[0]) / 2, (losses[0], losses[-1])
    return parameters, jnp.stack(losses)

@case
def training_in_parallel():
    data, target = np.linspace(-1, 1, 64, dtype=np.float32).reshape(16, 4), np.linspace(0, 1, 16, dtype=np.float32)
    data, target = put(data, mesh, P("x")), put(target, mesh, P("x"))
    w = put(np.ones(4, np.float32), mesh, P())
    @functools.partial(jax.jit, donate_argnums=0, out_shardings=NamedSharding(mesh, P()))
    def step(w):
        return w - 0.1 * jax.grad(lambda w: jnp.mean((data @ w - target) ** 2))(w)
    for _ in range(100):
        w = step(w)
    return w

@case
def ahead_of_time():
    compiled = jax.jit(lambda a: a @ a.T).lower(x).compile()
    compiled.cost_analysis()
    memory = compiled.memory_analysis()
    assert memory is None or memory.output_size_in_bytes > 0
    return compiled(x), compiled(x)

@case
def many_calls():
    f = jax.jit(lambda a: a + 1)
    a = jnp.zeros(3)
    for _ in range(300):
        a = f(a)
    return a

@case
def threads():
    f = jax.jit(lambda a, b: (a * b).sum())
    found = [None] * 8
    def work(at):
        for _ in range(20):
            found[at] = np.asarray(f(jnp.full((8, 8), at + 1.0), jnp.ones((8, 8))))
    workers = [threading.Thread(target=work, args=(at,)) for at in range(8)]
    [worker.start() for worker in workers]
    [worker.join() for worker in workers]
    return found

@case
def large():
    a = jnp.ones((2048, 4096), jnp.float32)
    return (a * 3).sum(), (jax.device_put(np.ones((2048, 4096), np.float32)) + a)[5, 7]
np.savez(sys.argv[2], **results)
leave()
"""

# Mistakes, which are tested only through the proxy.
ERRORS = r"""
def fails(name, function, kinds, *words):
    try:
        jax.block_until_ready(function())
    except kinds as error:
        check(name, all(word in str(error) for word in words), f"{type(error).__name__}: {str(error)[:400]}")
    except BaseException as error:
        check(name, False, f"{type(error).__name__}: {str(error)[:400]}")
    else:
        check(name, False, "nothing was raised")
    check(f"after {name}", float(jnp.float32(1) + 1) == 2)

fails("shapes that do not fit", lambda: jnp.ones(3) + jnp.ones(4), TypeError, "(3,)", "(4,)")
fails("out of memory", lambda: jnp.ones((1 << 20, 1 << 20)) + 1, jax.errors.JaxRuntimeError, "RESOURCE_EXHAUSTED")
fails("out of memory later", lambda: jax.jit(lambda a: jnp.broadcast_to(a, (1 << 20, 1 << 20)) + 1)(1.0), jax.errors.JaxRuntimeError, "RESOURCE_EXHAUSTED")
fails("a call back into the host", lambda: jax.jit(lambda a: jax.pure_callback(np.sin, a, a))(jnp.ones(3)), Exception, "UNIMPLEMENTED")
fails("LAPACK of the client's own", lambda: jnp.linalg.cholesky(jnp.eye(3)), jax.errors.JaxRuntimeError, "lapack")
jax.config.update("jax_debug_nans", True)
fails("not a number", lambda: jnp.zeros(2) / 0 * 0, FloatingPointError, "nan")
fails("not a number in a program", lambda: jax.jit(lambda a: jnp.log(a))(-jnp.ones(2)), FloatingPointError, "nan")
jax.config.update("jax_debug_nans", False)
f = jax.jit(lambda a: a + 1, donate_argnums=0)
given = jnp.ones(3)
f(given)
fails("an array that was given away", lambda: given + 1, (RuntimeError, ValueError), "delete")
here, there = jax.device_put(1.0, devices[0]), jax.device_put(2.0, devices[1])
fails("arrays on different devices", lambda: jax.jit(lambda a, b: a + b)(here, there), ValueError, "devices")
leave()
"""

# For a platform of another name jax expands linear algebra, and sends programs with callbacks into the client, which none of these plug-ins accepts.
PLATFORM = r"""
from jax.experimental import io_callback
check("the platform", jax.default_backend() == jax.devices()[0].platform == sys.argv[2], jax.default_backend())
x = np.array([[4, 1, 0], [1, 5, 2], [0, 2, 6]], np.float32)
for name in ("cholesky", "eigvalsh", "det", "pinv"):
    found, expected = np.asarray(getattr(jnp.linalg, name)(x)), getattr(np.linalg, name)(x)
    check(name, np.allclose(found, expected, rtol=1e-3, atol=1e-3), f"{found} {expected}")
q, r = jnp.linalg.qr(x)
check("qr", np.allclose(np.asarray(q @ r), x, atol=1e-3), q @ r)
u, s, v = jnp.linalg.svd(x)
check("svd", np.allclose(np.asarray(u * s @ v), x, atol=1e-3), u * s @ v)

def refused(name, function):
    try:
        jax.block_until_ready(function(jnp.ones(3, jnp.float32)))
        jax.effects_barrier()
    except jax.errors.JaxRuntimeError as error:
        check(name, all(word in str(error) for word in ("UNIMPLEMENTED", "send", "jax.pure_callback", "without")), str(error)[:800])
    except BaseException as error:
        check(name, False, f"{type(error).__name__}: {str(error)[:400]}")
    else:
        check(name, False, "nothing was raised")
    check(f"after {name}", float(jnp.float32(1) + 1) == 2)

refused("pure_callback", jax.jit(lambda a: jax.pure_callback(np.sin, a, a)))
refused("pure_callback of several", jax.jit(lambda a: jax.pure_callback(lambda b, c: (b + c, b), (a, a), a, a + 1)))
refused("io_callback", jax.jit(lambda a: io_callback(lambda b: b * 2, a, a)))
refused("debug.print", jax.jit(lambda a: (jax.debug.print("{a}", a=a), a + 1)[1]))
leave()
"""

# Runs a program that takes seconds, and prints a line when it begins.
LONG = r"""
f = jax.jit(lambda a: lax.fori_loop(0, 100000, lambda i, a: jnp.tanh(a @ a), a))
g = f.lower(jnp.ones((256, 256), jnp.float32)).compile()
a = g(jnp.ones((256, 256), jnp.float32))
print("running", flush=True)
np.asarray(a)
leave()
"""

# Compiles many different programs.
COMPILES = r"""
count = int(sys.argv[2])
print("ready", flush=True)
for line in sys.stdin:
    begin, end = map(int, line.split())
    for number in range(begin, end):
        f = jax.jit(lambda a: jnp.sum(jnp.tanh(a * number) + number))
        found = float(f(np.float32(1)))
        del f
        jax.clear_caches()
    print("done", flush=True)
leave()
"""

# Runs a loop whose parameters are donated in each step, with a name in the state, until it is told to stop.
LOOP = r"""
step = jax.jit(lambda p: {"w": p["w"] + 1, "step": p["step"] + 1}, donate_argnums=0)
begin = float(sys.argv[2])
p = {"w": jnp.full(1000, begin, jnp.float32), "step": jnp.asarray(begin, jnp.float32)}
# What a program gives when it runs for the first time, as the parameters of a model are made.
once = jax.block_until_ready(jax.jit(lambda begin: jnp.arange(777) * 2.0 + begin)(begin))
print("running", flush=True)
end = time.monotonic() + 6
while time.monotonic() < end:
    p = step(p)
print(json.dumps({"steps": float(p["step"]), "w": float(p["w"][5])}), flush=True)
os._exit(0)
"""


class Run(Checks):
    def __init__(self, serdes):
        super().__init__()
        self.serdes = serdes

    def serve(self, plugin, *options, devices=DEVICES):
        command = [self.serdes, "serve", "--plugin", f"{plugin}:cpu_device_count={devices}", "--listen", "127.0.0.1:0", *options]
        log = tempfile.TemporaryFile("w+")
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        server.log = log
        line = server.stdout.readline()
        if not line.startswith("listening on "):
            server.kill()
            log.seek(0)
            raise RuntimeError(f"the server said {line!r} {log.read()}")
        return server, line.split()[-1]

    def stop(self, name, server):
        server.send_signal(signal.SIGTERM)
        try:
            server.wait(timeout=60)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
        server.log.seek(0)
        self.check(f"{name}: the server stops by itself", server.returncode == 0, f"{server.returncode} {server.log.read()[-2000:]}")

    def client(self, code, *arguments, python=sys.executable, **settings):
        return subprocess.Popen(
            [python, "-c", BEGIN + code, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **settings
        )

    def finish(self, name, client, limit=900):
        """Adds a client's results to the counts."""
        try:
            out, said = client.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            client.kill()
            out, said = client.communicate()
        lines = out.splitlines()
        if client.returncode != 0 or not lines:
            self.check(name, False, f"ended with {client.returncode}: {said[-2000:]}")
            return
        found = json.loads(lines[-1])
        self.passed += found["passed"]
        for failure in found["failures"]:
            self.check(name, False, failure)


def compare(run, name, local, remote):
    import numpy as np

    if not (os.path.exists(local) and os.path.exists(remote)):
        run.check(name, False, "a run has left no results")
        return
    local, remote = np.load(local), np.load(remote)
    run.check(f"{name}: all cases", set(local) == set(remote), sorted(set(local) ^ set(remote)))
    for key in sorted(set(local) & set(remote)):
        a, b = local[key], remote[key]
        same = a.dtype == b.dtype and a.shape == b.shape
        if same and a.dtype.kind in "biu":
            same = np.array_equal(a, b)
        elif same:
            same = np.allclose(a, b, rtol=2e-5, atol=2e-5, equal_nan=True)
        run.check(f"{name}: {key}", same, f"{a.dtype}{a.shape} {b.dtype}{b.shape} {a.ravel()[:4]} {b.ravel()[:4]}")


def memory(process):
    """Returns the memory of a process and of its child processes (one of them has the plug-in), in MiB."""
    with open(f"/proc/{process}/status") as file:
        own = next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) / 1024
    children = []
    for thread in os.listdir(f"/proc/{process}/task"):
        with open(f"/proc/{process}/task/{thread}/children") as file:
            children += file.read().split()
    return own + sum(memory(child) for child in children)


def killed(run, name, address):
    """Tests that others are served while and after a client is killed in the middle of an execution."""
    client = run.client(LONG, address)
    if client.stdout.readline().strip() != "running":
        client.kill()
        run.check(f"{name}: a long program", False, client.communicate()[1][-2000:])
        return
    client.kill()
    client.communicate()
    other = run.client("check('another client', float(jax.jit(lambda a: a.sum())(np.ones(5))) == 5)\nleave()", address)
    run.finish(f"{name}: beside a client that was killed", other, 300)


def compiles(run, name, server, address, count):
    client = run.client(COMPILES, address, str(count), stdin=subprocess.PIPE)
    ready = client.stdout.readline().strip() == "ready"
    sizes = []
    for part in range(4):
        client.stdin.write(f"{part * count // 4} {(part + 1) * count // 4}\n")
        client.stdin.flush()
        if not ready or client.stdout.readline().strip() != "done":
            client.kill()
            run.check(f"{name}: {count} compilations", False, client.communicate()[1][-2000:])
            return
        sizes.append(memory(server.pid))
    client.stdin.close()
    client.stdin = None
    run.finish(f"{name}: {count} compilations", client, 300)
    grown = sizes[3] - sizes[1]
    run.check(f"{name}: {count} compilations leave nothing", grown < 16, f"MiB after each quarter: {sizes}")
    print(f"{name}: MiB after each quarter of {count} compilations: {[round(size) for size in sizes]}", flush=True)


def state(run, name, plugin, folder):
    """Tests a loop that is saved while it runs, and continues on another server with fewer devices, from its arrays."""
    import numpy as np

    path = os.path.join(folder, "loop.sds")
    server, address = run.serve(plugin, "--state", path)
    client = run.client(LOOP, address, "0", "model")
    run.check(f"{name}: the loop runs", client.stdout.readline().strip() == "running")
    # Saves twice: arrays that the loop donated in between must leave the state.
    for _ in range(2):
        time.sleep(2)
        server.send_signal(signal.SIGHUP)
    out, said = client.communicate(timeout=120)
    run.check(f"{name}: the loop ends", client.returncode == 0, said[-2000:])
    if client.returncode != 0:
        server.kill()
        return
    steps = json.loads(out.splitlines()[-1])["steps"]
    run.check(f"{name}: the save was written while the loop ran", os.path.exists(path))
    found = subprocess.run([run.serdes, "restore", path, "--to", os.path.join(folder, "loop.npz")], capture_output=True, text=True)
    run.check(f"{name}: what was saved can be restored", found.returncode == 0, found.stderr)
    saved = dict(np.load(os.path.join(folder, "loop.npz"))) if found.returncode == 0 else {}
    long = [array for array in saved.values() if array.shape == (1000,)]
    once = [array for array in saved.values() if array.shape == (777,)]
    run.check(f"{name}: what a program gave that ran once", len(once) == 1 and np.array_equal(once[0], np.arange(777) * 2.0), [array.shape for array in saved.values()])
    run.check(f"{name}: the parameters of one step", len(long) == 1 and all((array == array[0]).all() for array in long), {key: array.shape for key, array in saved.items()})
    run.stop(name, server)
    if not long:
        return
    begin = float(max(array[0] for array in long))
    run.check(f"{name}: a step in the middle", 0 < begin <= steps, f"{begin} of {steps}")
    server, address = run.serve(plugin, "--state", path, devices=2)
    client = run.client(LOOP, address, str(begin), "other")
    out, said = client.communicate(timeout=120)
    after = json.loads(out.splitlines()[-1]) if client.returncode == 0 else {}
    run.check(f"{name}: the loop goes on with two devices", after.get("w", 0) == after.get("steps", 1) > begin, f"{after} {said[-2000:]}")
    run.stop(name, server)


def others(cache):
    """Returns the interpreters with other builds of jaxlib, if the suite has made them."""
    own = pathlib.Path(sys.executable)
    found = sorted((cache.parent / "venvs").glob("jaxlib-*/bin/python"))
    return [python for python in found if python.parent != own.parent]


def main():
    hear_signals()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serdes", required=True)
    parser.add_argument("--host-plugin", help="not used: programs need a plug-in that compiles")
    default = pathlib.Path(os.environ.get("SERDES_CI_CACHE", pathlib.Path.home() / ".cache/serdes-ci")) / "pjrt"
    parser.add_argument("--cache", type=pathlib.Path, default=default, help="where packages are kept")
    parser.add_argument("--plugin", help="only this package")
    parser.add_argument("--only", help="only this part: cases, errors, others, killed, compiles, platform, state")
    arguments = parser.parse_args()
    try:
        import jaxlib
    except ImportError:
        print("0 passed, 0 failed: jaxlib is not installed")
        return
    run, version = Run(arguments.serdes), jaxlib.__version__
    wanted = lambda part: arguments.only in (None, part)  # noqa: E731
    with tempfile.TemporaryDirectory() as folder:
        local = os.path.join(folder, "local.npz")
        if wanted("cases"):
            run.finish(f"jaxlib {version} alone", run.client(CASES, "", local))
        chosen = [plugin for plugin in PLUGINS if arguments.plugin in (None, plugin[0])]
        if not (arguments.plugin or os.environ.get("SERDES_FULL")):
            chosen = [PLUGINS[{"0.8.0": -1, "0.10.2": 1}.get(version, 0)]]
        for package, number, *_ in chosen:
            name = f"jaxlib {version} over {package}"
            plugin = download(arguments.cache / f"{package}-{number}", package, number)
            server, address = run.serve(plugin)
            remote = os.path.join(folder, f"{package}.npz")
            if wanted("cases"):
                run.finish(name, run.client(CASES, address, remote))
                compare(run, name, local, remote)
            if wanted("errors"):
                run.finish(f"{name}: errors", run.client(ERRORS, address), 300)
            if wanted("others"):
                pythons = [*others(arguments.cache)[:2], pathlib.Path(sys.executable)]
                clients = [run.client(CASES, address, os.path.join(folder, f"{at}.npz"), python=str(python)) for at, python in enumerate(pythons)]
                for client in clients:
                    run.finish(f"{name}: {len(clients)} clients at once", client)
            if wanted("killed"):
                killed(run, name, address)
            if wanted("compiles"):
                compiles(run, name, server, address, 1000 if os.environ.get("SERDES_FULL") else 100)
            run.check(f"{name}: the server is there", server.poll() is None)
            run.stop(name, server)
            if wanted("platform"):
                server, address = run.serve(plugin, "--platform-name", "tpu")
                run.finish(f"{name}: called tpu", run.client(PLATFORM, address, "tpu"), 300)
                run.stop(f"{name}: called tpu", server)
            if wanted("state"):
                state(run, name, plugin, tempfile.mkdtemp(dir=folder))
    sys.exit(run.end())


if __name__ == "__main__":
    main()
