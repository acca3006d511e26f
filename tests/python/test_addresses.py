"""Paths that are addresses: files of the web here, buckets where an emulator of S3 is given.

``SERDES_S3_EMULATOR`` names a Python with ``moto[server]``; without it the tests of buckets are
skipped.
"""

from __future__ import annotations

import http.server
import os
import pathlib
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import serdes_ml as sd


class Web:
    """A server of the files in a folder by ranges, which counts what it sends."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.sent = 0
        web = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                path = folder / self.path.lstrip("/").partition("?")[0]
                whole = path.read_bytes() if path.is_file() else None
                span = self.headers.get("Range", "").removeprefix("bytes=").split("-")
                if whole is None:
                    status, body = 404, b""
                else:
                    begin, end = int(span[0]), min(int(span[1]) + 1, len(whole))
                    status, body = 206, whole[begin:end]
                self.send_response(status)
                if whole is not None:
                    self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{len(whole)}")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
                web.sent += len(body)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def web(tmp_path: pathlib.Path) -> Iterator[Web]:
    """A server of the test's own folder."""
    web = Web(tmp_path)
    yield web
    web.server.shutdown()


def test_a_state_of_the_web_is_loaded_and_a_slice_reads_its_chunks(
    web: Web, tmp_path: pathlib.Path
) -> None:
    rows = np.arange(8 << 20, dtype=np.uint32).reshape(-1, 256)
    sd.save_file({"rows": rows, "b": np.ones(3)}, tmp_path / "a.sds", {"step": "7"})
    address = f"{web.url}/a.sds?token=secret"
    loaded = sd.load_file(address)
    assert np.array_equal(loaded["rows"], rows)
    web.sent = 0
    with sd.safe_open(address) as file:
        assert file.metadata() == {"step": "7"}
        assert np.array_equal(file.get_slice("rows")[1000:1100], rows[1000:1100])
    assert web.sent < 3 << 20, web.sent
    assert sd.check(address).acceptable
    assert sd.inspect(address)["metadata"] == {"step": "7"}
    assert all(one["result"] == "equal" for one in sd.diff(address, tmp_path / "a.sds"))


def test_what_is_not_there_is_not_found_and_the_web_is_not_written(web: Web) -> None:
    with pytest.raises(sd.NotFound) as caught:
        sd.load_file(f"{web.url}/nothing.sds?token=secret")
    assert "secret" not in str(caught.value)
    verdict = sd.check(f"{web.url}/nothing.sds")
    assert verdict.reasons[0].rule == "not_found"
    with pytest.raises(sd.Unsupported, match="only read"):
        sd.save_file({"a": np.zeros(1)}, f"{web.url}/b.sds")


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """A bucket of an emulator of S3, which the environment leads to."""
    python = os.environ.get("SERDES_S3_EMULATOR")
    if python is None:
        pytest.skip("SERDES_S3_EMULATOR names no Python with moto")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    words = [python, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    changes = {
        "AWS_ACCESS_KEY_ID": "emulated",
        "AWS_SECRET_ACCESS_KEY": "emulated",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT": url,
        "AWS_ALLOW_HTTP": "true",
        "NO_PROXY": "127.0.0.1",
    }
    before = {name: os.environ.get(name) for name in changes}
    try:
        for _ in range(300):
            try:
                urllib.request.urlopen(url + "/moto-api/", timeout=5).close()
                break
            except OSError:
                time.sleep(0.2)
        urllib.request.urlopen(
            urllib.request.Request(url + "/states", method="PUT"), timeout=30
        ).close()
        os.environ.update(changes)
        yield "s3://states"
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        server.terminate()
        server.wait(timeout=30)


def test_tensors_make_the_trip_to_a_bucket(bucket: str) -> None:
    tensors = {"w": np.random.default_rng(7).random((1000, 300)), "names": np.array(["a", "b"])}
    address = f"{bucket}/runs/step-7.sds"
    sd.save_file(tensors, address, {"step": "7"})
    loaded = sd.load_file(address)
    assert np.array_equal(loaded["w"], tensors["w"])
    with sd.safe_open(pathlib.PurePosixPath(address)) as file:
        assert np.array_equal(file.get_slice("w")[10:20], tensors["w"][10:20])
    assert sd.check(address).acceptable
    assert len(sd.check_all([f"{bucket}/runs"])) == 1
    assert sd.inspect(address)["devices"][0]["id"] == 0


def test_a_bucket_that_is_not_there_is_an_error_of_the_system(bucket: str) -> None:
    del bucket
    with pytest.raises(OSError, match="NoSuchBucket"):
        sd.save_file({"a": np.zeros(1)}, "s3://no-such-bucket/a.sds")
    with pytest.raises(FileNotFoundError):
        sd.load_file("s3://states/nothing.sds")


def test_processes_of_jax_save_to_a_bucket(bucket: str) -> None:
    jax = pytest.importorskip("jax")
    from serdes_ml import jax as sdj

    tree = {"w": jax.numpy.arange(12.0).reshape(3, 4), "step": 7}
    sdj.save(f"{bucket}/jax/state.sds", tree)
    loaded = sdj.load(f"{bucket}/jax/state.sds", like=tree)
    assert np.array_equal(loaded["w"], tree["w"])
    assert loaded["step"] == 7
