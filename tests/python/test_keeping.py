"""Trees that a server should keep: it keeps them, or says that it cannot."""

from __future__ import annotations

import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import pytest
import serdes_ml as sd

pytest.importorskip("jax", minversion="0.8")

CLIENT = """
import sys
import numpy as np
from serdes_ml import jax as sdj

with sdj.connect(sys.argv[1], name="run") as connection:
    import jax

    try:
        connection.save({"w": jax.device_put(np.arange(3, dtype=np.float32)), "step": 7})
    except sdj.ConnectError as error:
        print("refused:", error, "| expected", error.expected)
    print(sorted(connection.arrays()))
"""


# Saves twice, prints the tree, and saves again while the server waits for its sessions to end.
DRAINED = """
import sys
import numpy as np
from serdes_ml import jax as sdj

with sdj.connect(sys.argv[1], name="run") as connection:
    import jax

    for step in range(2):
        connection.save({"w": jax.device_put(np.full(3, step, np.float32)), "step": step})
    found = connection.arrays()
    print(found["step"], np.asarray(found["w"]).tolist(), flush=True)
    sys.stdin.readline()
    connection.save({"w": found["w"], "step": 2})
    print(connection.arrays()["step"], flush=True)
"""

# The server ends the package's own session, which has no arrays, and the next call opens another.
IDLE = """
import sys, time
import numpy as np
from serdes_ml import jax as sdj

with sdj.connect(sys.argv[1], name="run") as connection:
    import jax

    kept = jax.block_until_ready(jax.device_put(np.arange(3)))
    print(connection.arrays())
    time.sleep(3)
    connection.save({"w": kept})
    time.sleep(3)
    print(sorted(connection.arrays()), flush=True)
    connection.close()
    try:
        connection.arrays()
    except ValueError as error:
        print(error)
"""

TOKENS = """
import sys
import numpy as np
from serdes_ml import jax as sdj

address, token, *previous = sys.argv[1:]
previous = previous[0] if previous else None
with sdj.connect(address, token=token, previous_token=previous, name="run") as connection:
    import jax

    found = connection.arrays()
    print(found.get("step"), np.asarray(found.get("w", [])).tolist())
    connection.save({"w": jax.device_put(np.arange(3)), "step": found.get("step", 0) + 1})
    print(connection.arrays()["step"])
"""

OLD, NEW = "the-old-token-of-a-client", "the-new-token-of-a-client"


class Server(NamedTuple):
    """A server of the package's command."""

    process: subprocess.Popen[str]
    address: str
    log: pathlib.Path

    def sessions(self) -> int:
        """Returns the number of sessions that were opened."""
        return self.log.read_text().count("session open")

    def read_tokens(self) -> None:
        """Makes the server read its tokens again, and waits until it has."""
        before, end = self.log.read_text().count("other tokens"), time.monotonic() + 30
        self.process.send_signal(signal.SIGHUP)
        while self.log.read_text().count("other tokens") == before:
            assert time.monotonic() < end, self.log.read_text()
            time.sleep(0.02)


@contextmanager
def serving(log: pathlib.Path, *options: str) -> Iterator[Server]:
    """Starts a server that logs its sessions, and stops it at the end."""
    command = [sys.executable, "-m", "serdes_ml", "serve", "--listen", "127.0.0.1:0", "-v"]
    with (
        log.open("w") as errors,
        subprocess.Popen(
            [*command, *options], stdout=subprocess.PIPE, stderr=errors, text=True
        ) as server,
    ):
        assert server.stdout is not None
        try:
            yield Server(server, server.stdout.readline().rsplit(maxsplit=1)[-1], log)
        finally:
            if server.poll() is None:
                server.send_signal(signal.SIGTERM)


@pytest.fixture
def log(tmp_path: pathlib.Path) -> pathlib.Path:
    """Returns a path for the log of a server."""
    return tmp_path / "log"


def client(program: str, *arguments: str) -> str:
    """Runs a client; returns its output."""
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def test_a_server_with_a_state_keeps_a_tree(tmp_path: pathlib.Path, log: pathlib.Path) -> None:
    with serving(log, "--state", str(tmp_path / "kept.sds")) as server:
        assert client(CLIENT, server.address) == "['step', 'w']\n"


def test_a_server_without_a_state_keeps_nothing_and_save_says_so(log: pathlib.Path) -> None:
    with serving(log) as server:
        said = client(CLIENT, server.address)
    assert "keeps no arrays; start it with `--state FILE`" in said, said
    assert said.endswith("expected a server with --state FILE\n[]\n"), said


def test_save_takes_one_session_which_outlasts_a_drain(
    tmp_path: pathlib.Path, log: pathlib.Path
) -> None:
    state = tmp_path / "kept.sds"
    with serving(log, "--state", str(state), "--drain", "60") as server:
        command = [sys.executable, "-c", DRAINED, server.address]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as program:
            assert program.stdin is not None
            assert program.stdout is not None
            assert program.stdout.readline() == "1 [1.0, 1.0, 1.0]\n"
            # The session of JAX, and one for all saves and reads of the package.
            assert server.sessions() == 2
            server.process.send_signal(signal.SIGTERM)
            time.sleep(0.5)
            said, _ = program.communicate("\n", timeout=60)
        assert (said, server.sessions()) == ("2\n", 2)
        assert server.process.wait(timeout=60) == 0
    names = sorted(name.partition("@")[0] for name in sd.load_file(state))
    assert names == ["run.arrays/.index", "run.arrays/w"]


def test_a_session_that_the_server_ended_is_opened_anew(
    tmp_path: pathlib.Path, log: pathlib.Path
) -> None:
    options = ("--state", str(tmp_path / "kept.sds"), "--limit", "idle-session-seconds=1")
    with serving(log, *options) as server:
        said = client(IDLE, server.address)
        # The session of JAX; one without arrays, which ended; and one that has an array, and stays.
        assert server.sessions() == 3, log.read_text()
    lines = said.splitlines()
    assert lines[:2] == ["{}", "['w']"], said
    assert lines[2].endswith("is closed; connect again"), said


def test_arrays_follow_a_new_token(tmp_path: pathlib.Path, log: pathlib.Path) -> None:
    tokens = tmp_path / "tokens"

    def write(*lines: str) -> None:
        tokens.touch(0o600)
        tokens.write_text("\n".join(lines))

    write(OLD)
    state = ("--state", str(tmp_path / "kept.sds"))
    with serving(log, *state, "--token-file", str(tokens), "--allow-session-token") as server:
        assert client(TOKENS, server.address, OLD) == "None []\n1\n"
        write(OLD, NEW)
        server.read_tokens()
        # The first save with the new token replaces the arrays that were kept for the old one.
        assert client(TOKENS, server.address, NEW, OLD) == "1 [0, 1, 2]\n2\n"
        write(NEW)
        server.read_tokens()
        assert client(TOKENS, server.address, NEW) == "2 [0, 1, 2]\n3\n"
