"""Tests real JAX with a PJRT plug-in that is written with the SDK of this project.

    PYTHON tests/interop/pjrt_sdk.py --plugin libserdes_host_pjrt.so

JAX finds the plug-in in both ways that users have: registered by a program, and named in the environment. It puts arrays of every type
onto four devices, in every memory layout, whole and in shards, copies them between devices and memories, reads them, deletes them; every
byte is compared.
"""

import argparse
import os
import subprocess
import sys
import threading

from checks import Checks

PLATFORM = "serdes_host"


def fresh(numpy, jax, dtype, count, seed):
    """Returns `count` values of a type, many of which differ."""
    bits = jax.dtypes.iinfo(dtype).bits if jax.numpy.issubdtype(dtype, jax.numpy.integer) else None
    if dtype == numpy.bool_:
        return numpy.random.default_rng(seed).integers(0, 2, count).astype(dtype)
    if bits is not None and bits < 8:
        return numpy.random.default_rng(seed).integers(jax.dtypes.iinfo(dtype).min, jax.dtypes.iinfo(dtype).max + 1, count).astype(dtype)
    # The upper half of a four-bit number's byte is zero.
    most = 16 if "float4" in dtype.name else 256
    raw = numpy.random.default_rng(seed).integers(0, most, count * dtype.itemsize, dtype=numpy.uint8)
    return raw.view(dtype)


def same(numpy, left, right):
    """Returns True if two arrays have the same type, shape and bytes."""
    left, right = numpy.ascontiguousarray(left), numpy.ascontiguousarray(right)
    return left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes()


def types(numpy, jax):
    names = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 bfloat16 complex64 complex128".split()
    small = "int4 uint4 int2 uint2 float8_e5m2 float8_e4m3fn float8_e4m3b11fnuz float8_e5m2fnuz float8_e4m3fnuz float8_e4m3 float8_e3m4 " \
        "float8_e8m0fnu float4_e2m1fn"
    found = [numpy.dtype(getattr(jax.numpy, name, None) or name) for name in names]
    return found + [numpy.dtype(getattr(jax.numpy, name)) for name in small.split() if hasattr(jax.numpy, name)]


def arrays(check, numpy, jax, devices):
    for dtype in types(numpy, jax):
        values = fresh(numpy, jax, dtype, 210, 7)
        wrong = []
        for label, array in {
            "plain": values.reshape(14, 15),
            "transposed": values.reshape(14, 15).T,
            "steps": values.reshape(6, 5, 7)[::2, ::-1, 1:],
            "repeated": numpy.broadcast_to(values[:5], (4, 5)),
            "empty": values[:0].reshape(0, 3),
            "scalar": values[3].reshape(()),
        }.items():
            there = jax.device_put(array, devices[1])
            if not same(numpy, numpy.asarray(there), array) or there.devices() != {devices[1]}:
                wrong.append(label)
            again = jax.device_put(there, devices[2])
            if not same(numpy, numpy.asarray(again), array) or again.devices() != {devices[2]}:
                wrong.append(f"{label}, copied")
        check(f"arrays of {dtype}", not wrong, wrong)


def shards(check, numpy, jax, devices):
    sharding, spec = jax.sharding.NamedSharding, jax.sharding.PartitionSpec
    values = numpy.arange(4096, dtype=numpy.float32).reshape(64, 64)
    mesh = jax.sharding.Mesh(numpy.array(devices).reshape(2, 2), ("rows", "columns"))
    for layout in (spec("rows", "columns"), spec(("rows", "columns")), spec(None, "rows"), spec()):
        there = jax.device_put(values, sharding(mesh, layout))
        whole = same(numpy, numpy.asarray(there), values)
        parts = all(same(numpy, numpy.asarray(shard.data), values[shard.index]) for shard in there.addressable_shards)
        places = {shard.device for shard in there.addressable_shards} == set(devices)
        check(f"an array with {layout} on four devices", whole and parts and places, (whole, parts, places))
    apart = [jax.device_put(values[row * 16:(row + 1) * 16], device) for row, device in enumerate(devices)]
    flat = jax.sharding.Mesh(numpy.array(devices), ("rows",))
    joined = jax.make_array_from_single_device_arrays((64, 64), sharding(flat, spec("rows")), apart)
    check("an array made of arrays of four devices", same(numpy, numpy.asarray(joined), values))
    state = jax.device_put({"kernel": values, "bias": [values[0], values[1]]}, sharding(flat, spec()))
    check("a tree of arrays", all(same(numpy, numpy.asarray(left), right) for left, right in zip(
        jax.tree.leaves(state), jax.tree.leaves({"kernel": values, "bias": [values[0], values[1]]}))))


def memories(check, numpy, jax, devices):
    kinds = [memory.kind for memory in devices[3].addressable_memories()]
    check("memories of a device", kinds == ["device", "pinned_host", "unpinned_host"], kinds)
    values = numpy.arange(1000, dtype=numpy.int32)
    for kind in kinds:
        place = jax.sharding.SingleDeviceSharding(devices[3], memory_kind=kind)
        there = jax.device_put(values, place)
        back = jax.device_put(there, devices[0])
        holds = same(numpy, numpy.asarray(there), values) and same(numpy, numpy.asarray(back), values)
        check(f"an array in {kind}", holds and there.sharding.memory_kind == kind, there.sharding)
        # NumPy may use the array's own memory.
        seen = numpy.asarray(there)
        there.delete()
        others = [jax.device_put(values * 0 + step, place) for step in range(8)]
        check(f"what was read of a deleted array in {kind}", same(numpy, seen, values), others)
    before = devices[2].memory_stats()["bytes_in_use"]
    there = jax.device_put(numpy.zeros(1 << 20, numpy.uint8), devices[2])
    there.block_until_ready()
    check("statistics of memory", devices[2].memory_stats()["bytes_in_use"] == before + (1 << 20))
    there.delete()
    check("memory of a deleted array", devices[2].memory_stats()["bytes_in_use"] == before, devices[2].memory_stats())


def life(check, numpy, jax, devices):
    values = numpy.arange(3 << 20, dtype=numpy.float32)
    there = jax.device_put(values, devices[0])
    copies = [jax.device_put(there, device) for device in devices[1:]]
    there.delete()
    check("a deleted array", there.is_deleted())
    try:
        numpy.asarray(there)
        check("a deleted array is not read", False)
    except RuntimeError as error:
        check("a deleted array is not read", "deleted" in str(error), error)
    check("copies outlive what they are of", all(same(numpy, numpy.asarray(copy), values) for copy in copies))
    try:
        jax.device_put(numpy.zeros(1 << 31, numpy.uint8), devices[0]).block_until_ready()
        check("an array that is larger than the device is refused", False)
    except Exception as error:
        check("an array that is larger than the device is refused", "RESOURCE_EXHAUSTED" in str(error), error)
    try:
        jax.numpy.add(copies[0], 1)
        check("a program is refused in words", False)
    except Exception as error:
        check("a program is refused in words", "compiles and runs no programs" in str(error), error)

    wrong = []

    def trips(seed):
        for step in range(50):
            array = numpy.random.default_rng(seed * 100 + step).integers(0, 256, 50_000, dtype=numpy.uint8)
            there = jax.device_put(array, devices[(seed + step) % 4])
            if not same(numpy, numpy.asarray(jax.device_put(there, devices[step % 4])), array):
                wrong.append((seed, step))

    threads = [threading.Thread(target=trips, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check("six threads at once", not wrong, wrong)


def inside(arguments):
    """Runs the checks, in a process that has JAX with the plug-in."""
    if arguments.way == "registered":
        from jax._src import xla_bridge

        xla_bridge.register_plugin(PLATFORM, priority=500, library_path=arguments.plugin, options={"devices": 4, "memory": 1 << 30})
    import jax
    import numpy

    jax.config.update("jax_platforms", PLATFORM)
    jax.config.update("jax_enable_x64", True)
    checks = Checks()
    check = checks.check
    devices = jax.devices()
    check(f"jax {jax.__version__} has four devices ({arguments.way})", [device.id for device in devices] == [0, 1, 2, 3], devices)
    check("their platform", {device.platform for device in devices} == {PLATFORM}, devices)
    check("their names", [str(device) for device in devices] == [f"{PLATFORM}:{index}" for index in range(4)], devices)
    for part in (arrays, shards, memories, life):
        part(check, numpy, jax, devices)
    return checks.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plugin", required=True, help="libserdes_host_pjrt.so")
    parser.add_argument("--way", choices=["registered", "environment"], help="check in this process, where JAX finds the plug-in in this way")
    arguments = parser.parse_args()
    if arguments.way:
        sys.exit(inside(arguments))
    failures = 0
    for way in ("registered", "environment"):
        environment = {name: value for name, value in os.environ.items() if name not in ("JAX_PLATFORMS", "PJRT_NAMES_AND_LIBRARY_PATHS")}
        if way == "environment":
            environment["PJRT_NAMES_AND_LIBRARY_PATHS"] = f"{PLATFORM}:{arguments.plugin}"
            environment["SERDES_HOST_PLUGIN"] = "devices=4,memory=1073741824"
        done = subprocess.run([sys.executable, __file__, "--plugin", arguments.plugin, "--way", way], env=environment, timeout=600)
        failures += done.returncode != 0
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
