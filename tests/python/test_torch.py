"""State dicts of PyTorch."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest
import serdes_ml as sd

torch = pytest.importorskip("torch")

from serdes_ml import torch as sdt  # noqa: E402

DTYPES = [
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.complex64,
    torch.complex128,
]
# Types that older releases do not have.
DTYPES += [
    getattr(torch, name) for name in ("float8_e4m3fn", "float8_e5m2") if hasattr(torch, name)
]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)], ids=str)
def test_every_type_comes_back(path: pathlib.Path, dtype: Any, shape: tuple[int, ...]) -> None:
    tensor = torch.arange(6)[: int(np.prod(shape))].reshape(shape).to(dtype)
    sdt.save_file({"w": tensor}, path)
    for loaded in (sdt.load_file(path)["w"], sd.load_file(path, framework="torch")["w"]):
        assert loaded.dtype == dtype
        assert loaded.shape == tensor.shape
        assert torch.equal(loaded.to(torch.complex128), tensor.to(torch.complex128))


class Tied(torch.nn.Module):  # type: ignore[misc]
    """A model whose two layers have one weight."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(5, 4)
        self.head = torch.nn.Linear(4, 5, bias=False)
        self.head.weight = self.embedding.weight


def test_tied_weights_are_stored_once_and_come_back_tied(path: pathlib.Path) -> None:
    model = Tied()
    sdt.save_file(model.state_dict(), path, metadata={"step": "1"})
    assert [one["name"] for one in sd.inspect(path)["tensors"]] == ["embedding.weight"]
    loaded = sdt.load_file(path)
    assert loaded["head.weight"].data_ptr() == loaded["embedding.weight"].data_ptr()
    other = Tied()
    other.load_state_dict(loaded)
    assert torch.equal(other.head.weight, model.head.weight)
    arrays = sd.load_file(path)
    assert arrays["head.weight"] is arrays["embedding.weight"]
    with sd.safe_open(path, framework="torch") as f:
        assert f.keys() == ["embedding.weight", "head.weight"]
        assert f.metadata() == {"step": "1"}
        assert f.get_shape("head.weight") == [5, 4]
        assert torch.equal(f.get_tensor("head.weight"), model.head.weight)
        assert torch.equal(f.get_slice("head.weight")[1:3], model.head.weight[1:3])
    assert list(sdt.load_file(path, only="head.*")) == ["head.weight"]


def test_views_are_tensors_of_their_own(path: pathlib.Path) -> None:
    base = torch.arange(12.0).reshape(3, 4)
    tensors = {"base": base, "t": base.T, "row": base[1], "conj": torch.ones(2) * 1j}
    tensors["conj"] = tensors["conj"].conj()
    sdt.save_file(tensors, path)
    loaded = sdt.load_file(path)
    assert all(torch.equal(loaded[name], tensors[name]) for name in tensors)


def test_what_is_no_dense_tensor_is_refused(path: pathlib.Path) -> None:
    for value in (3, [torch.ones(1)], np.ones(1), torch.eye(3).to_sparse()):
        with pytest.raises(TypeError, match="'x'"):
            sdt.save_file({"x": value}, path)
    assert not path.exists()


def test_types_that_torch_does_not_have_are_named(path: pathlib.Path) -> None:
    import ml_dtypes

    sd.save_file({"narrow": np.ones(2, ml_dtypes.int4)}, path)
    with pytest.raises(TypeError, match="'narrow' holds int4"):
        sdt.load_file(path)


def test_tensors_that_no_state_holds_are_named(path: pathlib.Path) -> None:
    for tensor in (torch.empty(2, device="meta"), torch.empty(2, dtype=torch.complex32)):
        for save in (lambda tensors: sdt.save_file(tensors, path), sd.save):
            with pytest.raises(TypeError, match="'odd' is"):
                save({"odd": tensor})
    assert list(path.parent.iterdir()) == []
