"""Carries the connections of jaxlib's client, which cannot encrypt, to a server over TLS.

A process of its own, started by `serdes_ml._connect` with the target as JSON on standard input: it
shares no lock with the interpreter that computes, and ends with it, when that input ends. It
listens on a socket of Linux's abstract namespace, and takes connections of its own user alone.
Nothing of the package is imported here, so that it starts at once.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import ssl
import struct
import sys
from contextlib import suppress
from typing import Any

CHUNK = 1 << 18
"""Bytes that are read at a time; about four frames of gRPC."""


def tls_context(ca: str | None, cert: str | None, key: str | None) -> ssl.SSLContext:
    """Return what verifies the server by ``ca``, or by the authorities of the system."""
    context = ssl.create_default_context(cafile=ca)
    if ca is not None:
        # An authority made with `openssl req -x509` does not say for what its key is, which Python
        # 3.13 refuses. Signatures, dates and hosts are verified all the same.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    # gRPC is spoken over HTTP/2, which both sides agree upon in the handshake.
    context.set_alpn_protocols(["h2"])
    if cert is not None:
        context.load_cert_chain(cert, key)
    return context


def _is_own(connection: Any) -> bool:
    """Return true if the process at the other end is of this user."""
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _, user, _ = struct.unpack("3i", found)
    return bool(user == os.getuid())


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(CHUNK):
            target.write(data)
            await target.drain()
    finally:
        target.close()


async def _serve(target: dict[str, Any]) -> None:
    context = tls_context(target["ca"], target["cert"], target["key"])

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not _is_own(writer.get_extra_info("socket")):
            writer.close()
            return
        try:
            host, port = target["host"], target["port"]
            there, to_there = await asyncio.open_connection(host, port, ssl=context, limit=CHUNK)
        except OSError:
            # The client sees its connection end, and tries again as it would without a relay.
            writer.close()
            return
        # A connection that breaks is the client's to see.
        await asyncio.gather(_pump(reader, to_there), _pump(there, writer), return_exceptions=True)

    server = await asyncio.start_unix_server(carry, "\0" + target["socket"], limit=CHUNK)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    async with server:
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    # Connections that are still open end with the process.
    os._exit(0)


def main() -> None:
    """Carry connections until standard input ends."""
    target = json.loads(sys.stdin.readline())
    with suppress(KeyboardInterrupt):
        asyncio.run(_serve(target))


if __name__ == "__main__":
    main()
