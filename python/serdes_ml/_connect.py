"""JAX on the devices of a server: `serdes serve`, or any other that speaks the IFRT proxy.

jaxlib has a client for it since 0.8. This module gives it the address, the token and the name of
the session, and puts what it returns into JAX as the first back end. Nothing here needs the
package's extension.
"""

from __future__ import annotations

import atexit
import ctypes
import errno
import importlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from ._arguments import flags, number
from ._endpoint import Endpoint, endpoint_of, greet
from ._errors import SerdesError, wrong_type
from ._tunnel import tunnel_to

BACKEND = "proxy"
"""The back end's name for JAX, as in ``JAX_PLATFORMS``."""

# jaxlib tries again once a second for this long, also where the server has said no for good.
_ATTEMPTS_SECONDS = 2

# The connection that JAX has now, and the clients of all that it ever had.
_lock = threading.Lock()
_open: list[Connection] = []


class ConnectError(SerdesError):
    """There is no session with the server; the message says what can be done about it."""

    __module__ = "serdes_ml"


class Unreachable(ConnectError, ConnectionError):
    """Nothing at the address speaks the protocol: also a ``ConnectionError``."""

    __module__ = "serdes_ml"

    def __init__(
        self,
        message: str = "",
        rule: str | None = None,
        found: str | None = None,
        expected: str | None = None,
        remedy: str | None = None,
    ) -> None:
        ConnectionError.__init__(self, errno.ECONNREFUSED, message)
        self._tell(message, rule, found, expected, remedy)

    def __str__(self) -> str:
        return self._message


class SessionRefused(ConnectError):
    """The server opens no session for this client: for its token, or because none is free."""

    __module__ = "serdes_ml"


class TokenRefused(SessionRefused):
    """The server admits only clients with a token, and has said that this one has none."""

    __module__ = "serdes_ml"


class VersionMismatch(ConnectError):
    """The client in jaxlib and the server have no version of the protocol in common."""

    __module__ = "serdes_ml"


class _Jax(NamedTuple):
    """The parts of JAX that know of back ends."""

    jax: Any
    backend: Any
    bridge: Any
    release: str


def _jax() -> _Jax:
    try:
        jax = importlib.import_module("jax")
        backend = importlib.import_module("jax.extend.backend")
        release = importlib.import_module("jaxlib.version").__version__
    except ImportError as error:
        raise ConnectError(f"JAX cannot be imported ({error}); pip install 'jax>=0.8'") from error
    known = tuple(int(part) for part in release.split(".")[:2])
    if known < (0, 8) or not hasattr(backend, "ifrt_proxy"):
        raise ConnectError(
            f"jaxlib {release} has no client that this can use; pip install 'jax>=0.8'",
            found=release,
            expected=">=0.8",
        )
    return _Jax(jax, backend, importlib.import_module("jax._src.xla_bridge"), release)


class Connection:
    """A session on the devices of a server, which are JAX's first ones until `close`.

    `connect` makes it. As a context manager it closes itself.
    """

    __module__ = "serdes_ml.jax"

    address: str
    """The server's ``HOST:PORT``."""

    name: str | None
    """The name under which the server keeps what `save` gives it."""

    def __init__(
        self,
        parts: Any,
        client: Any,
        endpoint: Endpoint,
        name: str | None,
        tokens: tuple[str | None, str | None],
        keep_all: bool,
    ) -> None:
        self.address, self.name = str(endpoint), name
        self._endpoint, self._tokens = endpoint, tokens
        self._keeper: Any = None
        self._jax: _Jax = parts
        self._client = client
        self._closed = False
        self._others = parts.bridge._backend_factories.get(BACKEND)
        self._platforms = parts.jax.config.jax_platforms
        # A client that ends while there are arrays or programs of it ends the process in some
        # releases of jaxlib, and prints a stack trace in all. So it stays until the process ends,
        # and the server sees then that it is gone.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(client))
        parts.backend.register_backend_factory(BACKEND, lambda: client, priority=500)
        parts.jax.config.update("jax_platforms", f"{BACKEND},cpu")
        if keep_all:
            atexit.register(_leave_arrays, parts.jax, client)

    @property
    def platform(self) -> str:
        """The name of the server's platform, by which JAX writes programs."""
        return str(self._client.platform)

    @property
    def server(self) -> str:
        """The server's description of itself and of its plug-in."""
        return str(self._client.platform_version)

    @property
    def closed(self) -> bool:
        """True once JAX has its own devices again."""
        return self._closed

    def devices(self) -> list[Any]:
        """Return the server's devices, each a ``jax.Device``."""
        return list(self._client.devices())

    def close(self) -> None:
        """Give JAX the devices back that it had before; another call does nothing.

        Arrays of the server can still be read, and its memory is free when they are gone; programs
        are compiled anew. The session itself ends with the process.
        """
        with _lock:
            if self._closed:
                return
            self._closed = True
            _open.remove(self)
        if self._keeper is not None:
            self._keeper.close()
        bridge = self._jax.bridge
        if self._others is None:
            bridge._backend_factories.pop(BACKEND, None)
        else:
            bridge._backend_factories[BACKEND] = self._others
        self._jax.jax.config.update("jax_platforms", self._platforms)
        self._jax.backend.clear_backends()

    def save(self, tree: Any, *, timeout: float = 20.0) -> None:
        """Have the server keep the arrays of a pytree by the names of its leaves.

        They take the place of those that were saved under the connection's ``name`` before. They
        stay when this process ends, and `arrays` gives them back, also to a process that connects
        later by the same name. A server with ``--state FILE`` has them after a restart, too: it
        writes the file when it stops and at SIGHUP; what was saved after the last of these is lost
        with a server that is killed. The elements pass through this process, in a session of the
        package's own: the first call opens it, and `close` ends it.

        Raises:
            ValueError: if the connection has no ``name`` or is closed, or two leaves have one.
            ConnectError: if the server cannot be reached, refuses, or keeps nothing, since it was
                started without ``--state``.
        """
        from ._keeping import KeptNothing

        keeper, seconds = self._kept_by(), _seconds(timeout)
        try:
            with _named_errors():
                keeper.save(tree, seconds)
        except KeptNothing as error:
            raise ConnectError(str(error), None, "no state", "a server with --state FILE") from None

    def arrays(self, like: Any = None, *, timeout: float = 20.0) -> Any:
        """Return what `save` had the server keep: the pytree, each array with its sharding.

        Without ``like`` the tree comes as by `serdes_ml.jax.load`; with it in the structure of
        ``like``, whose leaves need not be arrays. If the server keeps none, it is an empty dict.
        The elements pass through this process: jaxlib can make no array of what is on a server.

        Raises:
            ValueError: if the connection has no ``name``, or is closed.
            TreeMismatch: if a leaf of ``like`` is not there.
            ConnectError: if the server cannot be reached, or refuses.
        """
        keeper, seconds = self._kept_by(), _seconds(timeout)
        with _named_errors():
            return keeper.load({device.id: device for device in self.devices()}, like, seconds)

    def _kept_by(self) -> Any:
        if self.name is None:
            raise ValueError("arrays are kept under the connection's name; connect(…, name=NAME)")
        from ._keeping import Keeper

        with _lock:
            if self._closed:
                raise ValueError(f"the connection to {self.address} is closed; connect again")
            if self._keeper is None:
                self._keeper = Keeper(self._endpoint, self.name, *self._tokens)
            return self._keeper

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        devices = len(self.devices())
        words = [f"{devices} {self.platform} device{'' if devices == 1 else 's'}", self.server]
        if self.name is not None:
            words.append(f"name {self.name!r}")
        if self._closed:
            words.append("closed")
        return f"<serdes_ml.jax.Connection to {self.address}: {', '.join(words)}>"


@contextmanager
def _named_errors() -> Iterator[None]:
    """Errors of the package's own client as those of this module."""
    try:
        yield
    except ConnectionError as error:
        raise Unreachable(str(error)) from error
    except RuntimeError as error:
        if type(error) is not RuntimeError:
            raise
        raise SessionRefused(str(error)) from error


def _leave_arrays(jax: Any, client: Any) -> None:
    """Leave the arrays of a session to the server, when the process ends.

    The end of the interpreter would drop them one by one, and the server with it.
    """
    arrays = [array for array in client.live_arrays() if not array.is_deleted()]
    for array in arrays:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(array))
    for array in arrays:
        # What is not waited for may not have been sent yet. An array that has come to nothing is
        # no reason to lose the others.
        with suppress(jax.errors.JaxRuntimeError, FloatingPointError):
            jax.block_until_ready(array)


def connect(
    address: str,
    *,
    token: str | None = None,
    previous_token: str | None = None,
    name: str | None = None,
    keep_all: bool = False,
    tls_ca: str | os.PathLike[str] | None = None,
    tls_cert: str | os.PathLike[str] | None = None,
    tls_key: str | os.PathLike[str] | None = None,
    timeout: float = 10.0,
    allow_plain: bool = False,
) -> Connection:
    """Have JAX compute on the devices of the server at ``address``, as ``HOST:PORT``.

    Call it before anything asks JAX for devices. ``token`` is a line of the server's
    ``--token-file``; the server takes it from jaxlib only with ``--allow-session-token``. ``name``
    is under what a server keeps the trees of `Connection.save`. What is kept belongs to its token:
    with ``previous_token``, which is among the server's still, `Connection.arrays` gives what that
    one kept, and the next `Connection.save` takes its place. With ``keep_all`` it also keeps, as
    ``NAME/NUMBER``, each array that JAX has at the end of the session: for other readers, since a
    client of JAX does not get those back.

    ``tls_ca`` is a file of certificates that the server's must be signed by; an address that
    begins with ``https://`` is encrypted, too, and verified by the system's authorities without
    it. ``tls_cert`` and ``tls_key`` are for servers that ask for a certificate of their clients.
    jaxlib's client cannot encrypt by itself, so a process beside this one does it. A token crosses
    a network without encryption only with ``allow_plain``.

    ``timeout`` is how many seconds are given to a server that is not there yet, or that takes no
    sessions at the moment.

    ::

        from serdes_ml import jax as sdj

        with sdj.connect("localhost:7171", token="…", tls_ca="authority.pem") as connection:
            print(connection.devices())

    Raises:
        Unreachable: if nothing there speaks the protocol, or TLS is wanted or refused.
        SessionRefused: if the server does not take the token, or has no session free.
        TokenRefused: if the server says that it wants a token.
        VersionMismatch: if it has no version in common with this jaxlib.
        RuntimeError: if JAX has its devices already, or another connection.
        ValueError: if an argument cannot be right, before anything is sent.
        WrongType: if one has a type that is not taken.
    """
    _check_types(token, previous_token, name, timeout)
    flags(keep_all=keep_all, allow_plain=allow_plain)
    endpoint = endpoint_of(address, tls_ca, tls_cert, tls_key)
    data = _initialization(token, name, keep_all)
    if previous_token is not None:
        if token is None or name is None:
            raise ValueError("previous_token is for what is kept; give token and name, too")
        previous_token = _token_of("previous_token", previous_token)
    if token is not None and not (endpoint.tls or endpoint.is_loopback or allow_plain):
        raise ValueError(
            f"the token would go to {endpoint} without encryption; name the authority of the"
            " server's certificate (tls_ca=…), or say allow_plain=True"
        )
    parts = _jax()
    with _lock:
        _check_unused(parts)
        deadline = time.monotonic() + timeout
        greet(endpoint, deadline, Unreachable)
        if endpoint.tls:
            with tunnel_to(endpoint, Unreachable) as target:
                client = _client(parts, endpoint, target, data, deadline)
        else:
            client = _client(parts, endpoint, endpoint.target, data, deadline)
        tokens = (token and token.strip(), previous_token)
        connection = Connection(parts, client, endpoint, name, tokens, keep_all)
        _open.append(connection)
    return connection


def _check_types(token: object, previous: object, name: object, timeout: object) -> None:
    for what, given in (("token", token), ("previous_token", previous), ("name", name)):
        if not isinstance(given, (str, type(None))):
            raise wrong_type(what, given, "a text, or None")
    _seconds(timeout)


def _seconds(timeout: object) -> float:
    found = number("timeout", timeout, "a number of seconds, more than 0")
    if not found > 0:
        raise ValueError(f"timeout is {timeout!r}; expected seconds, more than 0")
    return found


def _token_of(what: str, given: str) -> str:
    token = given.strip()
    if len(token) < 16 or not token.isascii() or any(c.isspace() for c in token):
        # The token itself is in no message.
        raise ValueError(
            f"{what} is no line of a server's token file: it has 16 characters or more, of"
            " ASCII, without spaces"
        )
    return token


def _initialization(token: str | None, name: str | None, keep_all: bool) -> dict[str, bytes]:
    data = {}
    if token is not None:
        data["serdes.token"] = _token_of("token", token).encode()
    if name is not None:
        if not name:
            raise ValueError("name is empty; expected a name for what is saved, or None")
        if keep_all:
            data["serdes.state.name"] = name.encode()
    elif keep_all:
        raise ValueError("keep_all keeps arrays under the connection's name; give name, too")
    return data


def _check_unused(parts: _Jax) -> None:
    if _open:
        raise RuntimeError(
            f"JAX is connected to {_open[0].address}; close that connection before another one"
        )
    if parts.bridge.backends_are_initialized():
        raise RuntimeError(
            "JAX has its devices already; call connect before anything asks for them (arrays,"
            " jax.devices(), jit), or jax.extend.backend.clear_backends() first"
        )


def _client(
    parts: _Jax, endpoint: Endpoint, target: str, data: dict[str, bytes], deadline: float
) -> Any:
    """Open a session, again and again where the server may take it in a moment."""
    # The client has no other credentials; what is encrypted, the tunnel encrypts.
    os.environ["IFRT_PROXY_USE_INSECURE_GRPC_CREDENTIALS"] = "true"
    proxy = parts.backend.ifrt_proxy
    while True:
        options = proxy.ClientConnectionOptions()
        options.connection_timeout_in_seconds = _ATTEMPTS_SECONDS
        if data:
            options.initialization_data = data
        try:
            return proxy.get_client(f"grpc://{target}", options)
        except Exception as error:
            refusal = refusal_of(str(error), endpoint, parts.release, "serdes.token" in data)
            if refusal.passes and time.monotonic() < deadline:
                continue
            raise refusal.error(refusal.message) from error


class Refusal(NamedTuple):
    """The meaning of an error of jaxlib's client."""

    error: Callable[[str], ConnectError]
    message: str
    passes: bool = False
    """True if the same attempt may succeed in a moment."""


# The text of a client whose session the server has ended before its first answer, by the moment
# in which it notices. The server's own words are lost in it.
_ENDED = ("CANCELLED", "writes no longer allowed", "writing to stream failed", "Stream removed")


def refusal_of(text: str, endpoint: Endpoint, release: str, with_token: bool) -> Refusal:
    """Return what a client's error means, and what to do about it."""
    _, _, words = text.partition("detailed error: ")
    words = (words or text).strip()
    if "no common" in words:
        return Refusal(
            VersionMismatch,
            f"jaxlib {release} and the server at {endpoint} do not fit: {words}. Both lines of"
            f" versions: `serdes negotiate {endpoint.url}`",
        )
    if "the token is none of this server's" in words:
        return Refusal(
            TokenRefused,
            f"{endpoint} does not know the token: pass one of the lines of its --token-file as"
            f" token=… ({words})",
        )
    if "UNAUTHENTICATED" in text or "PERMISSION_DENIED" in text:
        how = (
            "the server takes no tokens from clients of JAX, which cannot send metadata; start it"
            " with --allow-session-token"
            if with_token
            else "pass one of its --token-file as token=…, and start it with --allow-session-token,"
            " because clients of JAX cannot send metadata"
        )
        return Refusal(
            TokenRefused, f"{endpoint} admits no client without a token: {how} ({words})"
        )
    if "RESOURCE_EXHAUSTED" in text or "draining" in words:
        return Refusal(
            SessionRefused,
            f"the server at {endpoint} takes no more sessions at the moment: {words}",
            passes=True,
        )
    if any(mark in words for mark in _ENDED):
        token = "the token is none of its own" if with_token else "it wants a token (token=…)"
        return Refusal(
            SessionRefused,
            f"the server at {endpoint} ended the session before it began: {token}, it has no"
            f" session free (--limit sessions=N), or it is stopping. Its log says which; jaxlib"
            f" {release} does not hand on its words ({words})",
        )
    return Refusal(
        Unreachable,
        f"no session with {endpoint}: {words}; is it `serdes serve`, and is it still there?",
        passes=any(code in text for code in ("UNAVAILABLE", "DEADLINE_EXCEEDED")),
    )
