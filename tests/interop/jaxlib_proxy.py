"""Tests with a real JAX client that `serdes serve` returns its arrays byte for byte.

PYTHON tests/interop/jaxlib_proxy.py --serdes PATH_OF_BINARY [--host-plugin PATH_OF_SO]

Each group of checks runs in a process of its own with a time limit: the client aborts on a broken protocol, and a crash or a hang counts
as a failure. Ends with `N passed, N failed`; status 0 if nothing failed. Without jaxlib it says so and passes.
"""

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading

from checks import Checks

PRELUDE = r"""
import os, sys, json
os.environ["IFRT_PROXY_USE_INSECURE_GRPC_CREDENTIALS"] = "true"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import jax
from jax._src import xla_bridge
from jaxlib import _ifrt_proxy
import ml_dtypes
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P, SingleDeviceSharding

passed, failed = 0, 0

def check(name, condition, detail=""):
    global passed, failed
    if condition:
        passed += 1
    else:
        failed += 1
        print(f"FAILED {name} {detail}", flush=True)

def connect(address, name="proxy", timeout=10, data=None):
    options = _ifrt_proxy.ClientConnectionOptions()
    options.connection_timeout_in_seconds = timeout
    if data:
        options.initialization_data = data
    xla_bridge.register_backend_factory(
        name, lambda: _ifrt_proxy.get_client("grpc://" + address, options), priority=500)
    jax.config.update("jax_platforms", name)
    jax.config.update("jax_enable_x64", True)
    return xla_bridge.get_backend(name)

def same(a, b):
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()

def done():
    print(json.dumps({"passed": passed, "failed": failed}), flush=True)
    os._exit(0)

address = sys.argv[1]
"""

DTYPES = r"""
backend = connect(address)
devices = backend.devices()
check("two devices", len(devices) == 2, str(devices))
check("ids", [d.id for d in devices] == [0, 1])
check("kind", all(d.device_kind == "cpu" for d in devices))
check("local devices", len(backend.local_devices()) == 2)
kinds = [m.kind for m in devices[0].addressable_memories()]
check("memories", "device" in kinds and "pinned_host" in kinds, str(kinds))
check("default memory", devices[0].default_memory().kind == "device")
check("version text", "serdes" in backend.platform_version, backend.platform_version)

names = ["bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
         "float16", "float32", "float64", "complex64", "complex128"]
kinds = [np.dtype(getattr(np, n)) for n in names]
for n in ["bfloat16", "float8_e3m4", "float8_e4m3", "float8_e4m3fn", "float8_e4m3b11fnuz", "float8_e4m3fnuz",
          "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn", "int2", "uint2", "int4", "uint4", "int1", "uint1"]:
    if hasattr(ml_dtypes, n):
        kinds.append(np.dtype(getattr(ml_dtypes, n)))
random = np.random.default_rng(7)
for dtype in kinds:
    for shape in [(), (5,), (2, 3), (0, 3), (1, 1, 4)]:
        size = int(np.prod(shape)) * dtype.itemsize
        raw = random.integers(0, 2 if dtype.name in ("bool", "int1", "uint1") else 4 if dtype.name.endswith("2") and "int2" in dtype.name else 16 if dtype.itemsize == 1 and "4" in dtype.name else 256, size, dtype=np.uint8)
        x = np.frombuffer(raw.tobytes(), dtype).reshape(shape)
        try:
            a = jax.device_put(x, devices[0])
        except (TypeError, ValueError, NotImplementedError) as error:
            if "not a valid JAX" in str(error) or "not supported" in str(error) or isinstance(error, NotImplementedError):
                continue
            raise
        except jax.errors.JaxRuntimeError as error:
            if "UNIMPLEMENTED" in str(error) and "proxy" not in str(error):
                continue
            check(f"put {dtype} {shape}", False, str(error))
            continue
        try:
            check(f"round trip {dtype} {shape}", same(a, x), f"{np.asarray(a)!r} {x!r}")
        except jax.errors.JaxRuntimeError as error:
            # Builds that do not know a type send no type.
            check(f"round trip {dtype} {shape}", dtype.itemsize == 1 and dtype.name[-1] in "12" and "no element type" in str(error), str(error))

x = np.arange(24, dtype=np.float32).reshape(4, 6)
for view, name in [(x.T, "transposed"), (x[::2, ::3], "sliced"), (np.asfortranarray(x), "fortran"), (x[:, 2:4], "columns"),
                   (np.arange(120, dtype=np.int16).reshape(2, 3, 4, 5).transpose(3, 1, 0, 2), "permuted")]:
    check(name, same(jax.device_put(view, devices[1]), np.ascontiguousarray(view)))
# The client itself refuses these, or sends copies.
for view, name in [(np.broadcast_to(np.float32(3), (2, 2)), "broadcast"), (x[::-1], "reversed")]:
    try:
        check(name, same(jax.device_put(view, devices[1]), np.ascontiguousarray(view)))
    except jax.errors.JaxRuntimeError as error:
        check(name, "strides" in str(error), str(error))

if hasattr(np.dtypes, "StringDType"):
    strings = np.array(["a", "", "longer than a small string, longer than that", "\u00e9"], dtype=np.dtypes.StringDType())
    try:
        back = np.asarray(jax.device_put(strings, devices[0]))
        check("strings", list(back) == list(strings), str(back))
        back = np.asarray(jax.device_put(jax.device_put(strings, devices[0]), devices[1]))
        check("strings between devices", list(back) == list(strings), str(back))
    except TypeError:
        pass

pinned = SingleDeviceSharding(devices[1], memory_kind="pinned_host")
p = jax.device_put(x, pinned)
check("pinned memory", same(p, x) and p.sharding.memory_kind == "pinned_host")
check("pinned to device", same(jax.device_put(p, devices[0]), x))
check("device to pinned", same(jax.device_put(jax.device_put(x, devices[0]), pinned), x))
done()
"""

SHARDED = r"""
backend = connect(address)
devices = backend.devices()
mesh = Mesh(np.array(devices), ("x",))
x = np.arange(32, dtype=np.float32).reshape(4, 8)
for spec in [P("x"), P(), P(None, "x")]:
    a = jax.device_put(x, NamedSharding(mesh, spec))
    check(f"sharded {spec}", same(a, x))
    check(f"shards {spec}", all(same(s.data, x[s.index]) for s in a.addressable_shards))
    a.block_until_ready()
reverse = Mesh(np.array(devices[::-1]), ("x",))
a = jax.device_put(x, NamedSharding(mesh, P("x")))
# The shards stay where they are; the mesh names them in another order.
from jax._src.lib import xla_client
b = xla_client.reorder_shards(a, NamedSharding(reverse, P("x")), xla_client.ArrayCopySemantics.REUSE_INPUT)
check("remap", same(b, np.concatenate([x[2:], x[:2]])))

a0 = jax.device_put(x, devices[0])
a1 = jax.device_put(a0, devices[1])
check("device to device", same(a1, x) and a1.devices() == {devices[1]})
parts = [jax.device_put(x[:2], devices[0]), jax.device_put(x[2:], devices[1])]
whole = jax.make_array_from_single_device_arrays((4, 8), NamedSharding(mesh, P("x")), parts)
check("assembled", same(whole, x))
check("layout", "major_to_minor" in str(a0.format) or a0.format is not None)
check("size on device", a0.on_device_size_in_bytes() == x.nbytes if hasattr(a0, "on_device_size_in_bytes") else True)

a0.delete()
check("is deleted", a0.is_deleted())
try:
    np.asarray(a0)
    check("deleted array is refused", False)
except RuntimeError:
    check("deleted array is refused", True)
check("its copy lives on", same(a1, x))

try:
    jax.jit(lambda v: v + 1, device=devices[1])(a1)
    check("compile is refused", False)
except Exception as error:
    check("compile is refused", isinstance(error, Exception), str(error))
check("the session lives on", same(jax.device_put(x, devices[0]), x))
done()
"""

THREADS = r"""
import concurrent.futures
backend = connect(address)
devices = backend.devices()

def work(number):
    random = np.random.default_rng(number)
    for turn in range(20):
        x = random.integers(0, 255, (random.integers(1, 200), 33), dtype=np.uint8)
        a = jax.device_put(x, devices[(number + turn) % 2])
        if turn % 3 == 0:
            a = jax.device_put(a, devices[turn % 2])
        if not same(a, x):
            return False
    return True

with concurrent.futures.ThreadPoolExecutor(16) as pool:
    check("16 threads", all(pool.map(work, range(16))))
done()
"""

LARGE = r"""
backend = connect(address)
x = np.random.default_rng(3).integers(0, 255, 256 << 20, dtype=np.uint8)
a = jax.device_put(x, backend.devices()[0])
check("256 MB", same(a, x))
check("256 MB on the other device", same(jax.device_put(a, backend.devices()[1]), x))
done()
"""

DATA = r"""
backend = connect(address, data={"bytes": b"\x00\xffv", "flag": True, "number": -5, "long": b"x" * 60000})
x = np.arange(6.0)
check("initialization data", same(jax.device_put(x, backend.devices()[0]), x))
done()
"""

REFUSED = r"""
try:
    connect(address, timeout=3)
    check("refused", False, "connected")
except Exception as error:
    text = str(error)
    check("refused", sys.argv[2] in text and sys.argv[3] in text and "upgrade" in text, text)
done()
"""

STATE = r"""
backend = connect(address, data={"serdes.state.name": b"model"})
x = np.arange(12, dtype=np.float32).reshape(3, 4)
mesh = Mesh(np.array(backend.devices()), ("x",))
a = jax.device_put(x, backend.devices()[0])
b = jax.device_put(np.arange(8, dtype=np.int32), NamedSharding(mesh, P("x")))
# A client that goes may not have sent yet what it does not wait for.
jax.block_until_ready(b)
check("put", same(a, x))
done()
"""


class Run(Checks):
    def __init__(self, serdes, plugin):
        super().__init__()
        self.serdes, self.plugin = serdes, plugin

    @contextlib.contextmanager
    def server(self, *options):
        command = [self.serdes, "serve", "--plugin", self.plugin, *options]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        errors = []
        threading.Thread(target=lambda: errors.extend(server.stderr), daemon=True).start()
        line = server.stdout.readline()
        if not line.startswith("listening on "):
            server.kill()
            raise RuntimeError(f"the server said {line!r} {errors}")
        try:
            yield line.split()[-1]
        finally:
            self.check("the server is alive", server.poll() is None, "".join(errors)[-2000:])
            server.send_signal(signal.SIGTERM)
            try:
                status = server.wait(timeout=20)
            except subprocess.TimeoutExpired:
                server.kill()
                status = "killed"
            self.check("the server stops with status 0", status == 0, f"{status} {''.join(errors)[-2000:]}")

    def client(self, name, body, *arguments, limit=120):
        program = textwrap.dedent(PRELUDE) + textwrap.dedent(body)
        try:
            child = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=limit)
        except subprocess.TimeoutExpired:
            self.check(name, False, "timed out")
            return
        lines = child.stdout.strip().splitlines()
        try:
            counts = json.loads(lines[-1])
        except (IndexError, ValueError):
            self.check(name, False, f"status {child.returncode}: {child.stderr[-3000:]}")
            return
        for line in lines[:-1]:
            print(f"{name}: {line}", flush=True)
        self.passed += counts["passed"]
        self.failed += counts["failed"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--serdes", required=True)
    parser.add_argument("--host-plugin")
    arguments = parser.parse_args()
    try:
        import jaxlib.version
        from jaxlib import _ifrt_proxy  # noqa: F401
    except ImportError as error:
        print(f"no jaxlib with a proxy client here: skipped ({error})\n0 passed, 0 failed")
        return 0
    version = tuple(int(part) for part in jaxlib.version.__version__.split(".")[:3])
    run = Run(arguments.serdes, "host:devices=2")
    with run.server() as address:
        run.client("dtypes", DTYPES, address, limit=300)
        run.client("sharded", SHARDED, address)
        run.client("threads", THREADS, address)
        run.client("large", LARGE, address, limit=300)
        run.client("second session", SHARDED, address)
        run.client("initialization data", DATA, address)
    with run.server("--serdes", "0..2") as address:
        run.client("serdes 0..2", SHARDED, address)
    with run.server("--protocol", "16..16") as address:
        run.client("protocol 16", SHARDED, address)
    if version >= (0, 12, 0):
        with run.server("--serdes", "0..1") as address:
            run.client("serdes 0..1", REFUSED, address, "0..1", "2..")
    if version < (0, 9, 0):
        with run.server("--protocol", "20..25") as address:
            run.client("protocol 20..25", REFUSED, address, "20..25", "15..19")
    with tempfile.TemporaryDirectory() as directory:
        state = os.path.join(directory, "arrays.sds")
        with run.server("--state", state) as address:
            run.client("state", STATE, address)
        found = subprocess.run([run.serdes, "restore", state, "--json"], capture_output=True, text=True)
        # Older clients read through a shard of their own, which may still exist when they end.
        run.check("the state has both arrays", found.returncode == 0 and json.loads(found.stdout)["tensors"] >= 2, found.stdout + found.stderr)
        with run.server("--state", state) as address:
            run.client("state again", DATA, address)
    if arguments.host_plugin:
        os.environ["SERDES_HOST_PLUGIN"] = "devices=2"
        run.plugin = arguments.host_plugin
        with run.server() as address:
            run.client("a plug-in that was loaded", SHARDED, address)
    return run.end()


if __name__ == "__main__":
    sys.exit(main())
