"""Sends malicious programs and compile options to `serdes serve` with a PJRT plug-in of PyPI: none may write a file, start a process, print
into the log or end the server, and an honest client must be served after each of them.

PYTHON tests/interop/jaxlib_hostile.py --serdes PATH_OF_BINARY [--host-plugin PATH_OF_SO] [--cache FOLDER] [--plugin NAME]

Requests are encoded here, because no client would send them; they are based on the program and the options of the jaxlib that runs this.
At the end, real clients run programs that never end: programs of other clients must get the devices. With SERDES_FULL every option of
`xla.DebugOptions` has more values, and every plug-in is tested, with every flag that its LLVM lists and every option name that its file has.
Ends with `N passed, N failed`; status 0 if nothing failed.
"""

import argparse
import itertools
import os
import pathlib
import queue
import random
import re
import signal
import string
import subprocess
import sys
import tempfile
import threading
import time

os.environ["JAX_PLATFORMS"] = "cpu"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from jaxlib.mlir import ir  # noqa: E402
from jaxlib.mlir.dialects import stablehlo  # noqa: E402

from checks import Checks  # noqa: E402
from pjrt_plugins import PLUGINS, download  # noqa: E402
from untrusted_clients import DATA, Connection, field, frame, message, varint  # noqa: E402

OK, INVALID_ARGUMENT, DEADLINE_EXCEEDED, NOT_FOUND, RESOURCE_EXHAUSTED, UNIMPLEMENTED, INTERNAL, UNAVAILABLE = 0, 3, 4, 5, 8, 12, 13, 14
STABLEHLO = "1.10.9"
DEBUG_OPTIONS = 600
# Seconds for which a program that does not end may delay others, and seconds in which these must be served after that, on a busy machine.
SHARED, SERVED = 5, 60
# Seconds after which XLA aborts a process whose CPU devices wait for one another, with a margin.
RENDEZVOUS = 75
# Options of LLVM's command line that run programs, write and read files, print texts, or end the process.
LLVM = """
-exec-on-ir-change=touch -print-after-all -print-before-all -print-changed -print-module-scope -ir-dump-directory=dumped -help -help-hidden -help-list
-version -mcpu=help -mattr=help -nonsense=1 -opt-bisect-limit=1 -opt-bisect-print-ir-path=bisected -time-passes -stats -stats-json -info-output-file=info
-debug-pass=Executions -debug-pass=Details -debug-pass-manager -print-pipeline-passes -pass-remarks=.* -pass-remarks-missed=.* -pass-remarks-analysis=.*
-pass-remarks-output=remarks -lto-pass-remarks-output=remarks -profile-sample-use=/etc/passwd -pgo-test-profile-file=/etc/passwd -load=/lib/libc.so.6
-load-pass-plugin=/lib/libc.so.6 -view-dag-combine1-dags -dot-cfg -cfg-dot-filename-prefix=cfg -cfg-func-name=x -print-options -print-all-options
-track-memory -rng-seed=1 -verify-machineinstrs -stop-after=greedy -start-before=greedy -stop-before=x -run-pass=none -filetype=obj -o=out -as-secure-log-file-name=log
-print-machine-instrs -print-lsr-output -disable-symbolication -crash-diagnostics-dir=crash -x86-asm-syntax=intel -gcov-out=x -memprof-runtime-default-options=x
-inline-remark-attribute -summary-file=x -thinlto-index-stats -save-temps -dump-input=help -write-bitcode -debug -debug-only=x -debug-counter=x @/etc/passwd @response
""".split()


def part(number, value):
    """Encodes a field of a message: bytes, or a number of up to 64 bits."""
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    return varint(number << 3) + varint(value % (1 << 64))


def named(name, value):
    """Encodes an option by its name."""
    return part(7, part(1, name.encode()) + part(2, value))


def options(debug=b"", build=b"", around=b"", replicas=1, partitions=1):
    """Encodes the options of a compilation. If a debug option has several values, the last one counts."""
    debug = part(3, DEFAULTS + debug) if debug is not None else b""
    return part(3, part(4, replicas) + part(5, partitions) + build + debug) + around


def defaults():
    """Returns the debug options that this jaxlib sends by default."""
    from jax._src import compiler
    found = compiler.get_compile_options(num_replicas=1, num_partitions=1).SerializeAsString()
    return field(field(found, 3), 3)


def known_to_llvm(plugin):
    """Returns the flags that the plug-in's LLVM lists; loads it in a process of its own, which may crash."""
    environment = {**os.environ, "PJRT_NAMES_AND_LIBRARY_PATHS": f"asked:{plugin}", "JAX_PLATFORMS": "asked",
                   "XLA_FLAGS": "--xla_backend_extra_options=--help-list-hidden"}
    program = "import jax.numpy as jnp; print(jnp.zeros(4) + 1)"
    with tempfile.TemporaryDirectory() as folder:
        listed = subprocess.run([sys.executable, "-c", program], env=environment, cwd=folder, capture_output=True, text=True, timeout=300).stdout
    return sorted(set(re.findall(r"^ +(--?[\w.-]+)", listed, re.MULTILINE)))


def known_to_xla(plugin):
    """Returns all words in a plug-in's file that begin like names of options."""
    return sorted({name.decode() for name in re.findall(rb"xla_[a-z0-9_]{3,80}", pathlib.Path(plugin).read_bytes())})


def artifact(function, *arguments):
    return stablehlo.serialize_portable_artifact_str(jax.jit(function).lower(*arguments).as_text(), STABLEHLO)


class Client:
    """A session that only requests compilations."""

    def __init__(self, address):
        self.connection = Connection(address, "127.0.0.1", timeout=120)
        self.stream = self.connection.next
        self.connection.session()
        self.asked = 0

    def compile(self, program, options):
        """Requests a compilation; returns its status code and message."""
        self.asked += 1
        serialized = lambda kind, data: part(1, b"xla::ifrt::" + kind) + part(2, data)  # noqa: E731
        request = part(1, serialized(b"XlaProgram", program)) + part(2, serialized(b"XlaCompileOptions", part(1, options)))
        request = part(1, varint(1 << 3 | 1) + self.asked.to_bytes(8, "little")) + part(13, request)
        sent = message(request)
        for at in range(0, len(sent), 16384):
            self.connection.stream.sendall(frame(DATA, 0, self.stream, sent[at:at + 16384]))
        answer = self.connection.answer(self.stream)
        metadata = field(answer, 1) or b""
        status = field(metadata, 2) or b""
        return field(status, 1) or OK, (field(status, 2) or b"").decode()


class Run(Checks):
    def __init__(self, serdes, plugin):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.log = tempfile.TemporaryFile("w+")
        limits = ["--limit", "session-array-bytes=100M", "--limit", "compilation-seconds=20", "--limit", f"shared-execution-seconds={SHARED}"]
        command = [serdes, "serve", "--plugin", f"{plugin}:cpu_device_count=4", "--listen", "127.0.0.1:0", *limits]
        self.server = subprocess.Popen(command, cwd=self.folder.name, stdout=subprocess.PIPE, stderr=self.log, text=True)
        line = self.server.stdout.readline()
        host, port = line.split()[-1].split(":")
        self.address = host, int(port)
        self.client = Client(self.address)
        # Lines that a plug-in prints about the default options of this jaxlib are ignored.
        self.known = set()
        self.lives("before all others")
        self.known = {self.words(line) for line in self.printed()}

    @staticmethod
    def words(line):
        return line.rpartition("] ")[2]

    def printed(self):
        self.log.seek(0)
        return [line for line in self.log.read().splitlines() if self.words(line) not in self.known]

    def refused(self, name, program, options, code=INVALID_ARGUMENT, words=""):
        found = self.client.compile(program, options)
        self.check(name, found[0] == code and words in found[1], found)

    def lives(self, name):
        """Checks that an honest client is served, in the same session as before."""
        found = self.client.compile(HONEST, options())
        self.check(f"{name}: an honest program is compiled afterwards", found[0] == OK, found)

    def clean(self, name, lines=lambda line: False):
        """Checks that no file was written, and no line printed except permitted ones."""
        written = os.listdir(self.folder.name)
        self.check(f"{name}: no file", not written, written)
        printed = [line for line in self.printed() if not lines(line)]
        self.check(f"{name}: no line in the log", not printed, printed[:3])
        self.check(f"{name}: the server lives", self.server.poll() is None, self.server.poll())

    def end(self):
        self.server.send_signal(signal.SIGTERM)
        try:
            self.server.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.server.kill()
        # Abandoned programs do not delay the stop.
        self.check("the server stops by itself", self.server.wait() == 0, self.server.returncode)
        return super().end()


def listed_options(run, plugin):
    """Tests that the flags that the plug-in's LLVM lists are refused, and that no option whose name it has does harm."""
    flags, names = known_to_llvm(plugin), known_to_xla(plugin)
    run.check("LLVM lists its flags", len(flags) > 1000 and len(names) > 300, (len(flags), len(names)))
    for flag in flags:
        for value in (b"", b"1", b"file"):
            entry = part(1, flag.lstrip("-").encode()) + part(2, value)
            run.refused(f"{flag}={value} to LLVM", HONEST, options(part(500, entry)), words="xla_backend_extra_options")
    run.clean("every flag of LLVM")
    for name in names:
        for value in (part(1, b"file"), part(1, b"1"), part(2, 1), part(3, -1)):
            code, words = run.client.compile(HONEST, options(around=named(name, value)))
            run.check(f"{name} by name", code in (OK, INVALID_ARGUMENT, UNIMPLEMENTED), (code, words))
    run.lives("every option by name")
    run.clean("every option by name")


def compile_options(run, full):
    generator = random.Random(7)
    made = ["-" + "".join(generator.choices(string.ascii_lowercase + "-", k=generator.randint(2, 24))) for _ in range(1000 if full else 200)]
    for flag in LLVM + made:
        name, _, value = flag.partition("=")
        entry = part(1, name.encode()) + part(2, value.encode())
        run.refused(f"{flag} to LLVM", HONEST, options(part(500, entry)), words="xla_backend_extra_options")
    run.refused("the same by name", HONEST, options(around=named("xla_backend_extra_options", part(1, b"-help"))), words="xla_backend_extra_options")
    run.clean("options of LLVM")
    passed = 0
    values = [1, -1, (1 << 31) - 1, b"file", b"/tmp/file", b"@file"] if full else [1, -1, b"file"]
    for number in range(1, DEBUG_OPTIONS):
        for value in values:
            code, words = run.client.compile(HONEST, options(part(number, value)))
            passed += code == OK
            run.check(f"debug option {number} = {value}", code in (OK, INVALID_ARGUMENT, UNIMPLEMENTED), (code, words))
    run.check("debug options that clients send pass", 100 < passed < 600, passed)
    run.clean("every debug option")
    for name in ["xla_dump_to", "xla_dump_hlo_as_text", "xla_unsupported_crash_on_hlo_pass_noop_change", "xla_cpu_nonsense", "xla_gpu_ptx_file"]:
        run.refused(f"{name} by name", HONEST, options(around=named(name, part(1, b"true"))), words=name)
    for count in (-1, (1 << 31) - 1):
        run.refused(f"{count} parts of code", HONEST, options(around=named("xla_cpu_parallel_codegen_split_count", part(3, count))), words="split_count")
    for ordinal in (-5, 4, 1 << 31):
        run.refused(f"the device {ordinal}", HONEST, options(build=part(1, ordinal)), words="device_ordinal")
    for replicas, partitions in ((0, 1), (1 << 31, 1), (3, 2), (-1, -1), (1 << 62, 4)):
        run.refused(f"{replicas} x {partitions}", HONEST, options(replicas=replicas, partitions=partitions), words="num_replicas")
    run.lives("options")
    run.clean("options")


def with_custom_call(target, interface):
    """Returns a program that calls a function by name, with two arguments."""
    text = f"""func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {{
        %0 = stablehlo.custom_call @"{target}"(%a, %a) {{api_version = {interface} : i32, has_side_effect = true}} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
        return %0 : tensor<4xf32> }}"""
    with ir.Context() as context:
        stablehlo.register_dialect(context)
        return stablehlo.serialize_portable_artifact_str(text, STABLEHLO)


def names_of_the_compiler(run):
    """Returns the names that the compiler itself handles and real clients send; the server's refusal of another name lists them."""
    code, words = run.client.compile(with_custom_call("of_nobody", 1), options())
    listed = re.search(r"this server takes (.+?) from its clients", words)
    known = set(listed.group(1).split(", ")) if listed else set()
    run.check("the refusal of a name lists those that are taken", code == INVALID_ARGUMENT and {"Sharding", "mhlo.topk"} <= known, (code, words))
    return known


def marks(run, name):
    """Tests a marker name where it has no meaning: if it crashes the compiler, only that process ends, and the client is told."""
    for interface in (1, 2, 4):
        code, words = run.client.compile(with_custom_call(name, interface), options())
        answered = code in (OK, INVALID_ARGUMENT, NOT_FOUND, UNIMPLEMENTED, INTERNAL) or code == UNAVAILABLE and "nothing else is lost" in words
        run.check(f"a custom call to the mark {name} by interface {interface}", answered, (code, words))
    run.lives(f"the mark {name}")


def custom_calls(run, plugin, full):
    """Tests that clients cannot call functions of the plug-in by their names."""
    names = ["__onednn$matmul", "__onednn$softmax", "__onednn$layernorm", "__onednn$convolution", "TopK", "SliceToDynamic", "PadToStatic", "xla.sdy.FuncResult",
             "mhlo.top_k", "abort", "exit", "system", "printf", "memcpy", "malloc", "lapack_spotrf_ffi", "xla_python_cpu_callback", "nobody_has_this"]
    if full:
        words = set(re.findall(rb"\0([A-Za-z_][\w.$]{3,60})(?=\0)", pathlib.Path(plugin).read_bytes()))
        names += sorted(word.decode() for word in words if re.search(rb"onednn|xla_cpu|xla_ffi|_ffi$|callback|custom_?call|TopK|eigen|runtime|sharding", word, re.IGNORECASE))[:3000]
    known = names_of_the_compiler(run)
    for name in names:
        if name in known:
            marks(run, name)
            continue
        for interface in (1, 2, 4):
            run.refused(f"a custom call to {name} by interface {interface}", with_custom_call(name, interface), options(), words=name)
    code, words = run.client.compile(with_custom_call("", 1), options())
    run.check("a custom call to nothing is refused", code == INVALID_ARGUMENT, (code, words))
    foreign = HONEST.replace(b"vhlo\0", b"mhlo\0")
    run.refused("a program of another dialect", foreign, options(), words="dialect")
    run.lives("custom calls")
    # The log tells the operator about a compiler that a marker crashed.
    run.clean("custom calls", lines=lambda line: "the compiler's process ended over a program of a client" in line)


def partners(run):
    """Tests that operations that wait for a peer which cannot exist are refused by name, before they reach a compiler."""
    token = "%t = stablehlo.create_token : !stablehlo.token"
    both = "(tensor<4xf32>, !stablehlo.token)"
    channel = "channel_handle = #stablehlo.channel_handle<handle = 5, type = {}>, is_host_transfer = true"
    for name, operation in [
        ("infeed", f'%r:2 = "stablehlo.infeed"(%t) {{infeed_config = "", layout = [[0]]}} : (!stablehlo.token) -> {both}'),
        ("outfeed", f'%r = "stablehlo.outfeed"(%a, %t) {{outfeed_config = ""}} : {both} -> !stablehlo.token'),
        ("send", f'%r = "stablehlo.send"(%a, %t) {{{{{channel}}}}} : {both} -> !stablehlo.token'.format(2)),
        ("recv", f'%r:2 = "stablehlo.recv"(%t) {{{{{channel}}}}} : (!stablehlo.token) -> {both}'.format(3)),
    ]:
        text = f"func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {{ {token} {operation} return %a : tensor<4xf32> }}"
        with ir.Context() as context:
            stablehlo.register_dialect(context)
            program = stablehlo.serialize_portable_artifact_str(text, STABLEHLO)
        run.refused(f"a program with {name}", program, options(), code=UNIMPLEMENTED, words=f"`stablehlo.{name}`")
    run.lives("partners")
    run.clean("partners", lambda line: "the compiler's process ended" in line)


def with_sort(comparator):
    text = f"""func.func @main(%a: tensor<1000xf32>) -> tensor<1000xf32> {{
        %r = "stablehlo.sort"(%a) ({{ ^bb0(%x: tensor<f32>, %y: tensor<f32>): {comparator} }}) {{dimension = 0 : i64, is_stable = false}}
            : (tensor<1000xf32>) -> tensor<1000xf32>
        return %r : tensor<1000xf32> }}
        func.func private @f(%x: tensor<f32>, %y: tensor<f32>) -> tensor<i1> {{
        %c = stablehlo.compare LE, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1> return %c : tensor<i1> }}"""
    with ir.Context() as context:
        stablehlo.register_dialect(context)
        return stablehlo.serialize_portable_artifact_str(text, STABLEHLO)


def comparators(run):
    """Tests that comparators that may be inconsistent are refused, and that sorts with always inconsistent ones stay within their array."""
    random = """%z = stablehlo.constant dense<0.0> : tensor<f32> %o = stablehlo.constant dense<1.0> : tensor<f32> %s = stablehlo.constant dense<> : tensor<0xi64>
        %r = stablehlo.rng %z, %o, %s, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<0xi64>) -> tensor<f32>
        %c = stablehlo.compare LT, %r, %x : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return %c : tensor<i1>"""
    calling = "%c = func.call @f(%x, %y) : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return %c : tensor<i1>"
    run.refused("a sort by random numbers", with_sort(random), options(), words="`rng`")
    run.refused("a sort by a function", with_sort(calling), options(), words="`call`")
    approximate = jax.jit(lambda x: jax.lax.approx_max_k(x, 3)).lower(jnp.zeros(64)).as_text()
    changed, count = re.subn(r"compare +GT", "compare GE", approximate)
    run.check("approx_max_k compares by greater", count > 0, approximate)
    never = stablehlo.serialize_portable_artifact_str(changed, STABLEHLO)
    run.refused("approx_max_k by greater or equal", never, options(), words="ApproxTopK")
    for name, function in [
        ("not stable", lambda x: jnp.sort(x, stable=False)), ("of complex numbers", lambda x: jnp.sort(x + 1j)), ("by several keys", lambda x: jnp.lexsort((x, -x))),
        ("descending", lambda x: jnp.argsort(x, descending=True)), ("approx_max_k", lambda x: jax.lax.approx_max_k(x, 3)),
    ]:
        found = run.client.compile(artifact(function, jnp.zeros(64)), options())
        run.check(f"a sort: {name}", found[0] == OK, found)
    for kind in ("sort", "greedy sort"):
        client = Real(run, kind)
        served, said = client.says("sorted", SERVED)
        run.check(f"a {kind} whose comparator is always true ends", served, said)
        client.end()
    # No number is both greater than another one and less than it, so even a sort that is not stable stays within its array.
    found = subprocess.run([sys.executable, "-c", APPROXIMATE, "{}:{}".format(*run.address)], capture_output=True, text=True)
    run.check("approx_max_k over NaNs finds elements of its array", found.stdout.split() == ["found"], found.stderr)
    run.lives("comparators")
    # Some of the programs above crash their compiler.
    run.clean("comparators", lambda line: "the compiler's process ended" in line)


class Real:
    """A real client in a process of its own, which runs one of PROGRAMS."""

    def __init__(self, run, kind):
        command = [sys.executable, "-c", REAL, "{}:{}".format(*run.address), kind]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.lines = queue.Queue()
        threading.Thread(target=lambda: [self.lines.put(line.strip()) for line in itertools.chain(self.process.stdout, ["over"])], daemon=True).start()

    def says(self, words, seconds):
        """Returns the line with some words, and everything before it, if it is printed within `seconds`."""
        said, end = [], time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                said.append(self.lines.get(timeout=max(0, end - time.monotonic())))
            except queue.Empty:
                break
            if words in said[-1]:
                return True, said
            if said[-1] == "over":
                break
        return False, said

    def end(self):
        self.process.kill()
        self.process.wait()


def endless(run):
    """Tests that while one client's program does not end, those of others run within a limit, its client is told, and arrays are kept."""
    for kind in ("while",):
        held = Real(run, "held")
        begun, said = held.says("begun", SERVED)
        run.check(f"an endless {kind}: another client holds an array", begun, said)
        client = Real(run, kind)
        begun, said = client.says("begun", SERVED)
        run.check(f"an endless {kind}: it is begun", begun, said)
        # Gives the program time to reach the plug-in.
        time.sleep(2)
        since = time.monotonic()
        other = Real(run, "add")
        served, said = other.says("[0. 2. 4. 6.]", SHARED + SERVED)
        run.check(f"an endless {kind}: a program of another client runs", served, said)
        print(f"an endless {kind}: a program of another client ran after {time.monotonic() - since:.1f} s", flush=True)
        told, said = client.says("shared-execution-seconds", SERVED)
        run.check(f"an endless {kind}: its client is told why", told, said)
        stays, said = held.says("[0. 2. 4. 6.]", SERVED)
        run.check(f"an endless {kind}: the array of before is there", stays, said)
        run.check(f"an endless {kind}: the server lives", run.server.poll() is None, run.server.poll())
        for process in (held, client, other):
            process.end()
    run.client = Client(run.address)
    run.lives("endless programs")


def waiting(run):
    """Tests that the server outlives XLA's limit when the devices of a program wait for one another without end, in a session of its own."""
    client = subprocess.Popen([sys.executable, "-c", WAITING, "{}:{}".format(*run.address)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    # jaxlib prints messages of its own first.
    said = []
    for line in client.stdout:
        said.append(line)
        if line == "begun\n":
            break
    run.check("devices that do not meet: the program is begun", said[-1:] == ["begun\n"], said)
    deadline = time.monotonic() + RENDEZVOUS
    while time.monotonic() < deadline and run.server.poll() is None:
        time.sleep(1)
    # The earlier connection was idle for longer than the server permits.
    run.client = Client(run.address)
    run.lives("devices that do not meet")
    other = Real(run, "add")
    served, said = other.says("[0. 2. 4. 6.]", SHARED + SERVED)
    run.check("devices that do not meet: a program of another client runs", served, said)
    other.end()
    run.check("devices that do not meet: the server lives", run.server.poll() is None, run.server.poll())
    client.kill()
    client.communicate()


# The beginning of every real client.
CONNECTED = """
import os, sys
os.environ["IFRT_PROXY_USE_INSECURE_GRPC_CREDENTIALS"] = "true"
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax._src import xla_bridge
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
from jaxlib import _ifrt_proxy
options = _ifrt_proxy.ClientConnectionOptions()
options.connection_timeout_in_seconds = 30
xla_bridge.register_backend_factory("proxy", lambda: _ifrt_proxy.get_client("grpc://" + sys.argv[1], options), priority=500)
jax.config.update("jax_platforms", "proxy")
"""

# Runs one program on the first device: an endless sort or loop, or a sum. `held` puts its array there and computes the sum some time later.
REAL = CONNECTED + '''
import time
from jax._src import compiler
from jax._src.lib import xla_client
kind = sys.argv[2]
compare = "%c = stablehlo.constant dense<true> : tensor<i1> stablehlo.return %c : tensor<i1>"
operation, size = {
    "sort": (f"""%r = "stablehlo.sort"(%a) ({{ ^bb0(%x: tensor<f32>, %y: tensor<f32>): {compare} }}) {{dimension = 0 : i64, is_stable = false}} : (TYPE) -> TYPE""", 1000),
    "greedy sort": (f"""%r = "stablehlo.sort"(%a) ({{ ^bb0(%x: tensor<f32>, %y: tensor<f32>): {compare} }}) {{dimension = 0 : i64, is_stable = false}} : (TYPE) -> TYPE""", 100000),
    "while": (f"%r = stablehlo.while(%x = %a) : TYPE cond {{ {compare} }} do {{ %y = stablehlo.add %x, %x : TYPE stablehlo.return %y : TYPE }}", 4),
}.get(kind, ("%r = stablehlo.add %a, %a : TYPE", 4))
text = f"func.func @main(%a: TYPE) -> TYPE {{ {operation} return %r : TYPE }}".replace("TYPE", f"tensor<{size}xf32>")
device = jax.devices()[0]
options = compiler.get_compile_options(num_replicas=1, num_partitions=1, device_assignment=np.array([[device.id]]))
program = device.client.compile_and_load(text, xla_client.DeviceList((device,)), options)
array = jax.device_put(np.arange(size, dtype=np.float32), device)
np.asarray(array)
print("begun", flush=True)
if "sort" in kind:
    found = np.asarray(program.execute_sharded([array]).disassemble_into_single_device_arrays()[0][0])
    print("sorted" if np.array_equal(np.sort(found), np.arange(size)) else found, flush=True)
    sys.exit()
if kind == "held":
    time.sleep(20)
try:
    print(np.asarray(program.execute_sharded([array]).disassemble_into_single_device_arrays()[0][0]), flush=True)
except Exception as error:
    print(error, flush=True)
'''

# Finds the largest of numbers and NaNs. These have no order, as no NaN is greater than another element.
APPROXIMATE = CONNECTED + """
program = jax.jit(lambda x: lax.approx_max_k(x, x.shape[0] // 2))
random = np.random.default_rng(0)
for size in (17, 64, 1000, 4096):
    for share in (0.1, 0.5, 0.9):
        numbers = random.standard_normal(size).astype(np.float32)
        numbers[random.random(size) < share] = np.nan
        values, places = map(np.asarray, program(numbers))
        assert len(set(places.tolist())) == size // 2 and np.array_equal(values, numbers[places], equal_nan=True), (size, share)
print("found")
"""

# The first of four devices waits for the others.
WAITING = CONNECTED + """
mesh = Mesh(np.array(jax.devices()), ("i",))
alone = lambda a: lax.cond(lax.axis_index("i") == 0, lambda a: lax.psum(a, "i"), lambda a: a * 2, a)
program = jax.jit(jax.shard_map(alone, mesh=mesh, in_specs=P("i"), out_specs=P("i"), check_vma=False))
array = jax.device_put(np.arange(16, dtype=np.float32), NamedSharding(mesh, P("i")))
program = program.lower(array).compile()
print("begun", flush=True)
print(np.asarray(program(array)))
"""


# Names that compilers remove or expand, some of which real clients send.
KNOWN_CALLS = ["Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "annotate_device_placement", "ApproxTopK", "Eigh", "LuDecomposition",
               "ProductOfElementaryHouseholderReflectors", "Qr", "mhlo.acos", "mhlo.acosh", "mhlo.asin", "mhlo.asinh", "mhlo.atanh", "mhlo.cosh", "mhlo.erf",
               "mhlo.ragged_dot", "mhlo.sinh", "mhlo.tan", "mhlo.topk", "xla.sdy.FuncResultSharding", "xla.sdy.GlobalToLocalShape",
               "xla.sdy.LocalToGlobalShape", "xla.sdy.PropagationBarrier", "xla.sdy.ShardingGroup"]


def programs(run, full):
    # With wrong operands the compiler may crash, and nothing else.
    for name in KNOWN_CALLS:
        for interface in (1, 2, 4):
            run.client.compile(with_custom_call(name, interface), options())
        run.lives(f"custom calls to {name}")
    text = b"module { func.func @main() { return } }"
    for name, program in [
        ("text", text), ("nested text", b"module {" * 8_000), ("nested types", b"func.func @main(%a: " + b"tuple<" * 8_000), ("nothing but noise", os.urandom(4096)),
        ("bytecode of another producer", HONEST.replace(b"StableHLO_v", b"NotStable_v")), ("half a program", HONEST[: len(HONEST) // 2]),
    ]:
        run.refused(f"a program: {name}", program, options())
    # The section of strings begins with their number; 2^62 is encoded as a prefix byte and eight bytes.
    head = HONEST.index(b"\0", 5) + 1
    huge = HONEST[: head] + b"\x00\x15" + b"\x00" + (1 << 62).to_bytes(8, "little") + HONEST[head:]
    run.refused("a program: 2^62 strings", huge, options())
    with ir.Context() as context:
        stablehlo.register_dialect(context)
        recursive = """func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { %0 = func.call @f(%a) : (tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> }
            func.func private @f(%a: tensor<4xf32>) -> tensor<4xf32> { %0 = func.call @f(%a) : (tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> }"""
        recursive = stablehlo.serialize_portable_artifact_str(recursive, STABLEHLO)
    code, words = run.client.compile(recursive, options())
    run.check("a program that calls itself is not compiled", code != OK, (code, words))
    run.lives("a program that calls itself")
    generator = random.Random(11)
    ended = 0
    for trial in range(1000 if full else 150):
        mutated = bytearray(LARGER)
        for _ in range(generator.randint(1, 3)):
            mutated[generator.randrange(5, len(mutated))] = generator.randrange(256)
        code, words = run.client.compile(bytes(mutated), options())
        ended += code == UNAVAILABLE
        if code == UNAVAILABLE:
            run.check(f"mutation {trial} is told why", "the compiler did not survive it" in words, words)
    print(f"{ended} programs ended their compiler", flush=True)
    run.lives("mutated programs")
    # A program of some hundred bytes with intermediate values of 512 MiB.
    big = artifact(lambda x: jnp.sort(jnp.sin(jnp.arange(1 << 27, dtype=jnp.float32) * x))[:4], jnp.float32(1))
    run.refused("a program that needs 512 MiB", big, options(), code=RESOURCE_EXHAUSTED, words="session-array-bytes")
    run.lives("a program that needs 512 MiB")
    run.clean("programs", lambda line: "the compiler's process ended" in line)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serdes", required=True)
    parser.add_argument("--host-plugin")
    parser.add_argument("--cache", type=pathlib.Path, default=pathlib.Path.home() / ".cache/serdes-ci/pjrt")
    parser.add_argument("--plugin")
    arguments = parser.parse_args()
    full = bool(os.environ.get("SERDES_FULL"))
    failed = 0
    chosen = [plugin for plugin in PLUGINS if arguments.plugin in (None, plugin[0])]
    for package, version, *_ in chosen if full or arguments.plugin else chosen[-1:]:
        plugin = download(arguments.cache / f"{package}-{version}", package, version)
        run = Run(arguments.serdes, plugin)
        begun = time.monotonic()
        try:
            compile_options(run, full)
            if full:
                listed_options(run, plugin)
            custom_calls(run, plugin, full)
            programs(run, full)
            partners(run)
            comparators(run)
            # These are last, because the plug-in prints lines about hanging programs. They take long and do not depend on the client: one suffices.
            if full or jax.__version__.startswith("0.10."):
                endless(run)
                waiting(run)
        except (ConnectionError, TimeoutError) as error:
            run.check("the server answers", False, repr(error))
        print(f"{package}: {time.monotonic() - begun:.0f} s", flush=True)
        failed |= run.end()
    return failed


if __name__ == "__main__":
    DEFAULTS = defaults()
    HONEST = artifact(lambda x: x + 1, jnp.zeros(4, jnp.float32))
    LARGER = artifact(lambda x, y: (jnp.sort(x @ y, axis=0), jax.nn.softmax(x)), jnp.zeros((8, 8)), jnp.zeros((8, 8)))
    sys.exit(main())
