"""Uses of JAX besides arithmetic, over a server: the same statements in the client's own process and through the proxy.

PYTHON tests/interop/jaxlib_cases.py --serdes PATH_OF_BINARY [--host-plugin PATH_OF_SO] [--cache FOLDER] [--plugin NAME] [--only CASE]

Each case returns values, or ends in an error, on four devices of the own process and on four of the plug-in. Both must be the same: intended differences are in
DIFFERENT, with a word of the error, and in docs/operating.md. Then Ctrl-C while a program runs, and a client that forks, are tested.
With SERDES_FULL all plug-ins are tested, else one. Ends with `N passed, N failed`; status 0 if nothing failed.
"""

import argparse
import json
import os
import pathlib
import signal
import sys
import tempfile
import time

from checks import hear_signals
from jaxlib_programs import BEGIN, DEVICES, Run
from pjrt_plugins import PLUGINS, download

# Cases that differ through the proxy, with a word of the error: the client does not send them, or they need another program than the client sends.
DIFFERENT = {
    "linear_algebra": "lapack",
    "printing": "UNIMPLEMENTED",
    "calling_back": "UNIMPLEMENTED",
    "turned_around": "strides",
    "raw_pointer": "PjRt-compatible",
    "dlpack_out": "PjRt",
    "dlpack_in": "Unknown backend cpu",
    "kept_programs": "",
    "memory_in_use": "PjRt",
    # A client of jaxlib 0.8.0 sends such arrays without their type.
    "two_bit_integers": "INVALID",
    # With the plug-in of PJRT 0.81.
    "out_to_pinned_memory": "annotate_device_placement",
    "out_to_unpinned_memory": "annotate_device_placement",
}

CASES = r"""
import copy, gc, pickle, tempfile, warnings
warnings.simplefilter("ignore")
outcomes = {}
only = os.environ.get("SERDES_CASE", "")

def case(function):
    name = function.__name__
    if only and name != only:
        return
    print(f"case {name}", file=sys.stderr, flush=True)
    try:
        leaves = jax.tree_util.tree_leaves(function())
        for at, leaf in enumerate(leaves):
            array = np.asarray(leaf)
            if array.dtype.kind == "O":
                raise TypeError("a result is no array")
            if array.dtype.kind not in "SU" and array.dtype.isbuiltin != 1:
                array = array.astype(np.float64)
            results[f"{name}.{at}"] = array
        outcomes[name] = "values"
    except Exception as error:
        text = str(error)
        outcomes[name] = f"{type(error).__name__}: {text[:600]} ... {text[-300:]}"

x = np.arange(24, dtype=np.float32).reshape(4, 6) / 7
mesh = Mesh(np.array(devices), ("x",))
square = Mesh(np.array(devices).reshape(2, 2), ("a", "b"))
put = lambda value, where, *spec: jax.device_put(value, NamedSharding(where, P(*spec)))

@case
def linear_algebra():
    m = x @ x.T + 4 * np.eye(4, dtype=np.float32)
    return jnp.linalg.cholesky(m), jnp.linalg.solve(m, x), jnp.linalg.eigvalsh(m), jnp.linalg.inv(m), jnp.linalg.det(m)

@case
def norms():
    return jnp.linalg.norm(x), jnp.linalg.norm(x, axis=1), jnp.linalg.matrix_power(x[:, :4], 3), jnp.trace(x), jnp.kron(x[:2], x[:2])

@case
def fourier():
    a = jnp.asarray(x)
    return jnp.fft.fft2(a), jnp.fft.irfft(jnp.fft.rfft(a)), jnp.fft.fftshift(a), jnp.fft.fftn(a.reshape(2, 2, 6)), jnp.fft.fft(a.astype(jnp.complex128))

@case
def sorting():
    a, b = jnp.asarray(x) % 1, jnp.arange(24).reshape(4, 6) % 5
    return (jnp.sort(b, axis=0), jnp.argsort(b, stable=True, axis=1), jnp.argsort(-b, axis=None), lax.sort((b, a), num_keys=1, dimension=1), jnp.lexsort((a[0], b[0])),
            lax.top_k(a, 3), lax.approx_max_k(a, 2)[0], jnp.unique(b, size=5), jnp.searchsorted(jnp.arange(10), jnp.array([3, 11])), jnp.partition(a[0], 2)[:1])

@case
def loops_that_take_their_state():
    f = jax.jit(lambda s: lax.while_loop(lambda s: s[0] < 100, lambda s: (s[0] + 1, s[1] * 1.01 + 1), s), donate_argnums=0)
    state = (jnp.int32(0), jnp.ones((8, 8)))
    for _ in range(3):
        state = f((jnp.int32(0), state[1]))
    g = jax.jit(lambda a: lax.fori_loop(0, 10, lambda i, a: a.at[i % 4].add(i), a), donate_argnums=0)
    return state, g(jnp.asarray(x)), lax.scan(lambda c, _: (c * 2, c), jnp.float32(1), None, length=20, unroll=4)

@case
def small_floats():
    found = []
    for name in ("bfloat16", "float16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e5m2fnuz"):
        dtype = getattr(jnp, name)
        a = jnp.asarray(x, dtype)
        found += [a, (a.astype(jnp.float32) + 1).astype(dtype), jax.device_put(np.asarray(a))]
    return found

@case
def small_integers():
    found = []
    for name in ("int4", "uint4", "int8", "uint8"):
        a = jnp.arange(6).astype(getattr(jnp, name))
        b = jax.device_put(np.asarray(a))
        found += [a, b.astype(jnp.int32) * 2, (b + b).astype(jnp.int32)]
    return [np.asarray(a).astype(np.int32) for a in found]

@case
def two_bit_integers():
    return [np.asarray(jnp.arange(2).astype(getattr(jnp, name))).astype(np.int32) for name in ("int2", "uint2")]

@case
def four_bit_floats():
    return np.asarray(jnp.asarray([0, 0.5, 1, 6], jnp.float32).astype(jnp.float4_e2m1fn)).astype(np.float32)

@case
def wide_numbers():
    a = jnp.asarray([1 + 2j, -3j], jnp.complex128)
    b = jnp.asarray([2**62, -7], jnp.int64)
    return (a * a, jnp.abs(a), jnp.exp(a), a.conj(), b + b, b >> 3, jnp.uint64(2**63) + jnp.uint64(5), lax.population_count(b), lax.clz(b), jnp.float64(1) / 3,
            lax.bitcast_convert_type(jnp.float64(1.5), jnp.uint64), lax.reduce_precision(jnp.float32(1 / 3), 5, 4))

@case
def truths():
    a = jnp.asarray([True, False, True])
    return a & ~a, a ^ True, a.sum(), jnp.logical_or(a, ~a).all(), jnp.where(a, 1, 2), jnp.nonzero(a, size=2), jnp.packbits(a), a.astype(jnp.bfloat16)

@case
def strings():
    return jnp.array(["a", "b"])

@case
def string_arrays():
    found = jax.device_put(np.array(["abc", "", "d"], dtype=np.dtypes.StringDType()), devices[1])
    return np.array([str(text) for text in np.asarray(found)])

@case
def nothing_in_it():
    a = jnp.zeros((0, 3))
    b = put(np.zeros((0, 4), np.float32), mesh, None, "x")
    return a, a.sum(0), a @ jnp.ones((3, 2)), jnp.concatenate([a, jnp.ones((1, 3))]), b, b + 1, jnp.ones((3, 0)) @ jnp.zeros((0, 2)), jax.device_put(np.zeros((2, 0, 5)))

@case
def scalars():
    a = jnp.float32(2.5)
    return float(a), int(jnp.int32(7)), bool(a > 1), a.item(), f"{a:.2f}" == "2.50", complex(jnp.complex64(1j)), [int(i) for i in jnp.arange(3)], a.tolist(), round(a), divmod(jnp.int32(7), 3)

@case
def walking_over():
    return [row * 2 for row in jnp.asarray(x)], [a for a in jnp.arange(5)], len(jnp.asarray(x)), np.stack(list(jnp.asarray(x))), jnp.asarray(x)[jnp.arange(4), jnp.arange(4)]

@case
def uneven_parts():
    return put(np.arange(6.0), mesh, "x")

@case
def uneven_parts_within():
    return jax.jit(lambda a: lax.with_sharding_constraint(a * 2, NamedSharding(mesh, P("x"))).sum())(np.arange(6.0))

@case
def made_by_parts():
    where = NamedSharding(mesh, P("x"))
    whole = np.arange(16, dtype=np.float32).reshape(8, 2)
    a = jax.make_array_from_callback((8, 2), where, lambda index: whole[index])
    b = jax.make_array_from_single_device_arrays((8, 2), where, [jax.device_put(whole[i * 2:i * 2 + 2], d) for i, d in enumerate(devices)])
    c = jax.make_array_from_process_local_data(where, whole)
    d = jax.make_array_from_callback((8, 2), NamedSharding(square, P("b", None)), lambda index: whole[index])
    return a, b, c, d, jax.jit(lambda *all: sum(all))(a, b, c), [s.data for s in d.addressable_shards], a.addressable_data(2)

@case
def many_at_once():
    tree = {f"a{i}": jnp.full((i % 5 + 1,), i, jnp.float32) for i in range(100)}
    jax.block_until_ready(tree)
    jax.block_until_ready([tree, [jnp.ones(3)], 5, None])
    for leaf in tree.values():
        leaf.copy_to_host_async()
    return jax.device_get(tree), jax.device_put([np.float32(1), x, {"b": x}]), jax.device_put([x] * 4, devices), jax.device_get([1, jnp.ones(2)])

@case
def own_rules():
    @jax.custom_vjp
    def f(a):
        return jnp.sin(a)
    f.defvjp(lambda a: (f(a), a), lambda a, g: (g * 3 + a,))
    @jax.custom_jvp
    def h(a):
        return a * a
    h.defjvp(lambda p, t: (h(p[0]), 7 * t[0]))
    return jax.grad(lambda a: f(a).sum())(x), jax.grad(lambda a: jax.jit(h)(a).sum())(x), jax.linearize(jnp.sin, x)[1](x), jax.jacfwd(jnp.sin)(x[0]), jax.jacrev(jnp.cumsum)(x[0])

@case
def computed_again():
    f = jax.checkpoint(lambda a: jnp.tanh(a @ a.T) @ a)
    g = functools.partial(jax.checkpoint, policy=jax.checkpoint_policies.dots_saveable)(lambda a: jnp.sin(a @ a.T).sum())
    return jax.grad(lambda a: f(a).sum())(x), jax.jit(jax.grad(g))(x)

@case
def printing():
    jax.block_until_ready(jax.jit(lambda a: (jax.debug.print("{a}", a=a), a + 1)[1])(jnp.ones(2)))
    jax.effects_barrier()

@case
def calling_back():
    return jax.jit(lambda a: jax.pure_callback(np.sin, jax.ShapeDtypeStruct(a.shape, a.dtype), a))(jnp.ones(3))

@case
def ahead_of_time():
    lowered = jax.jit(lambda a, b: (a @ b, a.sum())).lower(jax.ShapeDtypeStruct((4, 6), jnp.float32), jax.ShapeDtypeStruct((6, 4), jnp.float32))
    compiled = lowered.compile()
    assert "dot" in lowered.as_text()
    cost = compiled.cost_analysis()
    assert cost is None or cost, cost
    memory = compiled.memory_analysis()
    assert memory is None or memory.argument_size_in_bytes == 192, memory
    assert compiled.input_shardings and compiled.output_shardings
    return compiled(x, x.T), lowered.out_info[0].shape

@case
def exported():
    from jax import export
    f = jax.jit(lambda a: jnp.tanh(a).sum(1))
    made = export.export(f)(jax.ShapeDtypeStruct((4, 6), jnp.float32))
    try:
        again = export.deserialize(made.serialize())
    except ImportError:
        # Writing needs a package that is not there everywhere.
        again = made
    several = export.export(f, platforms=("cpu", "tpu"))(jax.ShapeDtypeStruct((4, 6), jnp.float32))
    n, = export.symbolic_shape("n")
    free = export.export(jax.jit(lambda a: a * 2))(jax.ShapeDtypeStruct((n, 6), jnp.float32))
    return again.call(x), several.call(x), free.call(x), free.call(x[:2])

@case
def kept_programs():
    from jax.experimental import serialize_executable
    compiled = jax.jit(lambda a: a * 3).lower(x).compile()
    return serialize_executable.deserialize_and_load(*serialize_executable.serialize(compiled), execution_devices=devices[:1])(x)

@case
def a_cache_of_programs():
    with tempfile.TemporaryDirectory() as folder:
        jax.config.update("jax_compilation_cache_dir", folder)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
        first = jax.jit(lambda a: a * 5 + 3)(x)
        jax.clear_caches()
        second = jax.jit(lambda a: a * 5 + 3)(x)
        jax.config.update("jax_compilation_cache_dir", None)
    return first, second

@case
def profiled():
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            found = jax.block_until_ready(jnp.ones((64, 64)) @ jnp.ones((64, 64)))
        with jax.profiler.TraceAnnotation("a part"):
            pass
        assert any(files for _, _, files in os.walk(folder))
    return found

@case
def kinds_of_randomness():
    found = []
    for kind in ("threefry2x32", "rbg", "unsafe_rbg"):
        key = jax.random.key(3, impl=kind)
        a, b = jax.random.split(jax.random.fold_in(key, 5))
        values = jax.random.uniform(a, (8,)), jax.random.normal(b, (3, 2)), jax.random.bits(a, (4,)), jax.random.truncated_normal(b, -1, 1, (3,)), jax.random.gamma(a, 2.0, (3,))
        # Those of `rbg` are the plug-in's own; all are what was asked for.
        found += values if kind == "threefry2x32" else [(v.shape, v.dtype == values[0].dtype, bool(jnp.isfinite(v.astype(jnp.float32)).all())) for v in values[:3]]
    return found, jax.random.key_data(jax.device_put(jax.random.key(1), devices[2])), jax.random.dirichlet(jax.random.PRNGKey(0), jnp.ones(3)), jax.random.shuffle(jax.random.PRNGKey(0), jnp.arange(4)) if hasattr(jax.random, "shuffle") else 0

@case
def collectives():
    a = put(np.arange(32, dtype=np.float32).reshape(8, 4), mesh, "x")
    def f(a):
        ring = [(i, (i + 3) % 4) for i in range(4)]
        return (lax.all_gather(a, "x", tiled=True, axis=1), lax.psum_scatter(a.reshape(4, 2), "x", scatter_dimension=0), lax.all_to_all(a.reshape(4, 2), "x", 0, 0),
                lax.ppermute(a, "x", ring), lax.pmean(a, "x") + 0 * a, lax.pmin(a, "x") + 0 * a, lax.psum(a, "x") + 0 * a)
    g = jax.jit(shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=(P("x"), P("x"), P("x"), P("x"), P("x"), P("x"), P("x"))))
    h = jax.jit(shard_map(lambda a: lax.psum(lax.all_gather(a, "a"), "b"), mesh=square, in_specs=P("a", "b"), out_specs=P(None, "a")))
    grad = jax.jit(jax.grad(lambda a: (shard_map(lambda a: lax.psum(a * a, "x"), mesh=mesh, in_specs=P("x"), out_specs=P())(a)).sum()))
    return g(a), h(np.arange(16, dtype=np.float32).reshape(4, 4)), grad(a)

@case
def from_mesh_to_mesh():
    a = put(np.arange(64, dtype=np.float32).reshape(8, 8), mesh, "x")
    found = []
    for where, spec in ((square, ("a", "b")), (square, (None, "b")), (Mesh(np.array(devices)[::-1], ("r",)), ("r",)), (Mesh(np.array(devices[:2]), ("h",)), (None, "h")), (mesh, ()), (square, (("b", "a"),))):
        a = put(a, where, *spec)
        found += [a, a + 1]
    return found, jax.device_put(a, devices[3]), jax.device_put(jax.device_put(a, devices[1]), NamedSharding(mesh, P("x")))

@case
def constraints():
    @jax.jit
    def f(a):
        b = lax.with_sharding_constraint(a @ a.T, NamedSharding(square, P("a", "b")))
        return lax.with_sharding_constraint(jnp.sin(b), NamedSharding(square, P("b"))).sum(0), b
    g = jax.jit(lambda a, b: a @ b, in_shardings=(NamedSharding(mesh, P("x")), NamedSharding(mesh, P())), out_shardings=NamedSharding(mesh, P(None, "x")))
    return f(np.ones((8, 4), np.float32)), g(np.ones((4, 8), np.float32), np.ones((8, 4), np.float32))

@case
def layouts():
    from jax.experimental import layout
    form = getattr(layout, "Format", None) or layout.Layout
    order = getattr(layout, "Layout", None) if hasattr(layout, "Format") else layout.DeviceLocalLayout
    a = jnp.asarray(x)
    assert tuple(getattr(a, "format", getattr(a, "layout", None)).layout.major_to_minor if hasattr(a, "format") else a.layout.device_local_layout.major_to_minor) == (0, 1)
    turned = jax.device_put(x, form(order(major_to_minor=(1, 0)), jax.sharding.SingleDeviceSharding(devices[0])))
    f = jax.jit(lambda a: a.T, in_shardings=form(order.AUTO), out_shardings=form(order.AUTO))
    compiled = f.lower(jax.ShapeDtypeStruct(x.shape, x.dtype)).compile()
    return turned, turned + 1, compiled.output_formats is not None if hasattr(compiled, "output_formats") else True

@case
def memories():
    def kinds(device):
        return sorted(memory.kind for memory in device.addressable_memories())
    a = jnp.asarray(x)
    assert a.sharding.memory_kind == devices[0].default_memory().kind, (a.sharding.memory_kind, devices[0].default_memory())
    return [kind.encode() for kind in kinds(devices[0])], devices[0].default_memory().kind.encode()

def in_memory(kind):
    there = jax.device_put(x, jax.sharding.SingleDeviceSharding(devices[1], memory_kind=kind))
    assert there.sharding.memory_kind == kind, there.sharding
    assert np.array_equal(np.asarray(there), x)
    back = jax.device_put(there, jax.sharding.SingleDeviceSharding(devices[1], memory_kind="device"))
    spread = jax.device_put(x, NamedSharding(mesh, P("x"), memory_kind=kind))
    assert spread.sharding.memory_kind == kind, spread.sharding
    return back + 1, spread, [s.data for s in spread.addressable_shards]

@case
def pinned_memory():
    return in_memory("pinned_host")

@case
def unpinned_memory():
    return in_memory("unpinned_host")

@case
def memory_that_is_not_there():
    return in_memory("elsewhere")

@case
def out_to_pinned_memory():
    where = jax.sharding.SingleDeviceSharding(devices[0], memory_kind="pinned_host")
    f = jax.jit(lambda a: a * 2, out_shardings=where)
    found = f(x)
    assert found.sharding.memory_kind == "pinned_host"
    return found

@case
def out_to_unpinned_memory():
    where = jax.sharding.SingleDeviceSharding(devices[0], memory_kind="unpinned_host")
    found = jax.jit(lambda a: a * 2, out_shardings=where)(x)
    assert found.sharding.memory_kind == "unpinned_host"
    return found

@case
def errors_that_come_late():
    from jax.experimental import checkify
    f = checkify.checkify(jax.jit(lambda a: (checkify.check(a.sum() > 100, "too small: {s}", s=a.sum()), a)[1]))
    error, _ = f(jnp.ones(3))
    assert "too small" in error.get(), error.get()
    jax.config.update("jax_debug_nans", True)
    try:
        jax.jit(lambda a: jnp.sqrt(a))(-jnp.ones(3))
        raise AssertionError("no error for what is not a number")
    except FloatingPointError:
        pass
    finally:
        jax.config.update("jax_debug_nans", False)
    return jnp.ones(1) + 1

@case
def two_hundred_that_go():
    for turn in range(3):
        arrays = [jnp.full((16,), i, jnp.float32) for i in range(200)]
        total = sum(float(a[0]) for a in arrays[::50])
        del arrays
        gc.collect()
    return total, len(jax.live_arrays()) < 200

@case
def kept_in_files():
    a = put(x.reshape(8, 3), mesh, "x")
    with tempfile.TemporaryDirectory() as folder:
        jnp.save(folder + "/a.npy", a)
        np.savez(folder + "/b.npz", a=a, b=jnp.float32(3))
        read = np.load(folder + "/b.npz")
        return pickle.loads(pickle.dumps(jnp.asarray(x))), copy.deepcopy(jnp.asarray(x)), copy.copy(a), jnp.load(folder + "/a.npy"), read["a"], read["b"]

@case
def copies():
    a = jnp.asarray(x)
    seen = np.asarray(a)
    return jnp.array(a, copy=True), a.copy(), np.array(a), jnp.asarray(x[:, ::2]), jnp.asarray(np.asfortranarray(x)), jnp.asarray(x.T), seen.flags.writeable

@case
def turned_around():
    return jnp.asarray(x[::-1]), jnp.asarray(np.broadcast_to(np.float32(3), (2, 3)))

@case
def given_and_shared():
    a = jnp.asarray(x)
    b = jax.device_put(a, devices[1], donate=True)
    c = jax.device_put(jnp.asarray(x), devices[0], may_alias=True)
    f = jax.jit(lambda a, b: (a + b, b), donate_argnames=("a",))
    d = jnp.asarray(x)
    e = f(d, c)
    return b, c, e, d.is_deleted()

@case
def given_and_of_no_use():
    # No output fits into its memory: it stays what it is.
    f = jax.jit(lambda a, b: (a.astype(jnp.int8), b * 2), donate_argnums=(0, 1))
    a, b = jnp.arange(7.0), jnp.ones(5)
    found = f(a, b)
    return found, a.is_deleted(), b.is_deleted(), a + 1

@case
def raw_pointer():
    return jnp.ones(3).unsafe_buffer_pointer() > 0

@case
def dlpack_out():
    return np.from_dlpack(jnp.asarray(x))

@case
def dlpack_in():
    return jnp.from_dlpack(x.copy())

@case
def networks():
    key = jax.random.key(0)
    q = jax.random.normal(key, (2, 8, 2, 4))
    a = jnp.asarray(x)
    return (jax.nn.softmax(a), jax.nn.gelu(a), jax.nn.one_hot(jnp.arange(3), 4), jax.nn.logsumexp(a), jax.nn.silu(a), jax.nn.dot_product_attention(q, q, q), jax.nn.initializers.orthogonal is not None,
            jax.nn.relu(a - 1), jax.nn.log_softmax(a), jax.nn.standardize(a))

@case
def special_functions():
    from jax.scipy import special, stats, signal
    a = jnp.asarray(x) + 0.5
    return special.gammaln(a), special.erf(a), special.betainc(a, a, 0.3), special.i0e(a), stats.norm.logpdf(a), signal.convolve(a[0], a[1]), special.digamma(a), special.logsumexp(a), special.expit(a)

@case
def scattered():
    a = jnp.zeros((5, 3))
    from jax.ops import segment_sum
    return (a.at[jnp.array([0, 0, 4])].add(1), a.at[9].set(1), a.at[9].set(1, mode="drop"), a.at[jnp.array([7])].get(mode="fill", fill_value=-1), segment_sum(jnp.arange(6.0), jnp.array([0, 1, 0, 2, 2, 1]), 3),
            a.at[1:3, ::2].multiply(2), a.at[0].max(3), jnp.take_along_axis(jnp.asarray(x), jnp.array([[1], [0], [2], [5]]), 1), lax.dynamic_update_slice(a, jnp.ones((2, 2)), (4, 2)), jnp.bincount(jnp.array([1, 1, 3]), length=5))

@case
def sparse_matrices():
    from jax.experimental import sparse
    m = sparse.BCOO.fromdense(jnp.asarray(x) * (x > 1), nse=24)
    return m @ jnp.ones(6), m.todense(), (m.T @ jnp.ones((4, 2)))

@case
def equations():
    from jax.experimental.ode import odeint
    return odeint(lambda y, t: -y, jnp.float32(1), jnp.linspace(0, 1, 5, dtype=jnp.float32)), lax.custom_root(lambda a: a * a - 2, 1.0, lambda f, a: lax.fori_loop(0, 30, lambda i, a: a - f(a) / (2 * a), a), lambda g, b: b / g(1.0))

@case
def rules_of_devices():
    with jax.default_device(devices[2]):
        a = jnp.arange(3)
        b = jax.jit(lambda: jnp.ones(2))()
    assert a.devices() == b.devices() == {devices[2]}
    assert jax.device_count() == jax.local_device_count() == 4 and jax.process_index() == 0 and jax.process_count() == 1
    assert [d.id for d in devices] == [0, 1, 2, 3] and devices[1].platform == jax.default_backend()
    repr(devices[0]); str(devices[0]); hash(devices[0])
    assert jax.devices()[1] is devices[1] or jax.devices()[1] == devices[1]
    return a + 1, b, a.device == devices[2]

@case
def memory_in_use():
    return devices[0].memory_stats() is None or True

@case
def errors_of_programs():
    found = []
    for wrong in (lambda: jnp.ones(3) @ jnp.ones(4), lambda: jax.jit(lambda a: a if a > 0 else -a)(1.0), lambda: jnp.zeros(3)[5.0], lambda: jax.grad(lambda a: a * 2)(jnp.ones(2)),
                  lambda: lax.scan(lambda c, a: (c.astype(int), a), 0.0, jnp.ones(3)), lambda: jax.vmap(jnp.add)(jnp.ones(2), jnp.ones(3)), lambda: jnp.reshape(jnp.ones(6), (4, 2)), lambda: jax.device_put(object())):
        try:
            wrong()
            found.append(b"nothing")
        except Exception as error:
            found.append(type(error).__name__.encode())
    return found

@case
def threads_and_devices():
    f = jax.jit(lambda a: jnp.tanh(a @ a).sum())
    # A client of jaxlib 0.8.0 now and then ends the process where several threads compile at the same moment, whatever the server.
    for device in devices:
        f(jax.device_put(np.ones((16, 16), np.float32), device))
    found = [None] * 8
    def work(at):
        a = jax.device_put(np.full((16, 16), at / 100, np.float32), devices[at % 4])
        for _ in range(10):
            found[at] = f(a)
    workers = [threading.Thread(target=work, args=(at,)) for at in range(8)]
    [worker.start() for worker in workers]
    [worker.join() for worker in workers]
    return found

@case
def many_shapes():
    f = jax.jit(lambda a: (a * 2).sum())
    return [f(np.ones(n, np.float32)) for n in range(1, 30)]

@case
def a_long_program():
    def f(a):
        for i in range(200):
            a = jnp.tanh(a * (1 + i / 1000)) + i / 100
        return a
    return jax.jit(f)(x), jax.make_jaxpr(f)(x).eqns.__len__(), jax.eval_shape(f, x).shape

@case
def a_large_constant():
    big = np.linspace(0, 1, 1 << 20, dtype=np.float32)
    return jax.jit(lambda a: (a * big).sum())(np.float32(2)), jax.jit(lambda i: jnp.asarray(big)[i])(1000)

@case
def a_gigabyte_in_parts():
    a = jax.device_put(np.ones((64 << 20,), np.int8), NamedSharding(mesh, P("x")))
    return a.sum(dtype=jnp.int32), np.asarray(a)[::1 << 20].sum(), (a + a)[5]

@case
def optimisers():
    def adam(p, m, v, g, t):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        return p - 0.01 * (m / (1 - 0.9 ** t)) / (jnp.sqrt(v / (1 - 0.999 ** t)) + 1e-8), m, v
    step = jax.jit(lambda p, m, v, t: adam(p, m, v, jax.grad(lambda p: jnp.sum((p - 3) ** 2))(p), t), donate_argnums=(0, 1, 2))
    p, m, v = jnp.zeros(5), jnp.zeros(5), jnp.zeros(5)
    for t in range(1, 60):
        p, m, v = step(p, m, v, float(t))
    return p, m, v

with open(sys.argv[2] + ".json", "w") as file:
    json.dump(outcomes, file)
np.savez(sys.argv[2], **results)
leave()
"""

# Runs a program that is interrupted; the same process then continues.
INTERRUPTED = r"""
f = jax.jit(lambda a: lax.fori_loop(0, 400, lambda i, a: jnp.tanh(a @ a), a))
g = f.lower(jnp.ones((512, 512), jnp.float32)).compile()
print("running", flush=True)
begin = time.monotonic()
try:
    while time.monotonic() < begin + 60:
        np.asarray(g(jnp.ones((512, 512), jnp.float32)))
    check("Ctrl-C", False, "no interrupt came")
except KeyboardInterrupt:
    check("Ctrl-C", True)
check("the session after Ctrl-C", float(jnp.float32(1) + 1) == 2)
leave()
"""

# Forks a child that does not use JAX, as data loaders do.
FORKED = r"""
import warnings
warnings.simplefilter("ignore")
a = jnp.ones(3)
child = os.fork()
if child == 0:
    total = sum(range(1000))
    os._exit(0 if total == 499500 else 1)
check("the child of a client", os.waitpid(child, 0)[1] == 0)
check("a client that has forked", float((a + 1).sum()) == 6)
import multiprocessing
with multiprocessing.get_context("fork").Pool(2) as pool:
    check("workers", pool.map(abs, [-1, -2]) == [1, 2])
check("a client that has had workers", float((a + 2).sum()) == 9)
leave()
"""


def outcomes(path):
    try:
        with open(f"{path}.json") as file:
            return json.load(file)
    except FileNotFoundError:
        return {}


def compare(run, name, local, remote):
    import numpy as np

    own, other = outcomes(local), outcomes(remote)
    run.check(f"{name}: all cases", own and set(own) == set(other), sorted(set(own) ^ set(other)))
    if not own or not other:
        return
    own_values, other_values = np.load(local), np.load(remote)
    for case in sorted(set(own) & set(other)):
        word = DIFFERENT.get(case)
        if word is not None and other[case] != "values":
            run.check(f"{name}: {case}", word in other[case], other[case])
            continue
        if own[case] != "values" and other[case] == "values":
            # A newer plug-in supports more than the client's own build.
            run.check(f"{name}: {case}", True)
            continue
        if own[case] != "values" or other[case] != "values":
            # Both must fail with the same exception; their messages may differ.
            same = own[case].split(":")[0] == other[case].split(":")[0] and own[case] != "values"
            run.check(f"{name}: {case}", same, f"alone {own[case][:500]}; here {other[case][:900]}")
            continue
        keys = [key for key in own_values if key.rsplit(".", 1)[0] == case]
        same_count = len(keys) == sum(key.rsplit(".", 1)[0] == case for key in other_values)
        run.check(f"{name}: results of {case}", same_count, keys)
        for key in keys if same_count else []:
            a, b = own_values[key], other_values[key]
            same = a.dtype == b.dtype and a.shape == b.shape
            if same and a.dtype.kind in "fc":
                same = np.allclose(a, b, rtol=2e-5, atol=2e-5, equal_nan=True)
            elif same:
                same = np.array_equal(a, b)
            run.check(f"{name}: {key}", same, f"{a.dtype}{a.shape} {b.dtype}{b.shape} {a.ravel()[:6]} {b.ravel()[:6]}")


def interrupted(run, name, address):
    client = run.client(INTERRUPTED, address)
    if client.stdout.readline().strip() != "running":
        client.kill()
        run.check(f"{name}: a program to interrupt", False, client.communicate()[1][-2000:])
        return
    time.sleep(1)
    client.send_signal(signal.SIGINT)
    run.finish(f"{name}: Ctrl-C", client, 120)


def main():
    hear_signals()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serdes", required=True)
    parser.add_argument("--host-plugin", help="not used: programs need a plug-in that compiles")
    default = pathlib.Path(os.environ.get("SERDES_CI_CACHE", pathlib.Path.home() / ".cache/serdes-ci")) / "pjrt"
    parser.add_argument("--cache", type=pathlib.Path, default=default, help="where packages are kept")
    parser.add_argument("--plugin", help="only this package")
    parser.add_argument("--only", default="", help="only this case")
    arguments = parser.parse_args()
    try:
        import jaxlib
    except ImportError:
        print("0 passed, 0 failed: jaxlib is not installed")
        return
    run, version = Run(arguments.serdes), jaxlib.__version__
    os.environ["SERDES_CASE"] = arguments.only
    with tempfile.TemporaryDirectory() as folder:
        local = os.path.join(folder, "local.npz")
        run.finish(f"jaxlib {version} alone", run.client(CASES, "", local))
        chosen = [plugin for plugin in PLUGINS if arguments.plugin in (None, plugin[0])]
        if not (arguments.plugin or os.environ.get("SERDES_FULL")):
            chosen = [PLUGINS[{"0.8.0": -1, "0.10.2": 1}.get(version, 0)]]
        for package, number, *_ in chosen:
            name = f"jaxlib {version} over {package}"
            plugin = download(arguments.cache / f"{package}-{number}", package, number)
            server, address = run.serve(plugin)
            remote = os.path.join(folder, f"{package}.npz")
            run.finish(name, run.client(CASES, address, remote))
            compare(run, name, local, remote)
            if not arguments.only:
                interrupted(run, name, address)
                run.finish(f"{name}: a fork", run.client(FORKED, address), 120)
            run.check(f"{name}: the server is there", server.poll() is None)
            run.stop(name, server)
    sys.exit(run.end())


if __name__ == "__main__":
    main()
