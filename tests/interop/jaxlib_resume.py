"""Tests that a client of JAX gets its named arrays back after its server was killed, and continues a training with equal results.

PYTHON tests/interop/jaxlib_resume.py --serdes PATH_OF_BINARY --extension PATH_OF_LIBSERDES_ML_NATIVE_SO [--cache FOLDER] [--plugin NAME]...

A loop of 200 steps calls `connection.save` on the way. The server writes its state at SIGHUP, continues, and is killed with SIGKILL, as is
the client. Another server and another client continue from `connection.arrays()`, and must get the same bits as a run without a break. A
server that is killed before it wrote its state again has the previous save. Shardings are restored. Ends with `N passed, N failed`; status
0 if nothing failed. Without jaxlib it says so and passes.
"""

import argparse
import contextlib
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

PACKAGE = pathlib.Path(__file__).parents[2] / "python" / "serdes_ml"

CLIENT = """
import sys
import numpy as np
from serdes_ml import jax as sdj
address, name, until, *saves = sys.argv[1:]
until, saves = int(until), set(map(int, saves))
connection = sdj.connect(address, name=name)
import jax, jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
mesh = Mesh(np.array(connection.devices()).reshape(2, 2), ("x", "y"))
target = jnp.asarray(np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8))

@jax.jit
def step(w, m, key):
    key, own = jax.random.split(key)
    noise = jax.random.normal(own, w.shape) * 0.01
    m = 0.9 * m + jax.grad(lambda w: jnp.sum((w - target + noise) ** 2))(w)
    return w - 0.01 * m, m, key

found = connection.arrays()
if found:
    number, (w, m), key = found["step"], found["model"]["params"], found["key"]
    assert w.sharding == NamedSharding(mesh, P("x", "y")), w.sharding
    assert found["model"]["name"] == "a" and found["none"] is None
    like = connection.arrays(like={"step": 0, "host": None})
    assert like == {"step": number, "host": None}, like
else:
    zeros = np.zeros((8, 8), np.float32)
    w, m = (jax.device_put(zeros, NamedSharding(mesh, P("x", "y"))) for _ in range(2))
    number, key = 0, jax.random.key(3)
print("begins at", number, flush=True)
while number < until:
    w, m, key = step(w, m, key)
    number += 1
    if number in saves:
        w, m = (jax.device_put(one, NamedSharding(mesh, P("x", "y"))) for one in (w, m))
        connection.save({"model": {"params": [w, m], "name": "a"}, "key": key, "step": number, "none": None})
        print("saved", number, flush=True)
        sys.stdin.readline()
print("ends with", np.asarray(w).tobytes().hex(), flush=True)
"""


class Run(Checks):
    def __init__(self, serdes, package, plugin, folder):
        super().__init__()
        self.serdes, self.plugin, self.state = serdes, plugin, os.path.join(folder, "arrays.sds")
        self.environment = {**os.environ, "PYTHONPATH": package, "TF_CPP_MIN_LOG_LEVEL": "3"}

    def start(self):
        command = [self.serdes, "serve", "--plugin", self.plugin, "--listen", "127.0.0.1:0", "--state", self.state]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        line = server.stdout.readline()
        if not line.startswith("listening on "):
            server.kill()
            raise RuntimeError(f"the server said {line!r}")
        return server, line.split()[-1]

    def client(self, address, name, until, *saves):
        command = [sys.executable, "-c", CLIENT, address, name, str(until), *map(str, saves)]
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        return subprocess.Popen(command, text=True, env=self.environment, **pipes)

    def hear(self, client, word):
        line = client.stdout.readline().strip()
        if not line.startswith(word):
            client.kill()
            raise RuntimeError(f"the client said {line!r} and not {word!r}: {client.stderr.read()[-3000:]}")
        return line.removeprefix(word).strip()

    def write_state(self, server):
        before = os.stat(self.state).st_ino if os.path.exists(self.state) else None
        server.send_signal(signal.SIGHUP)
        end = time.monotonic() + 30
        while not os.path.exists(self.state) or os.stat(self.state).st_ino == before:
            if time.monotonic() > end:
                raise RuntimeError("the server writes no state")
            time.sleep(0.02)

    def finish(self, client):
        """Waits for a client; returns the values at its end."""
        found = self.hear(client, "ends with")
        _, said = client.communicate(timeout=60)
        self.check("the client ends by itself", client.returncode == 0, f"{client.returncode} {said[-2000:]}")
        return found

    def run(self):
        server, address = self.start()
        unbroken = self.client(address, "unbroken", 200)
        self.hear(unbroken, "begins at")
        expected = self.finish(unbroken)
        client = self.client(address, "run", 200, 50, 100, 120)
        self.check("nothing is there before", self.hear(client, "begins at") == "0")
        self.hear(client, "saved")
        self.write_state(server)
        client.stdin.write("\n")
        client.stdin.flush()
        self.check("a second save", self.hear(client, "saved") == "100")
        self.write_state(server)
        client.stdin.write("\n")
        client.stdin.flush()
        self.check("a third, which is in no file", self.hear(client, "saved") == "120")
        server.kill()
        client.kill()
        server.wait()
        client.communicate()
        found = subprocess.run([self.serdes, "inspect", "--json", self.state], capture_output=True, text=True)
        names = [tensor["name"].partition("@")[0] for tensor in json.loads(found.stdout)["tensors"]]
        names = sorted(name for name in names if name.startswith("run.arrays/"))
        wanted = ["run.arrays/.index", "run.arrays/key", "run.arrays/model/params/0", "run.arrays/model/params/1"]
        self.check("one save is in the state, by its names", names == wanted, names)
        server, address = self.start()
        client = self.client(address, "run", 200, 150)
        self.check("it goes on where the file is", self.hear(client, "begins at") == "100")
        self.hear(client, "saved")
        client.stdin.write("\n")
        client.stdin.flush()
        self.check("the end is that of an unbroken run", self.finish(client) == expected)
        client = self.client(address, "run", 200)
        self.check("what one client saved another has", self.hear(client, "begins at") == "150")
        self.check("and comes to the same end", self.finish(client) == expected)
        server.send_signal(signal.SIGTERM)
        self.check("the server stops", server.wait(timeout=60) == 0, server.returncode)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--serdes", required=True)
    parser.add_argument("--extension", type=pathlib.Path, help="the extension module of the package, built")
    parser.add_argument("--host-plugin", help="not used: the same options for every script")
    default = pathlib.Path(os.environ.get("SERDES_CI_CACHE", pathlib.Path.home() / ".cache/serdes-ci")) / "pjrt"
    parser.add_argument("--cache", type=pathlib.Path, default=default, help="where packages are kept")
    parser.add_argument("--plugin", action="append", help="a package whose plug-in computes")
    arguments = parser.parse_args()
    hear_signals()
    if arguments.extension is None or not arguments.extension.exists():
        print("no extension of the Python package here: skipped\n0 passed, 0 failed")
        return 0
    try:
        import jaxlib.version  # noqa: F401
        import ml_dtypes  # noqa: F401
        from jaxlib import _ifrt_proxy  # noqa: F401
    except ImportError as error:
        print(f"no jaxlib with a proxy client here: skipped ({error})\n0 passed, 0 failed")
        return 0
    failed = passed = 0
    for package in arguments.plugin or ["fastatomstruct-xla-cpu"]:
        number = next(number for name, number, *_ in PLUGINS if name == package)
        plugin = download(arguments.cache / f"{package}-{number}", package, number)
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder) / "site" / "serdes_ml"
            root.mkdir(parents=True)
            for file in PACKAGE.iterdir():
                (root / file.name).symlink_to(file)
            with contextlib.suppress(FileNotFoundError):
                (root / "_native.abi3.so").unlink()
            (root / "_native.abi3.so").symlink_to(arguments.extension.absolute())
            run = Run(arguments.serdes, str(root.parent), f"{plugin}:cpu_device_count=4", folder)
            began = time.monotonic()
            run.run()
            print(f"{package}: {run.passed} passed in {time.monotonic() - began:.0f} s", flush=True)
            passed, failed = passed + run.passed, failed + run.failed
    print(f"{passed} passed, {failed} failed")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
