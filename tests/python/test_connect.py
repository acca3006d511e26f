"""Arguments of `connect`, other servers, and the meaning of errors of jaxlib's client: the tests
that need no server of serdes.
"""

from __future__ import annotations

import pathlib
import pickle
import socket
import threading
import time
from collections.abc import Iterator

import pytest
from serdes_ml._connect import (
    ConnectError,
    SessionRefused,
    TokenRefused,
    Unreachable,
    VersionMismatch,
    connect,
    refusal_of,
)
from serdes_ml._endpoint import Endpoint, endpoint_of, greet
from serdes_ml._errors import SerdesError

HERE = Endpoint("localhost", 7171)


@pytest.mark.parametrize(
    ("address", "found"),
    [
        ("localhost:7171", HERE),
        ("grpc://localhost:7171", HERE),
        ("http://localhost:7171/", HERE),
        ("https://localhost:7171", Endpoint("localhost", 7171, tls=True)),
        ("[::1]:7171", Endpoint("::1", 7171)),
    ],
)
def test_an_address_is_a_host_and_a_port(address: str, found: Endpoint) -> None:
    assert endpoint_of(address, None, None, None) == found


@pytest.mark.parametrize(
    "address", ["", "localhost", "localhost:", ":7171", "host:0", "host:99999", "host:٣", "::1:71"]
)
def test_what_is_no_address_is_said(address: str) -> None:
    with pytest.raises(ValueError, match="expected HOST:PORT"):
        connect(address)


def test_other_schemes_are_refused() -> None:
    with pytest.raises(ValueError, match="https://HOST:PORT"):
        connect("ftp://localhost:7171")


def test_an_ipv6_address_is_written_with_brackets() -> None:
    endpoint = endpoint_of("[::1]:7171", None, None, None)
    assert endpoint.target == "[::1]:7171"
    assert endpoint.is_loopback


@pytest.mark.parametrize(
    "token", ["", "short", "a token with some spaces", "töken-of-sixteen-or-so"]
)
def test_a_token_that_no_server_has_is_said_and_not_shown(token: str) -> None:
    with pytest.raises(ValueError, match="token file") as caught:
        connect("localhost:7171", token=token)
    assert not token or token not in str(caught.value)


def test_a_token_does_not_cross_a_network_in_plain() -> None:
    with pytest.raises(ValueError, match=r"without encryption.*tls_ca"):
        connect("192.0.2.1:7171", token="a-token-of-sixteen")


def test_an_empty_name_is_refused() -> None:
    with pytest.raises(ValueError, match="name is empty"):
        connect("localhost:7171", name="")
    with pytest.raises(ValueError, match="give name, too"):
        connect("localhost:7171", keep_all=True)


@pytest.mark.parametrize("timeout", [0, -1, float("nan")])
def test_a_time_that_is_none_is_refused(timeout: float) -> None:
    with pytest.raises(ValueError, match="timeout"):
        connect("localhost:7171", timeout=timeout)


@pytest.mark.parametrize(
    ("address", "files", "words"),
    [
        ("localhost:7171", {"tls_cert": "a.pem"}, "go together"),
        ("localhost:7171", {"tls_key": "a.key"}, "go together"),
        ("localhost:7171", {"tls_cert": "a.pem", "tls_key": "a.key"}, "name tls_ca"),
        ("http://localhost:7171", {"tls_ca": "a.pem"}, "nothing is encrypted"),
    ],
)
def test_files_of_certificates_go_together(address: str, files: dict[str, str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        connect(address, **files)  # type: ignore[arg-type]


def greeted(endpoint: Endpoint, seconds: float = 5.0) -> None:
    greet(endpoint, time.monotonic() + seconds, Unreachable)


def test_certificates_that_are_none_are_said(tmp_path: pathlib.Path) -> None:
    missing, text = tmp_path / "missing.pem", tmp_path / "text.pem"
    text.write_text("no certificate")
    with pytest.raises(ValueError, match=r"no file of certificates.*missing\.pem"):
        greeted(endpoint_of("localhost:1", missing, None, None))
    with pytest.raises(ValueError, match=r"text\.pem cannot be used"):
        greeted(endpoint_of("localhost:1", text, None, None))


@pytest.fixture
def answers() -> Iterator[dict[bytes, Endpoint]]:
    """Starts servers that send some bytes to every client and close the connection."""
    listeners = []
    found = {}

    def serve(listener: socket.socket, answer: bytes) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            with client:
                client.recv(1 << 10)
                client.sendall(answer)

    for answer in (
        b"",
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"\x15\x03\x03\x00\x02\x02\x46",
        SETTINGS,
    ):
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)
        found[answer] = Endpoint("127.0.0.1", listener.getsockname()[1])
        threading.Thread(target=serve, args=(listener, answer), daemon=True).start()
    yield found
    for listener in listeners:
        listener.close()


SETTINGS = bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])


def test_a_server_of_http_2_is_greeted(answers: dict[bytes, Endpoint]) -> None:
    greeted(answers[SETTINGS])


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"", "closed the connection where HTTP/2"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "answered b'HTTP/1.1 ' where HTTP/2"),
        (b"\x15\x03\x03\x00\x02\x02\x46", "speaks TLS.*tls_ca="),
    ],
)
def test_another_server_is_told_from_ours(
    answers: dict[bytes, Endpoint], answer: bytes, words: str
) -> None:
    with pytest.raises(Unreachable, match=words):
        greeted(answers[answer])


def test_a_plain_server_is_told_from_one_with_tls(answers: dict[bytes, Endpoint]) -> None:
    plain = answers[b"HTTP/1.1 400 Bad Request\r\n\r\n"]
    with pytest.raises(Unreachable, match=r"TLS.*leave tls_ca"):
        greeted(plain._replace(tls=True))


def test_a_server_that_is_not_there_is_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    began = time.monotonic()
    with pytest.raises(Unreachable, match=r"nothing answers at 127\.0\.0\.1.*serdes serve"):
        greeted(Endpoint("127.0.0.1", port), 0.5)
    assert 0.2 < time.monotonic() - began < 5


PREFIX = "Unable to establish connection to ifrt_proxy server; detailed error: "


@pytest.mark.parametrize(
    ("text", "with_token", "kind", "words"),
    [
        (
            f"INVALID_ARGUMENT: {PREFIX}no common IFRT SerDes version: the server speaks 0..1, the"
            " client 2..6; upgrade the server",
            False,
            VersionMismatch,
            "do not fit: no common IFRT SerDes version.*upgrade the server",
        ),
        (f"UNAUTHENTICATED: {PREFIX}this server wants a token", False, TokenRefused, "token=…"),
        (
            f"UNAUTHENTICATED: {PREFIX}this server wants a token",
            True,
            TokenRefused,
            "--allow-session-token",
        ),
        (
            f"UNAUTHENTICATED: {PREFIX}the token is none of this server's; expected …",
            True,
            TokenRefused,
            "does not know the token: pass one of the lines of its --token-file",
        ),
        (
            f"UNAVAILABLE: {PREFIX}terminated: CANCELLED",
            True,
            SessionRefused,
            "none of its own.*no session free",
        ),
        (f"UNAVAILABLE: {PREFIX}terminated: CANCELLED", False, SessionRefused, "wants a token"),
        (
            f"RESOURCE_EXHAUSTED: {PREFIX}too many sessions",
            False,
            SessionRefused,
            "too many sessions",
        ),
        ("INTERNAL: something else", False, Unreachable, "something else"),
    ],
)
def test_errors_of_the_client_are_told_apart(
    text: str, with_token: bool, kind: type[ConnectError], words: str
) -> None:
    refusal = refusal_of(text, HERE, "0.10.2", with_token)
    error = refusal.error(refusal.message)
    assert type(error) is kind
    with pytest.raises(kind, match=words):
        raise error


def test_errors_are_of_the_package_and_travel() -> None:
    error = Unreachable("nothing answers", remedy="start it")
    assert isinstance(error, SerdesError)
    assert isinstance(error, ConnectionError)
    copied = pickle.loads(pickle.dumps(error))
    assert (type(copied), str(copied), copied.remedy) == (
        Unreachable,
        "nothing answers",
        "start it",
    )


def test_only_what_may_pass_is_tried_again() -> None:
    passes = {
        code: refusal_of(f"{code}: {PREFIX}x", HERE, "0.10.2", False).passes
        for code in ("UNAVAILABLE", "RESOURCE_EXHAUSTED", "UNAUTHENTICATED", "INTERNAL")
    }
    assert passes == {
        "UNAVAILABLE": True,
        "RESOURCE_EXHAUSTED": True,
        "UNAUTHENTICATED": False,
        "INTERNAL": False,
    }
