#!/usr/bin/env python3
"""Prints the row of data/jaxlib.json of the jaxlib that this Python has.

    PYTHON measure_jaxlib.py            the row, one line
    PYTHON measure_jaxlib.py --check    1 if the table has other facts of what is measured, or no row

Everything but the day is asked of the release itself or read in its sources; the day is the first upload to PyPI, taken from there unless
`--day YYYY-MM-DD` gives it. The PJRT version is the one that jaxlib logs when it loads a plug-in; that plug-in is a table of functions without
any, which the C compiler `cc` makes. The versions of the proxy are those that its client offers to a listener on this machine.
"""

import argparse
import inspect
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import threading
import urllib.request

TABLE = pathlib.Path(__file__).parents[1] / "data/jaxlib.json"

PLUGIN = """
#include <stddef.h>
struct { size_t size; void *extension; struct { size_t size; void *extension; int major, minor; } version; void *functions[256]; }
    api = { 48 + sizeof(void *[256]), 0, { 24, 0, 0, 1 }, {0} };
const void *GetPjrtApi(void) { return &api; }
"""

LOADS = """
import sys
from jaxlib import xla_client
xla_client.load_pjrt_plugin_dynamically("measured", sys.argv[1])
xla_client.initialize_pjrt_plugin("measured")
"""

CONNECTS = """
import sys
from jax.extend.backend import ifrt_proxy as proxy
options = proxy.ClientConnectionOptions()
options.connection_timeout_in_seconds = 30
proxy.get_client(sys.argv[1], options)
"""


def uploaded(version):
    form = {"Accept": "application/vnd.pypi.simple.v1+json"}
    with urllib.request.urlopen(urllib.request.Request("https://pypi.org/simple/jaxlib/", headers=form)) as answer:
        files = json.load(answer)["files"]
    return min(file["upload-time"] for file in files if file["filename"].startswith(f"jaxlib-{version}-"))[:10]


def pjrt():
    """The minor of the PJRT C API, and which plug-ins are taken."""
    with tempfile.TemporaryDirectory() as folder:
        source, library = pathlib.Path(folder, "p.c"), pathlib.Path(folder, "p.so")
        source.write_text(PLUGIN)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
        environment = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "0"}
        ran = subprocess.run([sys.executable, "-c", LOADS, library], capture_output=True, text=True, env=environment)
    said = re.search(r"framework PJRT API version (?:is )?\(?0\.(\d+)", ran.stderr)
    if not said:
        raise SystemExit(f"jaxlib names no PJRT version when it loads a plug-in: {ran.stderr[-800:]}")
    takes = re.search(r"minimum supported version 0\.(\d+)", ran.stderr)
    return int(said[1]), f"from 0.{takes[1]}" if takes else "equal"


def fields(message):
    """The fields of a message of Protocol Buffers: numbers, and messages as bytes."""
    found, at = {}, 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte, at = message[at], at + 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        key = varint()
        value = varint()
        if key & 7 == 2:
            value, at = message[at : at + value], at + value
        found[key >> 3] = value
    return found


def first_request(listener):
    """The first message that a client of gRPC sends: as much of HTTP/2 as it waits for."""
    connection, _ = listener.accept()
    with connection, connection.makefile("rb") as stream:
        stream.read(24)
        connection.sendall(b"\0\0\0\4\0\0\0\0\0")
        while len(head := stream.read(9)) == 9:
            body = stream.read(int.from_bytes(head[:3], "big"))
            kind, is_answer = head[3], head[4] & 1
            if kind == 4 and not is_answer:
                connection.sendall(b"\0\0\0\4\1\0\0\0\0")
            elif kind == 6 and not is_answer:
                connection.sendall(b"\0\0\x08\6\1\0\0\0\0" + body)
            elif kind == 0 and len(body) > 5:
                return body[5:]
    raise SystemExit("the client of the proxy sent no request")


def proxy():
    """The versions that the client of a proxy offers: of the protocol, and of IFRT SerDes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(60)
        target = f"grpc://127.0.0.1:{listener.getsockname()[1]}"
        environment = os.environ | {"IFRT_PROXY_USE_INSECURE_GRPC_CREDENTIALS": "true"}
        client = subprocess.Popen([sys.executable, "-c", CONNECTS, target], env=environment, stderr=subprocess.DEVNULL)
        try:
            request = fields(first_request(listener))
        finally:
            client.kill()
            client.wait()
    oldest, newest = fields(request[1]), fields(request[2])
    return [[one.get(field, 0) for one in (oldest, newest)] for field in (1, 2)]


def deserializer(source):
    """The newest behaviour of the deserializer that its source shows."""
    if "_expired_error_msg" in source:
        return "expiring"
    if "leaf_iterator" in source:
        return "leaves"
    if "unique_avals" in source:
        return "tables"
    if "AbstractDevice" in source:
        return "named_with_device"
    if "_deserialize_named_sharding" in source:
        return "named"
    return "numbered" if "deserialize unsupported version" in source else "unnumbered"


def exports(version, day):
    from jax._src.export import _export, serialization
    from jaxlib.mlir.dialects import stablehlo

    source = inspect.getsource(serialization)
    compatibility = stablehlo.StablehloCompatibilityRequirement
    week = stablehlo.get_version_from_compatibility_requirement
    written = re.search(r"AddSerializationVersion\(builder, (\w+)\)", source)[1]
    written = serialization._SERIALIZATION_VERSION if written.startswith("_") else int(written)
    reading = deserializer(source)
    return stablehlo.get_current_version(), {
        "day": day or uploaded(version),
        "week_4": week(compatibility.WEEK_4),
        "week_12": week(compatibility.WEEK_12),
        "serialization": serialization._SERIALIZATION_VERSION,
        "writes_serialization": written,
        "writes_devices": "both" if "AddNrDevicesShort(" in source else "short" if reading == "numbered" else "wide",
        "calling_convention": _export.maximum_supported_calling_convention_version,
        "deserializer": reading,
        "last_dtype": max(serialization._dtype_kind_to_dtype),
    }


def row(day):
    import jax
    import jaxlib

    version = jaxlib.__version__
    assert jax.__version__ == version, (jax.__version__, version)
    minor, takes = pjrt()
    stablehlo, exported = exports(version, day)
    protocol, serdes = proxy()
    # The client writes its programs for twelve weeks before its day.
    offered = {"protocol": protocol, "serdes": serdes, "programs": exported["week_12"]}
    return {"version": version, "pjrt": minor, "takes": takes, "stablehlo": stablehlo, "exports": exported, "proxy": offered}


def differences(known, measured):
    """The facts of the table that are measured otherwise; what the table does not have is no difference."""
    for name, value in known.items():
        if isinstance(value, dict):
            yield from differences(value, measured.get(name, {}))
        elif value != measured.get(name):
            yield f"{name}: {value} in the table, {measured.get(name)} measured"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--day")
    options = parser.parse_args()
    measured = row(options.day)
    if not options.check:
        print(json.dumps(measured))
        return 0
    version = measured["version"]
    known = [one for one in json.loads(TABLE.read_text())["releases"] if one["version"] == version]
    wrong = [f"no row: {json.dumps(measured)}"] if not known else list(differences(known[0], measured))
    for one in wrong:
        print(f"{version}: {one}", file=sys.stderr)
    if not wrong:
        print(f"{version}: as in the table")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
