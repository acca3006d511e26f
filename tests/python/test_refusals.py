"""A full disk and a store that refuses requests: they cause an exception of the right class, leave
no files, and the previous state still loads.
"""

from __future__ import annotations

import errno
import http.server
import os
import pathlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import serdes_ml as sd

jax = pytest.importorskip("jax")
sdj = pytest.importorskip("serdes_ml.jax")

SMALL = {"w": jax.numpy.arange(100.0)}
# More bytes than fit on the disk, in one array and in many.
LARGE = {"w": jax.numpy.ones(1 << 19)}
MANY = {f"w{number}": jax.numpy.ones(500) for number in range(600)}

Attempt = Callable[[str], Any]


def keep_in_background(place: str) -> None:
    with sdj.Steps(place + "/run") as steps:
        steps.save_async(2, LARGE)


ATTEMPTS: dict[str, Attempt] = {
    "save_file": lambda place: sd.save_file({"w": np.ones(1 << 18)}, place + "/state.sds"),
    "save": lambda place: sdj.save(place + "/state.sds", LARGE),
    "save of many": lambda place: sdj.save(place + "/state.sds", MANY),
    "save unsynced": lambda place: sdj.save(place + "/state.sds", LARGE, sync=False),
    "save_async": lambda place: sdj.save_async(place + "/state.sds", LARGE).result(),
    "Steps.save": lambda place: sdj.Steps(place + "/run").save(2, LARGE),
    "Steps.save_async": keep_in_background,
}


@pytest.mark.parametrize("attempt", ATTEMPTS.values(), ids=ATTEMPTS.keys())
def test_a_full_disk_is_an_error_of_the_system_and_the_old_states_stay(
    small_disk: pathlib.Path, attempt: Attempt
) -> None:
    sdj.save(small_disk / "state.sds", SMALL)
    steps = sdj.Steps(small_disk / "run", keep=1)
    steps.save(1, SMALL)
    with pytest.raises(OSError, match="No space left") as caught:
        attempt(str(small_disk))
    assert caught.value.errno == errno.ENOSPC
    assert str(caught.value.filename).endswith(".sds")
    assert sorted(os.listdir(small_disk)) == ["run", "state.sds"]
    assert os.listdir(small_disk / "run") == ["step-00000001.sds"]
    for loaded in (sdj.load(small_disk / "state.sds"), steps.load(steps.latest())):
        assert np.array_equal(loaded["w"], SMALL["w"])


class Refusing:
    """A store that answers every request with one status, and records the requests."""

    def __init__(self) -> None:
        self.status = 403
        self.asked: list[str] = []
        store = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                store.asked.append(self.command)
                body = b"<Error><Code>Refused</Code><Message>Not now.</Message></Error>"
                self.send_response(store.status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            do_HEAD = do_PUT = do_POST = do_DELETE = do_GET

            def log_message(self, *_: Any) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> Iterator[Refusing]:
    """Starts a store, and sets the environment to it."""
    store = Refusing()
    for name, value in {
        "ACCESS_KEY_ID": "id",
        "SECRET_ACCESS_KEY": "hidden",
        "REGION": "us-east-1",
        "ENDPOINT": store.url,
        "ALLOW_HTTP": "true",
    }.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    yield store
    store.server.shutdown()


REQUESTS: dict[str, Attempt] = {
    **ATTEMPTS,
    "load": lambda place: sdj.load(place + "/state.sds"),
    "Steps.all": lambda place: sdj.Steps(place + "/run").all(),
    "Steps.delete": lambda place: sdj.Steps(place + "/run").delete(1),
}


@pytest.mark.parametrize("attempt", REQUESTS.values(), ids=REQUESTS.keys())
def test_a_store_that_refuses_the_credentials_is_a_permission_error(
    refusing: Refusing, attempt: Attempt
) -> None:
    with pytest.raises(PermissionError, match="refuses the credentials") as caught:
        attempt("s3://bucket")
    assert "hidden" not in str(caught.value)
    assert str(caught.value.filename).startswith("s3://bucket/")
    # A refused request is not retried.
    assert len(refusing.asked) == 1


def test_a_store_that_is_busy_is_asked_again_and_then_an_error_of_the_system(
    refusing: Refusing,
) -> None:
    refusing.status = 503
    for attempt in (ATTEMPTS["save_async"], REQUESTS["Steps.all"], REQUESTS["load"]):
        refusing.asked.clear()
        with pytest.raises(OSError, match="503 Service Unavailable") as caught:
            attempt("s3://bucket")
        assert caught.value.errno == errno.EIO
        assert len(refusing.asked) > 1
