"""Conversion of other programs' files into states and back."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import numpy as np
import pytest
import serdes_ml as sd


def torch_file(data: pathlib.Path, name: str) -> pathlib.Path:
    """Returns the path of a file that real PyTorch wrote."""
    return data / "torch" / "2.15.0" / name


@pytest.mark.parametrize("form", ["", "_legacy"])
def test_files_of_torch_become_states_without_torch(
    path: pathlib.Path, data: pathlib.Path, form: str
) -> None:
    source = torch_file(data, f"views{form}.pt")
    converted = sd.convert(source, path)
    assert converted.skipped == {}
    expected = json.loads(torch_file(data, "expected.json").read_text())[source.name]
    loaded = sd.load_file(path)
    assert sorted(loaded) == sorted(expected)
    for name, tensor in expected.items():
        assert loaded[name].tobytes().hex() == tensor["bytes"], name
        assert list(loaded[name].shape) == tensor["shape"]
    # Several names of a tensor give one array.
    assert loaded["again"] is loaded["base"]
    assert converted.tensors == len(expected) - 2


def test_every_type_of_torch_has_a_place(path: pathlib.Path, data: pathlib.Path) -> None:
    sd.convert(torch_file(data, "every_type.pt"), path)
    loaded = sd.load_file(path)
    assert len(loaded) == 20
    for name, array in loaded.items():
        assert array.dtype.name == name
        wanted = [bool(n) for n in range(6)] if name == "bool" else [0, 1, 2, 3, 4, 5]
        if name != "float8_e8m0fnu":  # which has no 0
            assert array.reshape(-1).astype(np.complex128).tolist() == wanted


def test_numpy_values_in_files_of_torch_are_data(path: pathlib.Path, data: pathlib.Path) -> None:
    source = torch_file(data, "values.pt")
    with pytest.raises(sd.Unsupported, match="bytes"):
        sd.convert(source, path)
    converted = sd.convert(source, path, skip_unsupported=True)
    assert list(converted.skipped) == ["bytes"]
    assert sorted(converted.left_out) == ["(1, 'x')", "1.5", "buffer", "parameter"]
    assert "persistent" in converted.left_out["buffer"]
    loaded = sd.load_file(path)
    assert loaded["mean"].tolist() == [0, 1, 2, 3]
    assert loaded["turned"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert loaded["big"].dtype == np.int32
    assert loaded["rng/1"].shape == (624,)
    npz = path.with_suffix(".npz")
    assert "lr" in sd.convert(source, npz, skip_unsupported=True, only=["w"]).left_out


@pytest.mark.parametrize("release", ["2.2.2", "2.15.0"])
def test_checkpoints_of_torch_distributed_need_no_torch(
    path: pathlib.Path, data: pathlib.Path, release: str
) -> None:
    folder = data / "torch_distributed" / release
    assert sd.check(folder / "checkpoint", verify_data=True)
    sd.convert(folder / "checkpoint", path)
    expected = json.loads((folder / "expected.json").read_text())
    loaded = sd.load_file(path)
    assert sorted(loaded) == sorted(expected)
    for name, tensor in expected.items():
        assert loaded[name].tobytes().hex() == tensor["bytes"], name


def test_what_is_no_tensor_is_named(path: pathlib.Path, data: pathlib.Path) -> None:
    source = torch_file(data, "others.pt")
    with pytest.raises(sd.Unsupported, match="sparse"):
        sd.convert(source, path)
    assert not path.exists()
    converted = sd.convert(source, path, skip_unsupported=True)
    assert sorted(converted.skipped) == ["conjugate", "quantized", "sparse"]
    assert list(sd.load_file(path)) == ["w"]
    with pytest.raises(sd.Unsupported, match=r"torch\.nn\.modules\.linear\.Linear"):
        sd.convert(torch_file(data, "module.pt"), path)
    with pytest.raises(KeyError, match="nothing"):
        sd.convert(torch_file(data, "views.pt"), path, only="nothing")


def test_shards_and_archives(tmp_path: pathlib.Path) -> None:
    arrays = {"a": np.arange(100, dtype=np.float32), "b": np.ones((3, 4), np.int16)}
    np.savez(tmp_path / "a.npz", **arrays)
    seen: list[tuple[int, int]] = []
    target = tmp_path / "m.safetensors"
    sd.convert(
        tmp_path / "a.npz", target, shard_bytes=300, progress=lambda *both: seen.append(both)
    )
    assert seen[-1] == (424, 424)
    index = tmp_path / "m.safetensors.index.json"
    assert len(set(json.loads(index.read_text())["weight_map"].values())) == 2
    sd.convert([index], tmp_path / "a.sds", only=["a", "b*"])
    loaded = sd.load_file(tmp_path / "a.sds")
    assert all(np.array_equal(loaded[name], arrays[name]) for name in arrays)
    with pytest.raises(ValueError, match="shard_bytes"):
        sd.convert(index, target, shard_bytes=0)
    for source in (tmp_path / "gone.pt", tmp_path / "gone.npz"):
        with pytest.raises(sd.NotFound):
            sd.convert(source, tmp_path / "b.sds")


def test_several_sources_are_one_state(tmp_path: pathlib.Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(3))
    np.save(tmp_path / "b.npy", np.arange(4))
    sd.convert([tmp_path / "a.npy", tmp_path / "b.npy"], tmp_path / "both.sds")
    assert sorted(sd.load_file(tmp_path / "both.sds")) == ["a", "b"]
    with pytest.raises(ValueError, match="a"):
        sd.convert([tmp_path / "a.npy", tmp_path / "a.npy"], tmp_path / "twice.sds")


def orbax_tree() -> dict[str, Any]:
    """Returns a training state with leaves of all kinds."""
    import jax
    import jax.numpy as jnp
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    devices = np.array(jax.devices())[: len(jax.devices()) // 2 * 2].reshape(-1, 2)
    mesh = Mesh(devices, ("x", "y"))
    w = jnp.arange(64.0).reshape(8, 8)
    return {
        "params": {
            "w": jax.device_put(w, NamedSharding(mesh, PartitionSpec("x", "y"))),
            "b": jnp.ones(3, jnp.bfloat16),
        },
        "step": 7,
        "rate": 0.5,
        "counts": np.arange(5),
        "nested": [jnp.int8(3), {"k": jnp.full((1, 2), 2, jnp.int4)}],
    }


@pytest.mark.parametrize(
    "options", [{}, {"use_ocdbt": False}, {"use_zarr3": True}], ids=["ocdbt", "zarr", "zarr3"]
)
def test_checkpoints_of_orbax_become_states(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, bool]
) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--xla_force_host_platform_device_count=8")
    ocp = pytest.importorskip("orbax.checkpoint")
    import jax
    from serdes_ml import _convert
    from serdes_ml import jax as sdj

    tree = orbax_tree()
    checkpointer = ocp.Checkpointer(ocp.PyTreeCheckpointHandler(**options))
    checkpointer.save(tmp_path / "checkpoint", tree)
    # The second size splits arrays into several pieces.
    for size in (_convert._PIECE, 32):
        monkeypatch.setattr(_convert, "_PIECE", size)
        state = tmp_path / f"{size}.sds"
        converted = sd.convert(tmp_path / "checkpoint", state)
        assert converted.tensors == 5
        assert sd.check(state, verify_data=True)
        # A list is loaded as a list, as in the checkpoint.
        assert jax.tree.structure(sdj.load(state)) == jax.tree.structure(tree)
        loaded = sdj.load(state, like=tree)
        assert (loaded["step"], loaded["rate"]) == (7, 0.5)
        np.testing.assert_array_equal(loaded["params"]["w"], tree["params"]["w"])
        np.testing.assert_array_equal(loaded["counts"], tree["counts"])
        assert loaded["params"]["b"].dtype == "bfloat16"
        assert loaded["nested"][1]["k"].tolist() == [[2, 2]]
        assert loaded["params"]["w"].sharding == tree["params"]["w"].sharding


def test_steps_and_damage_of_orbax(tmp_path: pathlib.Path) -> None:
    ocp = pytest.importorskip("orbax.checkpoint")
    with ocp.CheckpointManager(tmp_path / "run") as manager:
        manager.save(3, args=ocp.args.StandardSave({"w": np.arange(4.0)}))
        manager.wait_until_finished()
        manager.save(5, args=ocp.args.StandardSave({"w": np.arange(4.0)}))
        manager.wait_until_finished()
    with pytest.raises(sd.Unsupported, match="with steps 3, 5: name one") as raised:
        sd.convert(tmp_path / "run", tmp_path / "a.sds")
    assert str(tmp_path / "run" / "5") in str(raised.value.remedy)
    sd.convert(tmp_path / "run" / "3", tmp_path / "a.sds")
    assert sd.load_file(tmp_path / "a.sds")["w"].tolist() == [0, 1, 2, 3]
    item = tmp_path / "run" / "3" / "default"
    (item / "manifest.ocdbt").write_bytes(b"damaged")
    with pytest.raises(sd.SerdesError, match="w"):
        sd.convert(item, tmp_path / "b.sds")
    (item / "_METADATA").write_text("[]")
    with pytest.raises(sd.Corrupt, match="_METADATA"):
        sd.convert(item, tmp_path / "b.sds")
    (item / "_METADATA").unlink()
    with pytest.raises(sd.Unsupported, match="_METADATA"):
        sd.convert(item, tmp_path / "b.sds")
    assert not (tmp_path / "b.sds").exists()
