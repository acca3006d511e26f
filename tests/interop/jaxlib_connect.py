"""Tests `serdes_ml.jax.connect` with a real jaxlib and a real server: sessions, tokens, TLS, errors, and the end of processes.

PYTHON tests/interop/jaxlib_connect.py --serdes PATH_OF_BINARY [--host-plugin PATH_OF_SO] [--cache FOLDER] [--plugin NAME]

The modules are those of this tree, without the package's extension, which connecting does not need. Each group of checks runs in a process of
its own, which ends like a user's program: its status must be 0, and it must print no stack trace. Checks of TLS need the command `openssl`. Ends
with `N passed, N failed`; status 0 if nothing failed. Without jaxlib it says so and passes.
"""

import argparse
import contextlib
import http.server
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from checks import Checks, hear_signals
from pjrt_plugins import PLUGINS, download

PACKAGE = pathlib.Path(__file__).parents[2] / "python" / "serdes_ml"
TOKEN = "the-token-of-the-one-who-tests"

PRELUDE = f"""
import json, os, signal, sys, time, types
package = types.ModuleType("serdes_ml")
package.__path__ = [{str(PACKAGE)!r}]
sys.modules["serdes_ml"] = package
from serdes_ml._connect import SessionRefused, TokenRefused, Unreachable, VersionMismatch, connect
passed, failures = 0, []

def check(name, condition, detail=""):
    global passed
    if condition:
        passed += 1
    else:
        failures.append(f"{{name}}: {{detail}}")

def refused(name, kind, words, *arguments, within=15, **options):
    began = time.monotonic()
    try:
        connect(*arguments, **options)
    except Exception as error:
        check(name, type(error) is kind and all(word in str(error) for word in words), f"{{type(error).__name__}}: {{error}}")
    else:
        check(name, False, "connected")
    check(f"{{name}}: in time", time.monotonic() - began < within, time.monotonic() - began)

def say():
    print(json.dumps({{"passed": passed, "failures": failures}}), flush=True)

address, *rest = sys.argv[1:]
"""

SESSION = """
import numpy as np
connection = connect(address, name="run")
import jax, jax.numpy as jnp
check("devices", len(connection.devices()) == 4 and jax.devices() == connection.devices(), jax.devices())
check("platform", jax.default_backend() == connection.platform == "cpu", connection.platform)
check("server", "serdes" in connection.server, connection.server)
check("repr", repr(connection).startswith(f"<serdes_ml.jax.Connection to {address}: 4 cpu devices, serdes "), repr(connection))
check("repr has the name", "name 'run'" in repr(connection), repr(connection))
check("devices of its own", len(jax.devices("cpu")) >= 1 and jax.devices("cpu")[0] not in jax.devices())
step = jax.jit(lambda w: w - 0.1 * jax.grad(lambda w: jnp.sum((w - 3) ** 2))(w), donate_argnums=0)
w = jnp.zeros(8)
for _ in range(200):
    w = step(w)
check("200 steps", np.allclose(w, 3), w)
refused("a second connection", RuntimeError, ["close"], address)
kept = jnp.arange(5) * 2
connection.close()
connection.close()
check("closed", connection.closed and "closed" in repr(connection), repr(connection))
check("its own devices again", jax.devices() != connection.devices() and jax.devices()[0].platform == "cpu", jax.devices())
check("what was there is read", np.asarray(kept).tolist() == [0, 2, 4, 6, 8], kept)
check("it computes by itself", float(jax.jit(lambda a: a.sum())(np.ones(4))) == 4)
refused("devices that are there", RuntimeError, ["before anything asks"], address)
jax.extend.backend.clear_backends()
with connect(address) as connection:
    check("again", jax.jit(lambda a: a + 1)(np.zeros(3)).devices() <= set(connection.devices()))
jax.extend.backend.clear_backends()
connection = connect("grpc://" + address)
again = jax.jit(lambda a: a + 1)(np.zeros(3))
check("a third time", again.devices() <= set(connection.devices()))
say()
"""

TOKENS = """
wrong = "a-token-of-someone-else"
with_sessions, without = address, rest[0]
refused("no token", SessionRefused, ["token=", "log"], with_sessions)
refused("another token", SessionRefused, ["token", "log"], with_sessions, token=wrong)
refused("a server without session tokens", TokenRefused, ["--allow-session-token"], without, token=rest[1])
refused("a server without session tokens, no token", TokenRefused, ["token=", "--allow-session-token"], without)
check("no token is said", not any(wrong in failure or rest[1] in failure for failure in failures))
say()
"""

TOKEN_TAKEN = """
import jax, numpy as np
with connect(address, token=rest[0] + "\\n") as connection:
    check("a token", float(jax.jit(lambda a: a.sum())(np.ones(4))) == 4)
    check("repr has no token", rest[0] not in repr(connection))
say()
"""

UNREACHABLE = """
import jax
port = address.rpartition(":")[2]
refused("no server", Unreachable, ["serdes serve", "refused"], "127.0.0.1:1", timeout=0.5)
refused("no such host", Unreachable, ["no-such-host.invalid"], "no-such-host.invalid:7171")
refused("another protocol", Unreachable, ["HTTP/2"], rest[0])
refused("TLS with a plain server", Unreachable, ["TLS", "tls_ca"], f"https://localhost:{port}")
say()
"""

NAMED = """
connection = connect(address, name="run", keep_all=rest == ["all"])
import jax, numpy as np
kept = jax.block_until_ready(jax.device_put(np.arange(8, dtype=np.int32)))
check("put", np.asarray(kept).tolist() == list(range(8)), kept)
say()
"""

NO_ROOM = """
refused("no session free", SessionRefused, ["no session free", "log"], address)
say()
"""

VERSIONS = """
refused("versions", VersionMismatch, ["upgrade", *rest], address)
say()
"""

TLS = """
import numpy as np
authority, unknown, cert, key, token = rest
host, _, port = address.rpartition(":")
address, by_number = f"localhost:{port}", address
refused("a plain client", Unreachable, ["speaks TLS", "tls_ca="], address)
refused("another authority", Unreachable, ["not valid", unknown], address, tls_ca=unknown)
refused("another host", Unreachable, ["not valid"], by_number, tls_ca=authority)
refused("the system's authorities", Unreachable, ["not valid", "system"], "https://" + address)
refused("no certificate", Unreachable, ["tls_cert="], address, tls_ca=authority)
connection = connect(address, token=token, tls_ca=authority, tls_cert=cert, tls_key=key)
import jax
x = np.random.default_rng(1).integers(0, 255, 8 << 20, dtype=np.uint8)
check("8 MiB there and back", np.array_equal(np.asarray(jax.device_put(x)), x))
check("a program", float(jax.jit(lambda a: a.sum())(np.ones(4))) == 4)
from serdes_ml._tunnel import _tunnels
check("one relay", len(_tunnels) == 1, _tunnels)
print(_tunnels[0].pid, flush=True)
say()
"""

# The server is killed and restarted; the client continues from its values on the host.
KILLED = """
import numpy as np
connection = connect(address)
import jax
step = jax.jit(lambda w: w * 1.01 + 1)
w, kept = jax.device_put(np.zeros(4, np.float32)), None
for number in range(200):
    if number == 100:
        kept = number, np.array(w)
        print("kept", flush=True)
        sys.stdin.readline()
        try:
            np.asarray(step(w))
            check("the server is gone", False, "it answered")
        except jax.errors.JaxRuntimeError as error:
            check("the server is gone", "UNAVAILABLE" in str(error), error)
        connection.close()
        connection = connect(address)
        w = jax.device_put(kept[1])
    w = step(w)
expected = np.zeros(4, np.float32)
for _ in range(200):
    expected = expected * np.float32(1.01) + np.float32(1)
check("as without a break", np.allclose(w, expected, rtol=1e-5), (w, expected))
say()
"""


class Run(Checks):
    def __init__(self, serdes, plugin):
        super().__init__()
        self.serdes, self.plugin = serdes, plugin

    def start(self, *options, listen="127.0.0.1:0"):
        command = [self.serdes, "serve", "--plugin", self.plugin, "--listen", listen, *options]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        line = server.stdout.readline()
        if not line.startswith("listening on "):
            server.kill()
            raise RuntimeError(f"the server said {line!r}")
        return server, line.split()[-1]

    @contextlib.contextmanager
    def server(self, *options):
        server, address = self.start(*options)
        try:
            yield address
        finally:
            self.check("the server is alive", server.poll() is None)
            server.send_signal(signal.SIGTERM)
            try:
                server.wait(timeout=60)
            except subprocess.TimeoutExpired:
                server.kill()
            self.check("the server stops with status 0", server.wait() == 0, server.returncode)

    def client(self, code, *arguments):
        command = [sys.executable, "-c", PRELUDE + code, *arguments]
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        return subprocess.Popen(command, text=True, **pipes)

    def finish(self, name, client, goes_quietly=True, limit=180):
        """Adds a client's results to the counts, and returns the lines that it printed before them."""
        try:
            out, said = client.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            client.kill()
            out, said = client.communicate()
        self.check(f"{name}: ends by itself", client.returncode == 0, f"{client.returncode} {said[-2000:]}")
        if goes_quietly:
            lines = [line for line in said.splitlines() if "insecure client credentials" not in line]
            self.check(f"{name}: says nothing", not lines, "\n".join(lines)[-2000:])
        lines = out.splitlines()
        try:
            found = json.loads(lines[-1])
        except (IndexError, ValueError):
            self.check(name, False, f"no result: {said[-2000:]}")
            return []
        self.passed += found["passed"]
        for failure in found["failures"]:
            self.check(name, False, failure)
        return lines[:-1]


def certificates(folder):
    """Creates two authorities, and certificates of the first for a server and a client."""
    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    for name in ("authority", "unknown"):
        openssl("req", "-x509", *new, "-days", "2", "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.pem")
    for name in ("server", "client"):
        openssl("req", "-new", *new, "-subj", f"/CN={name}", "-addext", "subjectAltName=DNS:localhost", "-keyout", f"{name}.key", "-out", f"{name}.csr")
        openssl(
            "x509", "-req", "-in", f"{name}.csr", "-CA", "authority.pem", "-CAkey", "authority.key", "-copy_extensions", "copy",
            "-days", "2", "-out", f"{name}.pem",
        )


def tls(run, folder, tokens):
    certificates(folder)
    paths = {name: os.path.join(folder, name) for name in ("authority.pem", "unknown.pem", "client.pem", "client.key", "server.pem", "server.key")}
    options = ["--tls-cert", paths["server.pem"], "--tls-key", paths["server.key"], "--tls-client-ca", paths["authority.pem"]]
    with run.server(*options, "--token-file", tokens, "--allow-session-token") as address:
        given = [paths[name] for name in ("authority.pem", "unknown.pem", "client.pem", "client.key")]
        said = run.finish("TLS", run.client(TLS, address, *given, TOKEN))
        if said:
            end = time.monotonic() + 10
            while os.path.exists(f"/proc/{said[0]}") and time.monotonic() < end:
                time.sleep(0.05)
            run.check("the relay ends with its client", not os.path.exists(f"/proc/{said[0]}"))


def named(run, folder):
    """Tests that a session's arrays are in the server's state under its name only if all are to be kept."""
    for keep in (["all"], []):
        state = os.path.join(folder, f"arrays-{len(keep)}.sds")
        with run.server("--state", state) as address:
            run.finish("named", run.client(NAMED, address, *keep))
        found = subprocess.run([run.serdes, "inspect", "--json", state], capture_output=True, text=True)
        names = [tensor["name"] for tensor in json.loads(found.stdout)["tensors"]] if found.returncode == 0 else []
        has = [name for name in names if name.startswith("run/")]
        run.check(f"named: what the state has, {keep or 'without keep_all'}", bool(has) == bool(keep), (names, found.stderr))


def no_room(run):
    with run.server("--limit", "sessions=1") as address:
        first = run.client(NAMED.replace("say()", "print('open', flush=True); sys.stdin.readline(); say()"), address)
        run.check("no room: one is open", first.stdout.readline().strip() == "open")
        run.finish("no room", run.client(NO_ROOM, address), goes_quietly=False)
        run.finish("no room: the first", first)


def unreachable(run, address):
    """Tests addresses without a server, and a server that speaks only HTTP/1.1."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

    other = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=other.serve_forever, daemon=True).start()
    run.finish("unreachable", run.client(UNREACHABLE, address, f"127.0.0.1:{other.server_port}"))
    other.shutdown()


def killed(run):
    server, address = run.start()
    client = run.client(KILLED, address)
    run.check("killed: half way", client.stdout.readline().strip() == "kept")
    server.kill()
    server.wait()
    server, _ = run.start(listen=address)
    # Waits until the client was notified of the end, as a client that is busy would be.
    time.sleep(0.5)
    client.stdin.write("\n")
    client.stdin.flush()
    run.finish("killed", client, goes_quietly=False)
    server.send_signal(signal.SIGTERM)
    run.check("killed: the server stops", server.wait(timeout=60) == 0, server.returncode)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--serdes", required=True)
    parser.add_argument("--host-plugin", help="not used: the same options for every script")
    default = pathlib.Path(os.environ.get("SERDES_CI_CACHE", pathlib.Path.home() / ".cache/serdes-ci")) / "pjrt"
    parser.add_argument("--cache", type=pathlib.Path, default=default, help="where packages are kept")
    parser.add_argument("--plugin", default="fastatomstruct-xla-cpu", help="the package whose plug-in computes")
    arguments = parser.parse_args()
    hear_signals()
    try:
        import jaxlib.version
        from jaxlib import _ifrt_proxy  # noqa: F401
    except ImportError as error:
        print(f"no jaxlib with a proxy client here: skipped ({error})\n0 passed, 0 failed")
        return 0
    version = tuple(int(part) for part in jaxlib.version.__version__.split(".")[:2])
    number = next(number for package, number, *_ in PLUGINS if package == arguments.plugin)
    plugin = download(arguments.cache / f"{arguments.plugin}-{number}", arguments.plugin, number)
    run = Run(arguments.serdes, f"{plugin}:cpu_device_count=4")
    with tempfile.TemporaryDirectory() as folder:
        tokens = os.path.join(folder, "tokens")
        with open(os.open(tokens, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
            file.write(TOKEN + "\n")
        with run.server() as address:
            run.finish("session", run.client(SESSION, address))
            unreachable(run, address)
        named(run, folder)
        with run.server("--token-file", tokens, "--allow-session-token") as address, run.server("--token-file", tokens) as without:
            run.finish("a token", run.client(TOKEN_TAKEN, address, TOKEN))
            # The client of jaxlib 0.8 sometimes aborts its process if the server ends a session before it began.
            if version >= (0, 9):
                run.finish("tokens", run.client(TOKENS, address, without, TOKEN), goes_quietly=False)
        if shutil.which("openssl"):
            tls(run, folder, tokens)
        else:
            print("skipped: TLS, for there is no openssl here")
    if version >= (0, 12):
        with run.server("--serdes", "0..1") as address:
            run.finish("serdes 0..1", run.client(VERSIONS, address, "0..1", "upgrade the server"))
    if version < (0, 9):
        with run.server("--protocol", "20..25") as address:
            run.finish("protocol 20..25", run.client(VERSIONS, address, "20..25", "upgrade the client"))
    # It also aborts if the server of an open session ends.
    if version >= (0, 9):
        no_room(run)
        killed(run)
    return run.end()


if __name__ == "__main__":
    sys.exit(main())
