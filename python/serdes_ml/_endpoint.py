"""Addresses of servers, and a first word with what is there: that tells a wrong port, a server
that wants TLS and one that speaks something else apart, which jaxlib's client does not.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import ssl
import time
from collections.abc import Callable
from typing import NamedTuple, cast

from ._errors import wrong_type

# The beginning of every HTTP/2 connection: a fixed text, and an empty frame of settings (RFC 9113,
# section 3.4). A server answers with its own settings.
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
_FRAME_HEADER = 9
_SETTINGS = 4
# The seconds between attempts to reach a server that is not there yet.
_PAUSE = 0.2
# The first byte of TLS's alerts and handshakes (RFC 8446, section 5.1).
_TLS_RECORDS = (0x15, 0x16)

Failure = Callable[[str], Exception]
"""The error that is raised, of a message."""


class Endpoint(NamedTuple):
    """A server, and how its connections are encrypted."""

    host: str
    port: int
    tls: bool = False
    ca: str | None = None
    cert: str | None = None
    key: str | None = None

    @property
    def target(self) -> str:
        """The address as gRPC takes it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """The arguments by which `serdes negotiate` reaches the server."""
        ca = f" --tls-ca {self.ca}" if self.ca else ""
        return f"https://{self.target}{ca}" if self.tls else self.target

    @property
    def is_loopback(self) -> bool:
        """True if what is sent stays on this machine."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    def __str__(self) -> str:
        return self.target


def endpoint_of(
    address: str,
    tls_ca: str | os.PathLike[str] | None,
    tls_cert: str | os.PathLike[str] | None,
    tls_key: str | os.PathLike[str] | None,
) -> Endpoint:
    """Return what an address names.

    Raises:
        ValueError: if it names no host and port, or files of certificates do not go together.
        WrongType: if it is no text.
    """
    if not isinstance(cast("object", address), str):
        raise wrong_type("address", address, "a text, HOST:PORT")
    scheme, mark, rest = address.partition("://")
    if not mark:
        scheme, rest = "", address
    elif scheme not in ("grpc", "http", "https"):
        raise ValueError(f"address is {address!r}; expected HOST:PORT, or https://HOST:PORT")
    host, _, port = rest.rstrip("/").rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError(f"address is {address!r}; expected HOST:PORT, as `serdes serve` prints it")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host or "/" in host:
        raise ValueError(f"address is {address!r}; expected HOST:PORT, or [IPV6]:PORT")
    given = (("tls_ca", tls_ca), ("tls_cert", tls_cert), ("tls_key", tls_key))
    ca, cert, key = (_file(what, file) for what, file in given)
    if (cert is None) != (key is None):
        raise ValueError("tls_cert and tls_key go together: a certificate, and its private key")
    if cert is not None and ca is None and scheme != "https":
        raise ValueError("tls_cert is for an encrypted connection; name tls_ca, too, or https://")
    if scheme == "http" and ca is not None:
        raise ValueError(f"tls_ca is given, and {address!r} says that nothing is encrypted")
    return Endpoint(host, int(port), scheme == "https" or ca is not None, ca, cert, key)


def _file(what: str, given: str | os.PathLike[str] | None) -> str | None:
    if given is None:
        return None
    one: object = given
    found = os.fspath(given) if isinstance(one, (str, os.PathLike)) else one
    if not isinstance(found, str):
        raise wrong_type(what, given, "the path of a file in PEM, or None")
    return found


def greet(endpoint: Endpoint, deadline: float, failure: Failure) -> None:
    """Wait until a server is there, and check that it speaks HTTP/2, encrypted or not as it
    should be.

    Raises:
        ValueError: if a file of certificates cannot be used.
        Exception: what ``failure`` makes, with what was found and what to do.
    """
    context = _context(endpoint) if endpoint.tls else None
    with _connected(endpoint, deadline, failure) as plain:
        try:
            found = _answer(plain, endpoint, context)
        except ssl.SSLError as error:
            raise failure(_tls_words(endpoint, error)) from error
        except OSError as error:
            hint = (
                "does not speak TLS; leave tls_ca and https:// out, if so" if context else "hangs"
            )
            raise failure(
                f"{endpoint} takes connections and does not answer ({error.strerror or error});"
                f" perhaps it {hint}"
            ) from error
    if len(found) == _FRAME_HEADER and found[3] == _SETTINGS:
        return
    if context is None and found[:1] and found[0] in _TLS_RECORDS:
        raise failure(
            f"the server at {endpoint} speaks TLS; name the authority of its certificate"
            f" (tls_ca=…), or connect to https://{endpoint} where the system knows it"
        )
    what = "closed the connection" if not found else f"answered {found!r}"
    raise failure(f"{endpoint} {what} where HTTP/2 was expected; is it `serdes serve`?")


def _connected(endpoint: Endpoint, deadline: float, failure: Failure) -> socket.socket:
    """Return a connection to the server, which may be starting at this moment."""
    began = time.monotonic()
    while True:
        left = max(deadline - time.monotonic(), 0.1)
        try:
            return socket.create_connection((endpoint.host, endpoint.port), timeout=left)
        except socket.gaierror as error:
            raise failure(
                f"there is no host {endpoint.host!r} ({error.strerror}); is it spelled right?"
            ) from error
        except OSError as error:
            if time.monotonic() + _PAUSE < deadline:
                time.sleep(_PAUSE)
                continue
            waited = time.monotonic() - began
            raise failure(
                f"nothing answers at {endpoint} ({error.strerror or error}; tried for"
                f" {waited:.0f} s); is `serdes serve` running there, with --listen for an address"
                " that this machine reaches?"
            ) from error


def _context(endpoint: Endpoint) -> ssl.SSLContext:
    # With it comes asyncio, which those who do not encrypt need not wait for.
    from ._relay import tls_context

    try:
        return tls_context(endpoint.ca, endpoint.cert, endpoint.key)
    except FileNotFoundError as error:
        missing = next((f for f in endpoint[3:] if f and not os.path.exists(f)), error)  # noqa: PTH110
        raise ValueError(f"there is no file of certificates {missing}") from error
    except (ssl.SSLError, OSError) as error:
        names = ", ".join(file for file in endpoint[3:] if file)
        raise ValueError(
            f"{names} cannot be used ({error}); expected certificates, and the key of tls_cert,"
            " in PEM"
        ) from error


def _answer(plain: socket.socket, endpoint: Endpoint, context: ssl.SSLContext | None) -> bytes:
    """Return the header of the first frame that the server sends, or what comes in its place."""
    connection = plain
    if context is not None:
        connection = context.wrap_socket(plain, server_hostname=endpoint.host)
    with connection:
        connection.sendall(_PREFACE)
        found = b""
        while len(found) < _FRAME_HEADER:
            some = connection.recv(_FRAME_HEADER - len(found))
            if not some:
                break
            found += some
    return found


def _tls_words(endpoint: Endpoint, error: ssl.SSLError) -> str:
    reason = str(error.reason or error)
    if isinstance(error, ssl.SSLCertVerificationError):
        by = endpoint.ca or "the system's authorities"
        return (
            f"the certificate of {endpoint} is not valid by {by}: {error.verify_message}; name"
            " the authority that signed it (tls_ca=…), and a host that stands in it"
        )
    if "CERTIFICATE" in reason:
        return (
            f"the server at {endpoint} wants a certificate of its clients, or another one"
            f" ({reason}); name yours (tls_cert=…, tls_key=…)"
        )
    if "WRONG_VERSION_NUMBER" in reason or "RECORD_LAYER" in reason:
        return f"the server at {endpoint} does not speak TLS ({reason}); leave tls_ca out"
    return f"no TLS with {endpoint}: {reason}"
