"""Paths that are addresses: files on a local web server, and buckets if there is an S3 emulator.

``SERDES_S3_EMULATOR`` names a Python with ``moto[server]``; without it the tests of buckets are
skipped.
"""

from __future__ import annotations

import http.server
import os
import pathlib
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import serdes_ml as sd
from serdes_ml import _native


class Web:
    """A server of ranges of the files in a folder, which counts the bytes that it sends."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.sent = 0
        self.requests = 0
        # Seconds per response, and the current and the highest number of requests under way.
        self.delay = 0.0
        self.under_way = self.most_under_way = 0
        # Responses wait until this many requests have been under way at once, or for 20 seconds.
        self.gather = 0
        lock = threading.Lock()
        web = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                with lock:
                    web.under_way += 1
                    web.most_under_way = max(web.most_under_way, web.under_way)
                late = time.monotonic() + 20
                while web.most_under_way < web.gather and time.monotonic() < late:
                    time.sleep(0.01)
                time.sleep(web.delay)
                with lock:
                    web.under_way -= 1
                self.answer()

            def answer(self) -> None:
                path = folder / self.path.lstrip("/").partition("?")[0]
                size = path.stat().st_size if path.is_file() else None
                span = self.headers.get("Range", "").removeprefix("bytes=").split("-")
                if size is None:
                    status, body = 404, b""
                else:
                    begin, end = int(span[0]), min(int(span[1]) + 1, size)
                    with path.open("rb") as file:
                        file.seek(begin)
                        status, body = 206, file.read(end - begin)
                self.send_response(status)
                if size is not None:
                    self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{size}")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
                web.sent += len(body)
                web.requests += 1

            def log_message(self, *_: Any) -> None:
                pass

        class Server(http.server.ThreadingHTTPServer):
            request_queue_size = 64

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def web(tmp_path: pathlib.Path) -> Iterator[Web]:
    """Starts a server of the test's own folder."""
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


def test_small_tensors_of_an_address_come_many_with_one_request(
    web: Web, tmp_path: pathlib.Path
) -> None:
    tensors = {f"layer{number:03}": np.full(300, number, np.float32) for number in range(500)}
    sd.save_file(tensors, tmp_path / "a.sds")
    size = (tmp_path / "a.sds").stat().st_size
    loaded = sd.load_file(f"{web.url}/a.sds")
    assert all(np.array_equal(loaded[name], tensors[name]) for name in tensors)
    assert web.requests <= 6, web.requests
    # Tensors one by one, as in a program that examines each.
    web.requests = web.sent = 0
    with sd.safe_open(f"{web.url}/a.sds") as file:
        for name in file.keys():  # noqa: SIM118
            assert np.array_equal(file.get_tensor(name), tensors[name])
    assert web.requests <= 12, web.requests
    assert web.sent <= size + (1 << 20), web.sent
    # Loading one of many tensors costs little more than its bytes.
    web.requests = web.sent = 0
    assert sd.load_file(f"{web.url}/a.sds", only="layer250")["layer250"][0] == 250
    assert web.requests <= 5, web.requests
    assert web.sent <= 512 << 10, web.sent


def test_a_load_of_an_address_has_32_requests_under_way(web: Web, tmp_path: pathlib.Path) -> None:
    large = {"w": np.random.default_rng(3).integers(0, 255, 160 << 20, dtype=np.uint8)}
    sd.save_file(large, tmp_path / "large.sds")
    with sd.safe_open(f"{web.url}/large.sds") as file:
        assert file.get_slice("w")[:1] == large["w"][:1]
        web.gather = 32
        loaded = file.get_tensor("w")
    assert np.array_equal(loaded, large["w"])
    assert web.most_under_way == 32
    web.gather = 0
    damaged = bytearray((tmp_path / "large.sds").read_bytes())
    damaged[len(damaged) // 2] ^= 1
    (tmp_path / "large.sds").write_bytes(damaged)
    with pytest.raises(sd.Corrupt, match='"w"'):
        sd.load_file(f"{web.url}/large.sds")


def test_small_tensors_of_a_far_safetensors_file_are_under_way_together(
    web: Web, tmp_path: pathlib.Path
) -> None:
    tensors = {f"w{number:04}": np.full(16 << 10, number % 251, np.uint8) for number in range(2000)}
    sd.save_file(tensors, tmp_path / "near.sds")
    sd.convert(tmp_path / "near.sds", tmp_path / "a.safetensors")
    address, web.delay = f"{web.url}/a.safetensors", 0.05
    sd.convert(address, tmp_path / "b.sds")
    # 31 MiB in requests of 4 MiB, and the header with the bytes that are read along with it.
    assert web.requests <= 14, web.requests
    assert web.most_under_way >= 6, web.most_under_way
    loaded = sd.load_file(tmp_path / "b.sds")
    assert all(np.array_equal(loaded[name], tensors[name]) for name in tensors)
    web.requests = web.most_under_way = 0
    assert sd.check(address, verify_data=True)
    assert web.most_under_way >= 6, (web.most_under_way, web.requests)


def test_a_load_of_an_address_holds_a_bounded_part_of_it(web: Web, tmp_path: pathlib.Path) -> None:
    large = {"w": np.zeros(400 << 20, np.uint8)}
    sd.save_file(large, tmp_path / "large.sds")
    program = (
        "import pathlib, re, sys, serdes_ml as sd\n"
        "status = lambda: pathlib.Path('/proc/self/status').read_text()\n"
        "before = int(re.search(r'VmRSS:\\s+(\\d+)', status())[1])\n"
        "sd.convert(sys.argv[1], sys.argv[2], sync=False)\n"
        "print(int(re.search(r'VmHWM:\\s+(\\d+)', status())[1]) - before)\n"
    )
    sd.convert(tmp_path / "large.sds", tmp_path / "large.safetensors", sync=False)
    for source in ("large.sds", "large.safetensors"):
        target = tmp_path / f"back-{source}.npz"
        words = [sys.executable, "-c", program, f"{web.url}/{source}", str(target)]
        found = subprocess.run(words, capture_output=True, text=True, check=True)
        # Each of the 128 MiB under way is in memory twice for a moment.
        assert int(found.stdout) < 300 << 10, (source, found.stdout)
        target.unlink()


def test_a_folder_that_is_called_as_a_scheme_is_no_bucket(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "s3:"
    folder.mkdir()
    sd.save_file({"w": np.ones(1)}, folder / "a.sds")
    monkeypatch.chdir(tmp_path)
    for place in (str(folder), "./s3:", "."):
        verdicts = sd.check_all([place])
        assert [verdict.verdict for verdict in verdicts] == ["acceptable"], place
    # Without a path it is an address without a bucket, and the folder is not read.
    (verdict,) = sd.check_all(["s3:"])
    assert not verdict
    assert "./s3:" in verdict.reasons[0].message
    with pytest.raises(OSError, match=r"\./s3:"):
        sd.load_file("s3:")


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
    """Starts an emulator of S3 with a bucket, and sets the environment to it."""
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


def keys(prefix: str) -> list[str]:
    """Returns the names of all objects under a prefix of the bucket."""
    url = f"{os.environ['AWS_ENDPOINT']}/states?list-type=2&prefix={prefix}&max-keys=1000"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=30) as answer:
        return re.findall(r"<Key>([^<]*)</Key>", answer.read().decode())


def test_steps_are_listed_kept_restored_and_removed_in_a_bucket(bucket: str) -> None:
    jax = pytest.importorskip("jax")
    from serdes_ml import jax as sdj

    run = f"{bucket}/steps"
    with sdj.Steps(run, keep=2) as steps:
        assert steps.all() == []
        assert steps.latest() is None
        with pytest.raises(sd.NotFound):
            steps.load(steps.latest())
        for step in (10, 20, 30):
            steps.save(step, {"w": jax.numpy.full(3, step)})
        steps.save_async(40, {"w": jax.numpy.full(3, 40)})
    assert steps.all() == [30, 40]
    assert steps.path(40) == f"{run}/step-00000040.sds"
    assert steps.load(steps.latest())["w"].tolist() == [40, 40, 40]
    assert keys("steps/") == ["steps/step-00000030.sds", "steps/step-00000040.sds"]
    steps.delete(40)
    with pytest.raises(sd.NotFound):
        steps.delete(40)
    assert steps.latest() == 30
    assert [verdict.kind for verdict in sd.check_all([run])] == ["device_state"]


def parts_of(address: str, save: bytes, numbers: range) -> None:
    """Writes parts of a save of two processes."""
    for number in numbers:
        tensor = (f"w{number}", "U8", (3,), np.full(3, number, np.uint8))
        _native.save(address, [tensor], None, "current", True, (save, number, 2), None)


def test_a_state_of_parts_goes_from_a_bucket_with_its_parts(bucket: str) -> None:
    address = f"{bucket}/parts/step-00000001.sds"
    first, failed = _native.new_save_id(), _native.new_save_id()
    parts_of(address, first, range(2))
    _native.merge(address, first, None, "current", True)
    before = keys("parts/")
    parts_of(address, failed, range(1))
    assert len(keys("parts/")) == len(before) + 1
    # The parts of the state are kept.
    for save in (first, failed):
        _native.discard(address, save)
    assert keys("parts/") == before
    assert sd.check(address, verify_data=True)
    assert _native.names(f"{bucket}/parts", ["step-*"]) == [
        "step-00000001.sds",
        "step-00000001.sds.parts",
    ]
    _native.remove_state(address)
    assert keys("parts/") == []


def test_a_long_prefix_is_listed_in_pages(bucket: str) -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    for step in range(1050):
        key = f"{os.environ['AWS_ENDPOINT']}/states/long/step-{step:08}.sds"
        opener.open(urllib.request.Request(key, data=b"x", method="PUT"), timeout=30).close()
    found = _native.names(f"{bucket}/long", ["step-*.sds"])
    assert sorted(found) == [f"step-{step:08}.sds" for step in range(1050)]
    assert _native.names(f"{bucket}/long", ["step-000010[0-4]*"]) == found[1000:1050]


def test_a_key_that_no_path_leads_to_is_named_by_a_listing(bucket: str) -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    for key in ("odd/step-00000001.sds", "odd//x"):
        url = f"{os.environ['AWS_ENDPOINT']}/states/{key}"
        opener.open(urllib.request.Request(url, data=b"x", method="PUT"), timeout=30).close()
    with pytest.raises(OSError, match="rename that object") as caught:
        _native.names(f"{bucket}/odd", ["step-*"])
    assert '"odd//' in str(caught.value)


def test_a_checkpoint_of_torch_makes_the_trip_to_a_bucket(bucket: str) -> None:
    torch = pytest.importorskip("torch", minversion="2.4")
    import torch.distributed.checkpoint as dcp
    from serdes_ml import torch as sdt

    folder = f"{bucket}/dcp/7"
    for step in (1, 2):
        state_dict = {"model": {"w": torch.full((3, 2), step)}, "step": step}
        dcp.save(state_dict, storage_writer=sdt.StorageWriter(folder), no_dist=True)
        assert [key.rpartition("/")[0] for key in keys("dcp/")] == [
            "dcp/7",
            "dcp/7/state.sds.parts",
        ]
        for place in (folder, f"{folder}/", f"{folder}/state.sds"):
            loaded = {"model": {"w": torch.zeros(3, 2, dtype=torch.int64)}, "step": 0}
            dcp.load(loaded, storage_reader=sdt.StorageReader(place), no_dist=True)
            assert loaded["model"]["w"].tolist() == [[step, step]] * 3
            assert loaded["step"] == step
    with pytest.raises(sd.NotFound):
        sdt.StorageReader(f"{bucket}/dcp/8").read_metadata()
    _native.remove_state(f"{folder}/state.sds")
    assert keys("dcp/") == []


def test_a_profile_leads_to_a_bucket(
    bucket: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint = os.environ["AWS_ENDPOINT"]
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "REGION", "ENDPOINT"):
        monkeypatch.delenv(f"AWS_{name}")
    config, credentials = tmp_path / "config", tmp_path / "credentials"
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(credentials))
    monkeypatch.setenv("AWS_PROFILE", "lab")
    config.write_text(
        f"[profile lab]\nregion = us-east-1\nendpoint_url = {endpoint}\n"
        "[profile role]\nrole_arn = arn:aws:iam::1:role/x\n"
    )
    credentials.write_text("[lab]\naws_access_key_id = id\naws_secret_access_key = secret\n")
    address = f"{bucket}/profile.sds"
    sd.save_file({"w": np.ones(2)}, address)
    assert sd.load_file(address)["w"].tolist() == [1, 1]
    monkeypatch.setenv("AWS_PROFILE", "role")
    with pytest.raises(OSError, match="role_arn"):
        sd.load_file(address)
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    with pytest.raises(OSError, match="nobody"):
        sd.load_file(address)


def test_an_address_of_the_web_is_no_folder_of_steps(web: Web) -> None:
    pytest.importorskip("jax")
    from serdes_ml import jax as sdj

    with pytest.raises(sd.Unsupported, match="name a file"):
        sdj.Steps(web.url).all()
    with pytest.raises(ValueError, match="s3://"):
        sdj.Steps("s3://")
    for wrong in ("s3://me:secret@bucket/run", "https://me:secret@host/run?token=secret"):
        with pytest.raises(ValueError, match="address") as caught:
            sdj.Steps(wrong)
        assert "secret" not in str(caught.value)
    with pytest.raises(sd.Unsupported) as caught_late:
        sdj.Steps(f"{web.url}/run?token=secret").all()
    assert "secret" not in str(caught_late.value)
