"""Untrusted clients flood `serdes serve`, one attack after the other, while honest clients work: no attack may delay these, fill the memory of
the machine, or end the server.

PYTHON tests/interop/untrusted_clients.py --serdes PATH_OF_BINARY [--full] [--host-plugin PATH_OF_SO]

Untrusted clients come from other addresses of the loopback than the honest clients (Linux has 127.0.0.0/8) and run at the lowest priority, as if
they were other machines. Honest clients: one that implements HTTP/2 itself (a call on a connection that it keeps, and one on a new
connection) and, if jaxlib is installed, a real one that puts an array and reads it back. Memory and life of the server are hard limits
in both forms. Latencies are compared with those before the attacks: because machines are busy, the short form only detects a client that
waits for seconds; the full form allows twice the 99th percentile, or the cost of the attack's use of the same processor if that is
more (see LATENCY).

Ends with `N passed, N failed`; status 0 if nothing failed.
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import textwrap
import threading
import time

from checks import Checks, hear_signals

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 8, 9
END_STREAM, END_HEADERS, ACK = 1, 4, 1
SERVICE = "/xla.ifrt.proxy.GrpcIfrtService/"
HEALTH = "/grpc.health.v1.Health/"
# The address of the metrics, which main() sets before it starts the clients.
METRICS = None
TOKEN = "a-token-of-the-honest"
# The token of untrusted clients: without one, their first call would be refused.
THEIRS = "a-token-of-the-others"
# Limit on the server's address space in bytes, which reveals allocations for data that is only announced.
ADDRESS_SPACE = 6 << 30
# Memory that the server may use besides its limits: the program, its threads, and the state of connections.
RESIDENT = 384 << 20
LIMITS = ["host-bytes=64M", "pinned-bytes=64M", "array-bytes=64M", "handshake-seconds=5"]
# Limits on the 99th percentile: a factor of the value without an attack, and seconds that are always allowed.
LATENCY = {False: (20, 3.0), True: (2, 0.05)}


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def text(value):
    """Encodes a string of HPACK without compression."""
    if len(value) < 127:
        return bytes([len(value)]) + value
    length, more = len(value) - 127, b""
    while length >= 128:
        more += bytes([length % 128 + 128])
        length //= 128
    return b"\x7f" + more + bytes([length]) + value


def headers(path, token=THEIRS, **more):
    path = path if path.startswith("/") else SERVICE + path
    fields = [(":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "server"),
              ("content-type", "application/grpc"), ("te", "trailers")]
    if token:
        fields.append(("authorization", "Bearer " + token))
    fields += [(name.replace("_", "-"), value) for name, value in more.items()]
    return b"".join(b"\x00" + text(name.encode()) + text(value if isinstance(value, bytes) else value.encode()) for name, value in fields)


def message(payload, announced=None):
    return b"\x00" + struct.pack(">I", len(payload) if announced is None else announced) + payload


def varint(number):
    out = b""
    while number >= 128:
        out += bytes([number % 128 + 128])
        number //= 128
    return out + bytes([number])


def connect(address, source="127.0.0.2", timeout=5):
    stream = socket.socket()
    stream.settimeout(timeout)
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    stream.bind((source, 0))
    stream.connect(address)
    return stream


def greet(address, source="127.0.0.2", timeout=5):
    stream = connect(address, source, timeout)
    stream.sendall(PREFACE + frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 1 << 24)) + frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1 << 28)))
    return stream


class Connection:
    """A connection of HTTP/2, read frame by frame."""

    def __init__(self, address, source, timeout=20):
        self.stream = greet(address, source, timeout)
        self.buffer = b""
        self.next = 1
        # Bytes that the server permits on the connection.
        self.room = 65535

    def read(self, count):
        while len(self.buffer) < count:
            more = self.stream.recv(1 << 16)
            if not more:
                raise ConnectionError("the server has closed the connection")
            self.buffer += more
        out, self.buffer = self.buffer[:count], self.buffer[count:]
        return out

    def frame(self):
        head = self.read(9)
        length, kind, flags, stream = int.from_bytes(head[:3], "big"), head[3], head[4], int.from_bytes(head[5:], "big")
        payload = self.read(length)
        if kind == SETTINGS and not flags & ACK:
            self.stream.sendall(frame(SETTINGS, ACK, 0))
        if kind == PING and not flags & ACK:
            self.stream.sendall(frame(PING, ACK, 0, payload))
        if kind == WINDOW_UPDATE and stream == 0:
            self.room += int.from_bytes(payload, "big")
        if kind == DATA and payload:
            self.stream.sendall(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", len(payload))))
        return kind, flags, stream, payload

    def call(self, path, payload, ends=True, **more):
        """Sends a call with one message; returns its stream."""
        number, self.next = self.next, self.next + 2
        self.stream.sendall(frame(HEADERS, END_HEADERS, number, headers(path, **more)) + frame(DATA, END_STREAM if ends else 0, number, message(payload)))
        return number

    def answer(self, number):
        """Returns the bytes of a stream's first message, when it has arrived or the stream has ended."""
        body = b""
        while True:
            kind, flags, stream, payload = self.frame()
            if stream != number:
                continue
            if kind == DATA:
                body += payload
                if len(body) >= 5 and len(body) >= 5 + int.from_bytes(body[1:5], "big"):
                    return body[5:]
            if kind == RST_STREAM or (kind in (DATA, HEADERS) and flags & END_STREAM):
                return body[5:]

    def get_version(self):
        """Makes one handshake of the proxy; returns True if it was answered."""
        return bool(self.answer(self.call("GetVersion", bytes.fromhex("0a020810120408191003"), token=TOKEN)))

    def session(self, **more):
        """Opens a session; returns its id."""
        metadata = b"\x0a\x04\x08\x19\x10\x03\x12\x00"
        number = self.call("IfrtSession", bytes.fromhex("0a09090100000000000000" "1200"), ends=False,
                           ifrt_proxy_grpc_ifrt_session_metadata_bin=base64(metadata), **more)
        answer = self.answer(number)
        # IfrtResponse.init_response, and session_id in it.
        return field(field(answer, 2), 8)


def base64(value):
    import base64 as library
    return library.b64encode(value).rstrip(b"=")


def field(data, wanted):
    """Returns the first field with a number in a message."""
    at = 0
    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(data):
        key = number()
        if key & 7 == 0:
            value = number()
        elif key & 7 == 1:
            value = int.from_bytes(data[at:at + 8], "little")
            at += 8
        elif key & 7 == 2:
            length = number()
            value = data[at:at + length]
            at += length
        else:
            value = int.from_bytes(data[at:at + 4], "little")
            at += 4
        if key >> 3 == wanted:
            return value
    return None


# --- the attacks. Each takes the server's address and an amount, and runs until it is killed.

def rest():
    while True:
        time.sleep(1)


def member(number, value):
    """Encodes a field of a message: fixed64 for a number, else bytes."""
    if isinstance(value, int):
        return varint(number << 3 | 1) + value.to_bytes(8, "little")
    return varint(number << 3 | 2) + varint(len(value)) + value


def spend(stream, data, times):
    """Sends the same data many times, as fast as the server reads it."""
    stream.settimeout(1)
    for _ in range(times):
        try:
            stream.sendall(data)
        except OSError:
            return


def many_connections(address, amount):
    """Opens connections that send nothing."""
    held = []
    for at in range(amount):
        with contextlib.suppress(OSError):
            held.append(connect(address, f"127.0.0.{2 + at % 4}"))
    rest()


def health_watches(address, amount):
    """Opens watches of the health without a token, and keeps them."""
    held = []
    for at in range(amount):
        with contextlib.suppress(OSError):
            stream = greet(address, f"127.0.0.{2 + at % 4}")
            block = headers(HEALTH + "Watch", token=None)
            stream.sendall(b"".join(frame(HEADERS, END_HEADERS, number, block) + frame(DATA, END_STREAM, number, message(b"")) for number in range(1, 65, 2)))
            held.append(stream)
    rest()


def health_checks(address, amount):
    """Sends endless queries of the health, some with long names or garbage."""
    bodies = [b"", b"\x0a" + varint(1000) + b"x" * 1000, b"\xff" * 100, b"\x0a\xff\xff\xff\xff\x0f"]
    while True:
        with contextlib.suppress(OSError, ConnectionError):
            connection = Connection(address, "127.0.0.2")
            for at in range(amount):
                connection.answer(connection.call(HEALTH + "Check", bodies[at % len(bodies)], token=None))


def metrics_without_a_word(address, amount):
    """Opens connections to the metrics that send nothing, or half a request."""
    while True:
        held = []
        for at in range(amount):
            with contextlib.suppress(OSError):
                stream = connect(METRICS, f"127.0.0.{2 + at % 4}")
                if at % 2:
                    stream.sendall(b"GET /metrics HTTP/1.1\r\nHost: ")
                held.append(stream)
        time.sleep(1)


def metrics_garbage(address, amount):
    """Sends invalid requests to the metrics: endless headers, bodies, other protocols, files of the machine."""
    texts = [b"\x16\x03\x01\x02\x00" + bytes(512), PREFACE + frame(SETTINGS, 0, 0), b"GET /metrics HTTP/1.1\r\n" + b"a: " + b"b" * 200_000,
             b"POST /metrics HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + b"ffffffff\r\n" + bytes(100_000),
             b"GET /metrics HTTP/1.1\r\n" + b"a: b\r\n" * 50_000, b"GET /../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n", b"\r\n" * 100_000]
    while True:
        for text in texts:
            with contextlib.suppress(OSError):
                stream = connect(METRICS)
                stream.sendall(text)
                if b"root:" in stream.recv(1 << 16):
                    os.kill(os.getppid(), signal.SIGINT)


def again_and_again(address, amount):
    """Opens and closes connections."""
    while True:
        with contextlib.suppress(OSError):
            connect(address).close()


def announced_messages(address, amount):
    """Announces messages of 511 MiB and sends none of them."""
    held = []
    for _ in range(max(1, amount // 100)):
        stream = greet(address)
        for number in range(1, 200, 2):
            with contextlib.suppress(OSError):
                stream.sendall(frame(HEADERS, END_HEADERS, number, headers("IfrtSession", ifrt_proxy_grpc_ifrt_session_metadata_bin=base64(b"\x0a\x04\x08\x19\x10\x03")))
                               + frame(DATA, 0, number, message(b"", 511 << 20)))
        held.append(stream)
    rest()


def half_messages(address, amount):
    """Sends large messages that stop in the middle: as many bytes as the server accepts."""
    held = []
    for _ in range(6):
        connection = Connection(address, "127.0.0.2")
        connection.session()
        connection.stream.sendall(frame(DATA, 0, 1, message(b"\x6a" + varint(510 << 20), 511 << 20)))
        connection.stream.settimeout(0.05)
        # The initial window of a stream.
        connection.credit = 400 << 10
        held.append(connection)
    piece = frame(DATA, 0, 1, bytes(16384))
    while True:
        for connection in held:
            # Sends only what the server permits, because it would end the connection otherwise.
            with contextlib.suppress(OSError, ConnectionError):
                kind, _, stream, payload = connection.frame()
                if kind == WINDOW_UPDATE and stream == 1:
                    connection.credit += int.from_bytes(payload, "big")
            while connection.credit >= 16384:
                with contextlib.suppress(OSError):
                    connection.stream.sendall(piece)
                connection.credit -= 16384


def announced_stores(address, amount):
    """Opens sessions that announce host buffers of the maximum size, and send one byte of each."""
    held = []
    for at in range(max(4, amount // 50)):
        with contextlib.suppress(OSError, ConnectionError, TypeError):
            connection = Connection(address, "127.0.0.2")
            session = connection.session()
            for handle in range(4):
                metadata = b"\x09" + session.to_bytes(8, "little") + b"\x11" + (handle + 1).to_bytes(8, "little") + b"\x18" + varint(16 << 20)
                number, connection.next = connection.next, connection.next + 2
                connection.stream.sendall(frame(HEADERS, END_HEADERS, number, headers("HostBufferStore", ifrt_proxy_grpc_host_buffer_store_metadata_bin=base64(metadata)))
                                          + frame(DATA, 0, number, message(b"\x0a\x01x")))
            held.append(connection)
    rest()


def small_transfer(number, request, data=b""):
    """Encodes a message of the stream of small arrays: a request, by its number in IfrtRequest, with the bytes of its host buffer."""
    metadata = member(1, number)
    return message(member(1, member(1, metadata) + request) + (member(2, data) if data else b""))


def small_transfers(address, amount):
    """Opens streams of small arrays and never reads the answers: kept arrays, copies of them, garbage, and announced lengths without data."""
    size = 60 << 10
    device = member(1, member(1, b"xla::ifrt::SingleDeviceSharding"))
    last = [message(b"", 511 << 20), message(b"", 100 << 10) + bytes(5000), message(b"\xff" * 1000),
            small_transfer(1, member(2, b"")), small_transfer(1 << 63, member(4, b"")), small_transfer(1, member(6, member(1, 7) + member(2, 7)))]
    while True:
        held = []
        for at in range(max(6, amount // 100)):
            with contextlib.suppress(OSError, ConnectionError, TypeError):
                connection = Connection(address, f"127.0.0.{2 + at % 4}")
                session = connection.session()
                # From here on the window lets the server send some answers to requests that put arrays, but no array.
                connection.stream.sendall(frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 1000)))
                metadata = member(1, session)
                for stream in range(connection.next, connection.next + 2 * 8, 2):
                    out = frame(HEADERS, END_HEADERS, stream, headers("/serdes.proxy.SmallTransfers/Transfer",
                                ifrt_proxy_grpc_host_buffer_store_metadata_bin=base64(metadata)))
                    # Five fit into the initial window of a stream.
                    for number in range(stream * 100, stream * 100 + 5):
                        making = (member(1, b"\x08\x06") + member(2, member(1, varint(size))) + member(3, device) + member(4, number)
                                  + member(6, number))
                        for body in (small_transfer(2 * number, member(4, making), bytes(size)),
                                     small_transfer(2 * number + 1, member(6, member(1, 1 << 40 | number) + member(2, number)))):
                            out += b"".join(frame(DATA, 0, stream, body[start:start + 16384]) for start in range(0, len(body), 16384))
                    body = last[stream // 2 % len(last)]
                    connection.stream.sendall(out + frame(DATA, 0, stream, body[:16384]))
                held.append(connection)
        time.sleep(0.5)


def keep_message(name, arrays, previous=b""):
    """Encodes the message of a call that keeps arrays: their handles and names."""
    entries = b"".join(member(2, b"\x08" + varint(handle) + member(2, array)) for handle, array in arrays)
    return member(1, name) + entries + (member(3, previous) if previous else b"")


def keeps(address, amount):
    """Keeps arrays in the state without end: one array under very many names, invalid names and names of other clients, interrupted calls."""
    path = "/serdes.proxy.State/Keep"
    # Names of one array, and as many empty entries as a request may have (request-bytes).
    many = 20_000
    bodies = [keep_message(b"run", [(1, b"run/%d" % at) for at in range(many)]), member(1, b"run") + b"\x12\x00" * 1_900_000,
              keep_message(b"run", [(1, b"run/" + b"x" * 3_000_000)]), keep_message(b"", [(1, b"/x")]), keep_message(b"run", [(1, b"run/\xff")]),
              keep_message(b"run", [(1, b"run/../../w")] * 2), keep_message(b"honest", [(1, b"honest/w")], TOKEN.encode() + b"?"),
              keep_message(b"run", [(1 << 63 | 7, b"run/w")]), b"\xff" * 1000]
    number = 0
    while True:
        for source in range(2, 6):
            with contextlib.suppress(OSError, ConnectionError, TypeError):
                connection = Connection(address, f"127.0.0.{source}")
                session = connection.session()
                metadata = {"ifrt_proxy_grpc_host_buffer_store_metadata_bin": base64(member(1, session))}
                device = member(1, member(1, b"xla::ifrt::SingleDeviceSharding"))
                stream, connection.next = connection.next, connection.next + 2
                making = member(1, b"\x08\x06") + member(2, member(1, varint(4096))) + member(3, device) + member(4, 1) + member(6, 1)
                connection.stream.sendall(frame(HEADERS, END_HEADERS, stream, headers("/serdes.proxy.SmallTransfers/Transfer", **metadata))
                                          + frame(DATA, 0, stream, small_transfer(2, member(4, making), bytes(4096))))
                connection.answer(stream)
                for at in range(max(8, amount // 50)):
                    number += 1
                    # A new name each time, so that the kept arrays accumulate.
                    body = (bodies[number % len(bodies)] if at % 2 else
                            keep_message(b"%d" % number, [(1, b"%d/%d" % (number, name)) for name in range(500)]))
                    send_in_windows(connection, path, body, cut=at % 5 == 4, **metadata)


def send_in_windows(connection, path, body, cut, **more):
    """Sends a call within the server's windows, or half of it, and does not wait for its answer."""
    stream, connection.next = connection.next, connection.next + 2
    data = message(body)
    data = data[:len(data) // 2] if cut else data
    connection.stream.sendall(frame(HEADERS, END_HEADERS, stream, headers(path, **more)))
    # The initial window of a stream.
    credit, at = 400 << 10, 0
    while at < len(data):
        while min(credit, connection.room) < 16384:
            kind, flags, number, payload = connection.frame()
            if number == stream and (kind == RST_STREAM or flags & END_STREAM and kind in (HEADERS, DATA)):
                return
            if kind == WINDOW_UPDATE and number == stream:
                credit += int.from_bytes(payload, "big")
        piece = data[at:at + 16384]
        at, credit, connection.room = at + len(piece), credit - len(piece), connection.room - len(piece)
        connection.stream.sendall(frame(DATA, END_STREAM if at >= len(data) and not cut else 0, stream, piece))
    if cut:
        connection.stream.sendall(frame(RST_STREAM, 0, stream, struct.pack(">I", 8)))


def idle_sessions(address, amount):
    """Opens sessions that send nothing after their first request."""
    held = []
    for _ in range(5):
        connection = Connection(address, "127.0.0.2")
        held.append(connection)
        for _ in range(max(1, amount // 11)):
            with contextlib.suppress(OSError, ConnectionError, TypeError):
                connection.session()
    rest()


def settings(address, amount):
    """Sends endless SETTINGS."""
    while True:
        spend(greet(address), frame(SETTINGS, 0, 0, struct.pack(">HI", 3, 100)) * 1000, amount)


def pings(address, amount):
    """Sends endless PINGs."""
    while True:
        spend(greet(address), frame(PING, 0, 0, bytes(8)) * 1000, amount)


def rapid_reset(address, amount):
    """Sends calls and cancels them at once."""
    while True:
        with contextlib.suppress(OSError):
            stream = greet(address)
            block = headers("GetVersion")
            for start in range(1, 2 * amount, 200):
                stream.sendall(b"".join(frame(HEADERS, END_HEADERS, number, block) + frame(RST_STREAM, 0, number, struct.pack(">I", 8))
                                        for number in range(start, start + 200, 2)))


def continuations(address, amount):
    """Sends headers that do not end."""
    while True:
        with contextlib.suppress(OSError):
            stream = greet(address)
            stream.sendall(frame(HEADERS, 0, 1, headers("GetVersion")))
            spend(stream, frame(CONTINUATION, 0, 1, b"\x00" + text(b"x") + text(bytes(100))) * 100, amount)


def empty_data(address, amount):
    """Sends bodies of empty frames."""
    while True:
        with contextlib.suppress(OSError):
            stream = greet(address)
            stream.sendall(frame(HEADERS, END_HEADERS, 1, headers("GetVersion")))
            spend(stream, frame(DATA, 0, 1) * 1000, amount)


def slow_bodies(address, amount):
    """Sends bodies slowly, byte by byte."""
    held = []
    for _ in range(max(10, amount // 4)):
        with contextlib.suppress(OSError):
            stream = greet(address)
            stream.sendall(frame(HEADERS, END_HEADERS, 1, headers("GetVersion")))
            held.append(stream)
    while True:
        for stream in held:
            with contextlib.suppress(OSError):
                stream.sendall(frame(DATA, 0, 1, b"\x00"))
        time.sleep(0.5)


def wrong_tokens(address, amount):
    """Guesses tokens."""
    while True:
        with contextlib.suppress(OSError):
            stream = greet(address)
            for number in range(1, 200, 2):
                stream.sendall(frame(HEADERS, END_HEADERS | END_STREAM, number, headers("GetVersion", token=f"guess-{number}")))


def garbage(address, amount):
    """Sends data that is not HTTP/2."""
    while True:
        with contextlib.suppress(OSError):
            stream = greet(address)
            spend(stream, os.urandom(1 << 16), 20)


ATTACKS = [many_connections, again_and_again, announced_messages, half_messages, announced_stores, small_transfers, keeps, idle_sessions, settings, pings,
           rapid_reset, continuations, empty_data, slow_bodies, wrong_tokens, garbage,
           health_watches, health_checks, metrics_without_a_word, metrics_garbage]
JAX = textwrap.dedent(r"""
    import os, sys, json, time
    os.environ["IFRT_PROXY_USE_INSECURE_GRPC_CREDENTIALS"] = "true"
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import numpy as np
    import jax
    from jax._src import xla_bridge
    from jaxlib import _ifrt_proxy
    address, token = sys.argv[1:]
    options = _ifrt_proxy.ClientConnectionOptions()
    options.connection_timeout_in_seconds = 20
    options.initialization_data = {"serdes.token": token.encode()}
    xla_bridge.register_backend_factory("proxy", lambda: _ifrt_proxy.get_client("grpc://" + address, options), priority=500)
    jax.config.update("jax_platforms", "proxy")
    device = xla_bridge.get_backend("proxy").devices()[0]
    print("ready", flush=True)
    number = 0
    while True:
        x = np.arange(number, number + 256, dtype=np.float32)
        start = time.monotonic()
        y = np.asarray(jax.device_put(x, device))
        end = time.monotonic()
        assert (x == y).all()
        print(json.dumps(["jax", start, end - start]), flush=True)
        number += 1
        time.sleep(0.01)
""")


def page(metrics):
    """Returns the page of the metrics, as a scraper gets it."""
    with connect(metrics, "127.0.0.1", 20) as stream:
        stream.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answer = b""
        while more := stream.recv(1 << 16):
            answer += more
    return answer


def honest(address, results):
    """Measures a call on a kept connection, a call on a new one, the health and the metrics."""
    kept = Connection(address, "127.0.0.1")
    while True:
        for what in ("call", "connection", "health", "metrics"):
            start = time.monotonic()
            try:
                if what == "call":
                    good = kept.get_version()
                elif what == "metrics":
                    good = page(METRICS).startswith(b"HTTP/1.1 200 ")
                elif what == "health":
                    fresh = Connection(address, "127.0.0.1")
                    # ServingStatus: SERVING.
                    good = field(fresh.answer(fresh.call(HEALTH + "Check", b"", token=None)), 1) == 1
                    fresh.stream.close()
                else:
                    fresh = Connection(address, "127.0.0.1")
                    good = fresh.get_version()
                    fresh.stream.close()
            except (OSError, ConnectionError) as error:
                good = False
                results.send([what, start, f"{type(error).__name__}: {error}"])
                with contextlib.suppress(OSError, ConnectionError):
                    kept = Connection(address, "127.0.0.1")
            if good:
                results.send([what, start, time.monotonic() - start])
        time.sleep(0.01)


def attack(function, address, amount):
    os.nice(19)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with contextlib.suppress(OSError, ConnectionError):
        function(address, amount)
    rest()


def percentile(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * part))]


class Run(Checks):
    def __init__(self, options):
        super().__init__()
        self.options = options
        self.samples = []
        self.lock = threading.Lock()

    def collect(self, read):
        def loop():
            with contextlib.suppress(EOFError, OSError, ValueError):
                while True:
                    sample = read()
                    with self.lock:
                        self.samples.append(sample)
        threading.Thread(target=loop, daemon=True).start()

    def window(self, start, end):
        """Returns the samples that began in a period, by kind: latencies, and errors."""
        with self.lock:
            found = [sample for sample in self.samples if start <= sample[1] < end]
        kinds = {}
        for kind, _, value in found:
            good, bad = kinds.setdefault(kind, ([], []))
            (good if isinstance(value, float) else bad).append(value)
        return kinds


def resident(process, what="VmHWM"):
    with open(f"/proc/{process.pid}/status") as status:
        for line in status:
            if line.startswith(what):
                return int(line.split()[1]) * 1024
    return 0


def serve(options, tokens, folder):
    limits = [part for limit in LIMITS for part in ("--limit", limit)]
    command = [options.serdes, "serve", "--plugin", "host:devices=2,memory=33554432", "--token-file", tokens, "--allow-session-token", "--metrics", "0",
               "--state", os.path.join(folder, "state.sds"), *limits]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE)))
    errors = []
    threading.Thread(target=lambda: errors.extend(server.stderr), daemon=True).start()
    line = server.stdout.readline()
    if not line.startswith("listening on "):
        server.kill()
        raise RuntimeError(f"the server said {line!r} {errors}")
    host, port = line.split()[-1].rsplit(":", 1)
    metrics = server.stdout.readline().split("//")[1].split("/")[0].rsplit(":", 1)
    return server, (host, int(port)), (metrics[0], int(metrics[1])), errors


def start_jax(address):
    if subprocess.run([sys.executable, "-c", "import jaxlib"], capture_output=True).returncode:
        print("no jaxlib here: only the client of this script is honest")
        return None
    child = subprocess.Popen([sys.executable, "-c", JAX, f"{address[0]}:{address[1]}", TOKEN], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    if child.stdout.readline().strip() != "ready":
        child.kill()
        raise RuntimeError("the client of jaxlib does not connect")
    return child


def phase(run, name, seconds, quiet):
    """Compares the latencies of a period with those of the quiet one, if there was one; returns them."""
    start = time.monotonic()
    time.sleep(seconds)
    # Samples that began late in the period may end after it.
    end = time.monotonic()
    time.sleep(0.3)
    kinds = run.window(start, end)
    factor, allowed = LATENCY[run.options.full]
    line = []
    for kind in sorted(quiet or kinds):
        good, bad = kinds.get(kind, ([], []))
        run.check(f"{name}: {kind} is served", good and not bad, f"{len(good)} good, {bad[:3]}")
        if not good:
            continue
        p50, p99 = percentile(good, 0.5), percentile(good, 0.99)
        line.append(f"{kind} {1000 * p50:.1f}/{1000 * p99:.1f} ms ({len(good)})")
        if quiet:
            most = max(factor * quiet[kind], allowed)
            run.check(f"{name}: {kind} does not wait", p99 <= most, f"p99 {1000 * p99:.1f} ms; quiet {1000 * quiet[kind]:.1f} ms")
    print(f"{name:20} p50/p99: {', '.join(line)}", flush=True)
    return {kind: percentile(good, 0.99) for kind, (good, _) in kinds.items() if good}


def main():
    hear_signals()
    parser = argparse.ArgumentParser()
    parser.add_argument("--serdes", required=True)
    parser.add_argument("--host-plugin")
    parser.add_argument("--full", action="store_true", default=bool(os.environ.get("SERDES_FULL")))
    options = parser.parse_args()
    run = Run(options)
    amount, seconds = (10_000, 10) if options.full else (400, 1.5)
    tokens = tempfile.NamedTemporaryFile("w", suffix=".tokens")
    tokens.write(f"{TOKEN}\n{THEIRS} # of untrusted clients\n")
    tokens.flush()
    folder = tempfile.TemporaryDirectory()
    global METRICS
    server, address, METRICS, errors = serve(options, tokens.name, folder.name)
    children = []
    try:
        receiver, sender = multiprocessing.Pipe(False)
        client = multiprocessing.Process(target=honest, args=(address, sender), daemon=True)
        client.start()
        children.append(client)
        run.collect(receiver.recv)
        jax = start_jax(address)
        if jax:
            children.append(jax)
            run.collect(lambda: json.loads(jax.stdout.readline()))
        time.sleep(0.5)
        quiet = phase(run, "quiet", 2 * seconds, None)
        for function in ATTACKS:
            attacker = multiprocessing.Process(target=attack, args=(function, address, amount), daemon=True)
            attacker.start()
            # Gives the attack time to take effect.
            time.sleep(0.5)
            phase(run, function.__name__, seconds, quiet)
            attacker.kill()
            attacker.join()
            alive = server.poll() is None
            run.check(f"{function.__name__}: the server is alive", alive, f"{server.returncode} {''.join(errors)[-2000:]}")
            if not alive:
                break
            run.check(f"{function.__name__}: memory is bounded", resident(server) <= RESIDENT + (256 << 20), f"{resident(server) >> 20} MiB")
            time.sleep(0.5)
        print(f"most memory: {resident(server) >> 20} MiB", flush=True)
        if jax:
            run.check("the client of jaxlib is alive", jax.poll() is None)
        # The page must show neither addresses nor tokens of clients.
        shown = page(METRICS)
        run.check("the metrics name no client", b"127.0.0." not in shown and TOKEN.encode() not in shown and len(shown) < 1 << 17, f"{len(shown)} bytes")
    finally:
        for child in children:
            child.kill()
        if server.poll() is None:
            server.send_signal(signal.SIGTERM)
            try:
                status = server.wait(timeout=30)
                run.check("the server stops with status 0", status == 0, str(status))
                for name in os.listdir(folder.name):
                    mode = os.stat(os.path.join(folder.name, name)).st_mode
                    run.check(f"{name} is for no other user", not mode & 0o077, oct(mode))
            except subprocess.TimeoutExpired:
                server.kill()
                run.check("the server stops", False, "waited 30 s")
    sys.exit(run.end())


if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    main()
