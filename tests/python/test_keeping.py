"""Trees that a server is to keep: it does, or says that it cannot."""

from __future__ import annotations

import pathlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

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


@contextmanager
def serving(*options: str) -> Iterator[str]:
    """A server of the package's command, and its address."""
    command = [sys.executable, "-m", "serdes_ml", "serve", "--listen", "127.0.0.1:0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().rsplit(maxsplit=1)[-1]
        finally:
            server.send_signal(signal.SIGTERM)


def client(address: str) -> str:
    """What a client prints that saves a tree, and asks for it."""
    command = [sys.executable, "-c", CLIENT, address]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def test_a_server_with_a_state_keeps_a_tree(tmp_path: pathlib.Path) -> None:
    with serving("--state", str(tmp_path / "kept.sds")) as address:
        assert client(address) == "['step', 'w']\n"


def test_a_server_without_a_state_keeps_nothing_and_save_says_so() -> None:
    with serving() as address:
        said = client(address)
    assert "keeps no arrays; start it with `--state FILE`" in said, said
    assert said.endswith("expected a server with --state FILE\n[]\n"), said
