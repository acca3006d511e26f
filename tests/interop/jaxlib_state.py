"""Tests with a real JAX client that a server's state loses nothing that was saved.

PYTHON tests/interop/jaxlib_state.py --serdes PATH_OF_BINARY [--host-plugin PATH_OF_SO] [--kills N]

A client puts arrays, the server gets SIGHUP, the client leaves, the server stops: the arrays are in the state, and another server has them.
The server is killed at many moments of its saves: the state is the old or the new one, complete. The disk is full when the server stops: status 2, and the
old state is whole. Arrays that a client deletes leave the state, even those that another client named; those whose handles it drops stay. Ends with `N passed, N failed`; status 0 if nothing failed. Without jaxlib it says so and passes.
"""

import argparse
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time

from checks import Checks, hear_signals

CLIENT = r"""
import os, sys
os.environ["IFRT_PROXY_USE_INSECURE_GRPC_CREDENTIALS"] = "true"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import jax
from jax._src import xla_bridge
from jaxlib import _ifrt_proxy
address, name, count, elements = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
options = _ifrt_proxy.ClientConnectionOptions()
options.connection_timeout_in_seconds = 20
if name:
    options.initialization_data = {"serdes.state.name": name.encode()}
xla_bridge.register_backend_factory("proxy", lambda: _ifrt_proxy.get_client("grpc://" + address, options), priority=500)
jax.config.update("jax_platforms", "proxy")
backend = xla_bridge.get_backend("proxy")
arrays = [jax.device_put(np.full(elements, at + 1, dtype=np.int32), backend.devices()[at % 2]) for at in range(count)]
for array in arrays:
    array.block_until_ready()
print("ready", flush=True)
# By their numbers: those that are deleted, and those of which only the handles go.
order = sys.stdin.readline().split()
while order:
    for number in order[1:]:
        if order[0] == "delete":
            arrays[int(number)].delete()
        arrays[int(number)] = None
    # Handles go in batches, a moment later.
    import time
    time.sleep(0.2)
    print("done", flush=True)
    order = sys.stdin.readline().split()
os._exit(0)
"""


class Run(Checks):
    def __init__(self, serdes):
        super().__init__()
        self.serdes = serdes

    def serve(self, state, *options, **settings):
        command = [self.serdes, "serve", "--plugin", "host:devices=2", "--state", state, *options]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **settings)
        line = server.stdout.readline()
        if not line.startswith("listening on "):
            server.kill()
            raise RuntimeError(f"the server said {line!r} {server.stderr.read()}")
        return server, line.split()[-1]

    def client(self, address, name="", count=2, elements=1000):
        arguments = [sys.executable, "-c", CLIENT, address, name, str(count), str(elements)]
        client = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if client.stdout.readline().strip() != "ready":
            raise RuntimeError("the client did not come so far")
        return client

    def tell(self, client, order):
        client.stdin.write(order + "\n")
        client.stdin.flush()
        if client.stdout.readline().strip() != "done":
            raise RuntimeError(f"the client did not {order}")

    def leave(self, client):
        client.communicate("\n", timeout=60)

    def stop(self, server, limit=60):
        server.send_signal(signal.SIGTERM)
        try:
            _, said = server.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            server.kill()
            return "killed", server.communicate()[1]
        return server.returncode, said

    def tensors(self, state):
        """Returns the names in a state whose every byte was verified, or None if it is damaged."""
        judged = subprocess.run([self.serdes, "check", "--verify-data", "--json", state], capture_output=True, text=True)
        if judged.returncode != 0:
            return None
        found = subprocess.run([self.serdes, "inspect", "--json", state], capture_output=True, text=True)
        return sorted(tensor["name"] for tensor in json.loads(found.stdout)["tensors"])


def wait_for(condition, limit=60):
    end = time.monotonic() + limit
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def snapshot(run, folder):
    state = os.path.join(folder, "snapshot.sds")
    server, address = run.serve(state)
    client = run.client(address)
    server.send_signal(signal.SIGHUP)
    run.check("SIGHUP writes the state", wait_for(lambda: os.path.exists(state)))
    saved = run.tensors(state)
    run.check("both arrays are saved", saved is not None and len(saved) >= 2, saved)
    run.leave(client)
    named = run.client(address, "model")
    run.leave(named)
    status, said = run.stop(server)
    run.check("the stop ends with 0", status == 0, f"{status} {said}")
    after = run.tensors(state)
    run.check("what was saved is there after the stop", after is not None and set(saved) <= set(after), after)
    run.check("the arrays of a session with a name are kept", after is not None and "model/1" in after, after)
    server, address = run.serve(state)
    status, said = run.stop(server)
    run.check("another server takes nothing out", status == 0 and run.tensors(state) == after, said)


def deletions(run, folder):
    """Tests that `x.delete()` removes an array from the state, and that the end of a handle or a session does not."""
    for name, prefix in [("", "session-1"), ("model", "model")]:
        state = os.path.join(folder, f"deletions-{prefix}.sds")
        server, address = run.serve(state)
        client = run.client(address, name, count=4)

        def saved():
            before = os.stat(state).st_ino if os.path.exists(state) else None
            server.send_signal(signal.SIGHUP)
            wait_for(lambda: os.path.exists(state) and os.stat(state).st_ino != before)
            return run.tensors(state)

        names = [f"{prefix}/{number}" for number in range(1, 5)]
        found = saved()
        run.check(f"{prefix}: all are saved", found == names, found)
        run.tell(client, "delete 0")
        run.tell(client, "drop 1")
        found = saved()
        run.check(f"{prefix}: what was deleted is out, what was dropped is not", found == names[1:], found)
        run.tell(client, "delete 2")
        run.leave(client)
        status, said = run.stop(server)
        found = run.tensors(state)
        run.check(f"{prefix}: a stop takes out what was deleted", status == 0 and found == [names[1], names[3]], f"{found} {said}")


def kills(run, folder, count):
    """Runs rounds of a server with a state and a client, two saves, and a kill at some moment of the second."""
    state = os.path.join(folder, "kills.sds")
    server, address = run.serve(state)
    client = run.client(address, count=4, elements=1 << 18)
    server.send_signal(signal.SIGHUP)
    wait_for(lambda: os.path.exists(state))
    run.leave(client)
    run.stop(server)
    names = run.tensors(state)
    chance = random.Random(7)
    old = whole = 0
    for round in range(count):
        server, address = run.serve(state, "--keep", "2")
        before = os.stat(state).st_ino
        server.send_signal(chance.choice([signal.SIGHUP, signal.SIGHUP, signal.SIGTERM]))
        time.sleep(chance.random() * 0.08)
        server.kill()
        server.communicate()
        found = run.tensors(state)
        if found == names:
            whole += 1
        else:
            print(f"round {round}: {found}", flush=True)
        old += os.stat(state).st_ino == before
    run.check("every kill leaves a whole state", whole == count, f"{whole} of {count}")
    server, _ = run.serve(state, "--keep", "2")
    server.send_signal(signal.SIGHUP)
    ino = os.stat(state).st_ino
    wait_for(lambda: os.stat(state).st_ino != ino)
    status, said = run.stop(server)
    left = sorted(name for name in os.listdir(folder) if "kills.sds" in name)
    run.check("nothing else is left", status == 0 and set(left) <= {"kills.sds", "kills.sds.1", "kills.sds.2"}, f"{left} {said}")
    print(f"{count} kills: {old} left the old state, {count - old} the new one", flush=True)


def full(run, folder):
    """Tests a full disk when the server stops: a file system of its own if one may be mounted, else a limit on file sizes."""
    place, mounted, settings = os.path.join(folder, "full"), False, {}
    os.mkdir(place)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "serdes-state", place], capture_output=True).returncode == 0:
        mounted = True
    else:
        print("no file system can be mounted here: a limit on the length of files stands in for a full disk", flush=True)

        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (256 << 10, 256 << 10))

        settings["preexec_fn"] = limit
    try:
        state = os.path.join(place, "x.sds")
        server, address = run.serve(state, **settings)
        first = run.client(address, "small")
        server.send_signal(signal.SIGHUP)
        run.check("there is room for the first save", wait_for(lambda: os.path.exists(state)))
        before = run.tensors(state)
        large = run.client(address, "large", elements=1 << 18)
        status, said = run.stop(server)
        run.check("a stop without room ends with 2", status == 2, f"{status} {said}")
        run.check("and says why", "No space left" in said or "File too large" in said, said)
        run.check("the state before is whole", before is not None and run.tensors(state) == before, before)
        left = os.listdir(place)
        run.check("no part of a file is left", left == ["x.sds"], left)
        for client in (first, large):
            run.leave(client)
    finally:
        if mounted:
            subprocess.run(["umount", place], check=True)


def hurry(run, folder):
    """Tests a second signal during the stop."""
    state = os.path.join(folder, "hurry.sds")
    server, address = run.serve(state)
    client = run.client(address, "model")
    server.send_signal(signal.SIGSTOP)
    server.send_signal(signal.SIGTERM)
    server.send_signal(signal.SIGCONT)
    time.sleep(0.1)
    server.send_signal(signal.SIGINT)
    try:
        server.wait(timeout=10)
        ended = True
    except subprocess.TimeoutExpired:
        server.kill()
        ended = False
    run.check("a second signal ends the server", ended)
    server.communicate()
    found = run.tensors(state) if os.path.exists(state) else []
    run.check("the state is whole or not there", found is not None, found)
    run.leave(client)


def main():
    hear_signals()
    parser = argparse.ArgumentParser()
    parser.add_argument("--serdes", required=True)
    parser.add_argument("--host-plugin")
    parser.add_argument("--kills", type=int, default=12)
    arguments = parser.parse_args()
    try:
        from jaxlib import _ifrt_proxy  # noqa: F401
    except ImportError as error:
        print(f"no jaxlib with a proxy client here: skipped ({error})\n0 passed, 0 failed")
        return 0
    run = Run(arguments.serdes)
    with tempfile.TemporaryDirectory() as folder:
        snapshot(run, folder)
        deletions(run, folder)
        kills(run, folder, arguments.kills)
        full(run, folder)
        hurry(run, folder)
    return run.end()


if __name__ == "__main__":
    sys.exit(main())
