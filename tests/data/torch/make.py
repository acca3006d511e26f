"""Writes the files of this folder with the PyTorch that runs it.

    python make.py FOLDER

Makes FOLDER/VERSION with files of `torch.save`, and `expected.json`: of each file its tensors, with the
type in PyTorch's words, the shape, and the bytes row by row, as PyTorch itself has them.
"""

import collections
import json
import os
import sys

import torch

NEW = {"_use_new_zipfile_serialization": True}
OLD = {"_use_new_zipfile_serialization": False}
TYPES = [
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64",
    "complex64", "complex128", "uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2",
    "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu",
]  # fmt: skip


def bytes_of(tensor):
    """The bytes of a tensor, row by row."""
    tensor = tensor.detach().cpu()
    if hasattr(tensor, "resolve_conj"):
        tensor = tensor.resolve_conj().resolve_neg()
    tensor = tensor.contiguous().clone().reshape(-1)
    if hasattr(torch, "UntypedStorage") or hasattr(torch, "_UntypedStorage"):
        storage = getattr(tensor, "untyped_storage", lambda: tensor.storage()._storage)()
        return bytes(storage.tolist() if tensor.numel() else [])
    name = str(tensor.dtype)
    if name == "torch.bfloat16":
        # bfloat16 is the upper half of float32.
        import struct

        return b"".join(struct.pack("<f", float(one))[2:] for one in tensor)
    return tensor.numpy().tobytes()


def leaves(value, way=""):
    """The tensors of nested containers, by the way to each."""
    if isinstance(value, torch.Tensor):
        yield way, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, "%s/%s" % (way, key) if way else str(key))
    elif isinstance(value, (list, tuple)):
        for key, item in enumerate(value):
            yield from leaves(item, "%s/%s" % (way, key) if way else str(key))


def every_type():
    """A tensor of each type that this PyTorch has."""
    found = collections.OrderedDict()
    for name in TYPES:
        dtype = getattr(torch, name, None)
        if dtype is None:
            continue
        try:
            found[name] = torch.arange(6, dtype=torch.float32).reshape(2, 3).to(dtype)
        except (RuntimeError, TypeError):
            # Types that are names alone in this PyTorch.
            continue
    return found


def views():
    """Tensors that lie in each other's storages, in many ways."""
    base = torch.arange(24, dtype=torch.float32).reshape(4, 6)
    return {
        "base": base,
        "again": base,
        "same_place": base.view(4, 6),
        "turned": base.t(),
        "row": base[2],
        "columns": base[:, 1:5:2],
        "cube": base.view(2, 2, 6).permute(2, 0, 1),
        "spread": base[0, :3].expand(2, 3),
        "scalar": base[1, 1],
        "empty": base[:0],
        "number": torch.tensor(3, dtype=torch.int64),
    }


def training_state():
    """What a training loop saves: nested, with plain values between."""
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 1))
    model[1].weight = torch.nn.Parameter(model[1].weight.detach().clone())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.125)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    return {
        "model": model.state_dict(),
        "parameters": list(model.parameters()),
        "optimizer": optimizer.state_dict(),
        "step": 7,
        "loss": 0.5,
        "best": float("inf"),
        "name": "caf\u00e9",
        "done": False,
        "scheduler": None,
    }


def values():
    """What lies between the tensors of training checkpoints, NumPy's values among it."""
    import numpy

    parameter = torch.nn.Parameter(torch.ones(2))
    parameter.tag = "tied"
    found = {
        "w": torch.arange(6.0).reshape(2, 3),
        "parameter": parameter,
        "dtype": torch.float16,
        "device": torch.device("cuda:1"),
        "bytes": b"raw",
        "lr": numpy.float64(0.001),
        "half": numpy.float32(0.1),
        "count": numpy.int64(12),
        "large": numpy.uint64(2**64 - 1),
        "done": numpy.bool_(True),
        "word": numpy.str_("caf\u00e9"),
        "mean": numpy.arange(4, dtype=numpy.float32),
        "turned": numpy.asfortranarray(numpy.arange(6, dtype=numpy.int16).reshape(2, 3)),
        "big": numpy.arange(3, dtype=">i4"),
        "none": numpy.zeros((0, 2), numpy.float32),
        "rng": numpy.random.RandomState(0).get_state(),
        "torch_rng": torch.get_rng_state()[:8].clone(),
        1.5: torch.ones(1),
        (1, "x"): 3,
    }
    if hasattr(torch.nn, "Buffer"):
        found["buffer"] = torch.nn.Buffer(torch.arange(3.0))
    if hasattr(torch, "float4_e2m1fn_x2"):
        packed = torch.tensor([[0x21, 0x43], [0x65, 0x87]], dtype=torch.uint8)
        found["float4"] = packed.view(torch.float4_e2m1fn_x2)
    return found


def main():
    """Write all files."""
    torch.manual_seed(0)
    folder = os.path.join(sys.argv[1], torch.__version__.split("+")[0])
    os.makedirs(folder)
    expected = {}

    def save(name, value, **options):
        if "_use_new_zipfile_serialization" not in (torch.save.__kwdefaults__ or {}) and (
            "_use_new_zipfile_serialization" not in torch.save.__code__.co_varnames
        ):
            if options == NEW:
                return
            options = {}
        torch.save(value, os.path.join(folder, name), **options)
        expected[name] = {
            way or os.path.splitext(name)[0]: {
                "dtype": str(tensor.dtype),
                "shape": list(tensor.shape),
                "bytes": bytes_of(tensor).hex(),
            }
            for way, tensor in leaves(value)
        }

    for ending, options in (("", NEW), ("_legacy", OLD)):
        save("every_type%s.pt" % ending, every_type(), **options)
        save("views%s.pt" % ending, views(), **options)
        save("training_state%s.pt" % ending, training_state(), **options)
        save("alone%s.pt" % ending, torch.arange(3), **options)
    if hasattr(torch.serialization, "set_crc32_options"):
        torch.serialization.set_crc32_options(False)
        save("without_checksums.pt", {"w": torch.arange(4.0), "turned": torch.ones(2, 3).t()})
        torch.serialization.set_crc32_options(True)
    torch.save(values(), os.path.join(folder, "values.pt"))
    torch.save(values(), os.path.join(folder, "values_legacy.pt"), **OLD)
    torch.save(values(), os.path.join(folder, "values_5.pt"), pickle_protocol=5)
    # What is refused: a module with its class, a program, tensors that are not dense numbers.
    torch.save(torch.nn.Linear(1, 1), os.path.join(folder, "module.pt"))
    others = {"w": torch.ones(2), "sparse": torch.eye(2).to_sparse()}
    if hasattr(torch.Tensor, "resolve_conj"):
        others["conjugate"] = torch.tensor([1j]).conj()
    if hasattr(torch, "quantize_per_tensor"):
        others["quantized"] = torch.quantize_per_tensor(torch.ones(2), 0.5, 0, torch.qint8)
    torch.save(others, os.path.join(folder, "others.pt"))
    if hasattr(torch, "jit") and hasattr(torch.jit, "script"):
        torch.jit.save(torch.jit.script(torch.nn.ReLU()), os.path.join(folder, "program.pt"))
    with open(os.path.join(folder, "expected.json"), "w") as file:
        json.dump(expected, file, indent=1, sort_keys=True)
        file.write("\n")


if __name__ == "__main__":
    main()
