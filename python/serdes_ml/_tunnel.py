"""The process that encrypts what jaxlib's client sends: how it is started, and where it listens."""

from __future__ import annotations

import json
import pathlib
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ._endpoint import Endpoint, Failure

# The processes that carry connections. Each ends with this one, when its standard input does.
_tunnels: list[subprocess.Popen[str]] = []


@contextmanager
def tunnel_to(endpoint: Endpoint, failure: Failure) -> Iterator[str]:
    """Start a process that carries connections to ``endpoint`` over TLS, and give its own target.

    The process stays for as long as this one, unless the block raises.

    Raises:
        Exception: what ``failure`` makes, if it does not start.
    """
    # A name that others cannot guess, in the namespace of sockets that have no file: gRPC sends
    # the name of a socket as the host of each request, and HTTP/2 allows no slash in a host.
    name = f"serdes-{secrets.token_hex(16)}"
    if not sys.platform.startswith("linux") or not sys.executable:
        raise failure(
            "jaxlib's client cannot encrypt, and the process that does it for it runs on Linux"
            " only; make a tunnel to the server (ssh -L), and connect to its end on this machine"
        )
    relay = pathlib.Path(__file__).with_name("_relay.py")
    process = subprocess.Popen(
        [sys.executable, "-I", str(relay)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        # Ctrl-C is for the program: it may still need its devices.
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    target = {
        "host": endpoint.host,
        "port": endpoint.port,
        "ca": _absolute(endpoint.ca),
        "cert": _absolute(endpoint.cert),
        "key": _absolute(endpoint.key),
        "socket": name,
    }
    process.stdin.write(json.dumps(target) + "\n")
    process.stdin.flush()
    if process.stdout.readline().strip() != "ready":
        process.kill()
        raise failure(
            f"the process that encrypts for {endpoint} did not start (status {process.wait()});"
            " its words are on standard error"
        )
    try:
        yield f"unix-abstract:{name}"
    except BaseException:
        process.kill()
        process.communicate()
        raise
    _tunnels.append(process)


def _absolute(file: str | None) -> str | None:
    return None if file is None else str(pathlib.Path(file).absolute())
