"""Fit of a state with devices: of a plug-in, and of JAX."""

from __future__ import annotations

import os
import pathlib
from typing import Any

import numpy as np
import pytest
import serdes_ml as sd

MERGED = "v0/merged.sds"


def test_fits_compares_each_device_of_a_plugin(golden: pathlib.Path) -> None:
    fit = sd.fits(golden / MERGED, "host:devices=4,memory=65")
    assert not fit
    assert not fit.ok
    assert (fit.tensors, fit.bytes, fit.devices) == (4, 216, "SERDES_HOST_EMBEDDED")
    memory = [row for row in fit.rows if row.what == "memory"]
    assert [(row.device, row.needed, row.offered, row.ok) for row in memory] == [
        (0, 66, 65, False),
        (1, 60, 65, True),
        (2, 60, 65, True),
        (3, 60, 65, True),
    ]
    assert sd.FitRow("mesh", True, 4, 4, None, "4 devices needed, 4 offered") in fit.rows
    assert fit.to_dict()["one_device"]["needed"] == 216
    assert "memory  does not fit: device 0: 66 B needed, 65 B free" in str(fit)
    assert repr(fit).endswith("does not fit SERDES_HOST_EMBEDDED: 4 tensors, 216 B: memory>")
    assert "<td>memory</td><td>does not fit</td><td>0</td>" in fit._repr_html_()
    assert sd.fits(golden / MERGED, "host:devices=4,memory=65", only="w").ok


def test_fits_says_that_there_are_too_few_devices(golden: pathlib.Path) -> None:
    fit = sd.fits(golden / MERGED, "host:devices=2,memory=1000")
    assert [row.what for row in fit.rows if row.ok is False] == ["mesh"]
    assert fit.rows[-1].message == "no device: 60 B needed, for what was saved from device 3"


def test_fits_names_an_only_that_is_no_tensor(path: pathlib.Path) -> None:
    sd.save_file({"a[0]": np.ones(2), "b": np.ones(2)}, path)
    assert sd.fits(path, only="a*").tensors == 1
    with pytest.raises(KeyError, match="'c' matches no name"):
        sd.fits(path, only="c")


def test_fits_of_a_plugin_that_is_none_says_why(path: pathlib.Path) -> None:
    sd.save_file({"w": np.ones(2)}, path)
    with pytest.raises(sd.SerdesError, match="gives no devices to compare with"):
        sd.fits(path, str(path))
    with pytest.raises(sd.NotFound):
        sd.fits(path.with_name("nowhere.sds"))
    with pytest.raises(sd.NotFound):
        sd.fits("-")
    with pytest.raises(ValueError, match="device"):
        sd.fits(path, device=-1)


def test_fits_gives_a_plugin_so_much_time(path: pathlib.Path) -> None:
    sd.save_file({"w": np.ones(2)}, path)
    with pytest.raises(TimeoutError, match=r"host takes longer than 0\.001 s"):
        sd.fits(path, timeout=0.001)


class Device:
    """A device of JAX that reports its free memory."""

    def __init__(self, free: int) -> None:
        self.free = free

    def memory_stats(self) -> dict[str, int]:
        return {"bytes_limit": 1000 + self.free, "bytes_in_use": 1000}


@pytest.fixture
def sdj(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Returns the module, with devices whose free memory is 100 bytes plus their id."""
    os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    pytest.importorskip("jax")
    from serdes_ml import _fits_jax, jax

    monkeypatch.setattr(_fits_jax, "_free", lambda device: 100 + device.id)
    return jax


def mesh_of(count: int, *names: str) -> Any:
    """Returns a mesh of devices over named axes, of which all but the first have size 1."""
    import jax

    devices = np.array(jax.devices()[:count]).reshape(-1, *[1] * (len(names) - 1))
    return jax.sharding.Mesh(devices, names)


def test_fits_counts_what_load_puts_on_each_device(path: pathlib.Path, sdj: Any) -> None:
    import jax
    import jax.numpy as jnp
    from jax.sharding import NamedSharding, PartitionSpec

    four = mesh_of(4, "x")
    rows = NamedSharding(four, PartitionSpec("x"))
    tree = {"w": jax.device_put(jnp.ones((8, 12)), rows), "b": jnp.ones(3), "step": 7}
    tree["name"] = np.array(["text"])
    sdj.save(path, tree)
    fit = sdj.fits(path, mesh=four)
    # A quarter of w, and all of b.
    memory = [row for row in fit.rows if row.what == "memory"]
    assert [(row.device, row.needed, row.offered, row.ok) for row in memory] == [
        (0, 108, 100, False),
        (1, 108, 101, False),
        (2, 108, 102, False),
        (3, 108, 103, False),
    ]
    assert (fit.ok, fit.devices, fit.bytes) == (False, "4 cpu devices", 396)
    assert "host" in [row.what for row in fit.rows]
    assert sdj.fits(path, mesh=mesh_of(8, "x")).ok
    # With the saved shardings b is on one device only.
    saved = sdj.fits(path, devices=jax.devices()[:4])
    assert [row.needed for row in saved.rows if row.what == "memory"] == [108, 96, 96, 96]
    assert [row.ok for row in saved.rows if row.what == "mesh"] == [True]
    few = sdj.fits(path, devices=jax.devices()[:2])
    assert [row.ok for row in few.rows if row.what == "mesh"] == [False]


def test_fits_has_a_row_for_each_leaf_that_cannot_lie_there(path: pathlib.Path, sdj: Any) -> None:
    import jax
    import jax.numpy as jnp
    from jax.sharding import NamedSharding, PartitionSpec

    rows = NamedSharding(mesh_of(2, "x"), PartitionSpec("x"))
    sdj.save(path, {"w": jax.device_put(jnp.ones(2), rows), "bias": jnp.ones(2)})
    fit = sdj.fits(path, mesh=mesh_of(2, "y"))
    assert [(row.what, row.needed) for row in fit.rows if row.ok is False] == [("leaf", "w")]
    assert "'x'" in fit.rows[-1].message
    half = jax.ShapeDtypeStruct((2,), jnp.float16)
    like = {"w": half, "bia": half}
    refused = sdj.fits(path, like)
    assert [row.needed for row in refused.rows if row.what == "leaf"] == ["bia", "w"]
    assert "has 'bias'" in refused.rows[-2].message
    # Two bytes per element, on the default device.
    fit = sdj.fits(path, {"w": half}, cast=True)
    assert [(row.what, row.ok, row.needed) for row in fit.rows if row.device is not None] == [
        ("memory", True, 4)
    ]
    with pytest.raises(ValueError, match="choose"):
        sdj.fits(path, like, devices=jax.devices())


def test_a_device_that_says_nothing_is_no_refusal(path: pathlib.Path) -> None:
    pytest.importorskip("jax")
    from serdes_ml import _fits_jax

    class Silent:
        def memory_stats(self) -> None:
            return None

    class Broken:
        def memory_stats(self) -> None:
            raise RuntimeError("UNIMPLEMENTED")

    assert _fits_jax._free(Device(24)) == 24
    assert _fits_jax._free(Device(-1)) == 0
    assert [_fits_jax._free(one) for one in (Silent(), Broken())] == [None, None]
