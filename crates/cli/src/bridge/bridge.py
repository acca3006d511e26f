# Writes programs in StableHLO at older versions: frames in, frames out, until the input ends.
import io
import os
import struct
import sys

answers = os.fdopen(os.dup(1), "wb")
# What libraries print is no answer.
os.dup2(2, 1)


def answer(kind, content):
    answers.write(struct.pack("<BQ", kind, len(content)) + content)
    answers.flush()


def exactly(count):
    content = sys.stdin.buffer.read(count)
    if len(content) != count:
        sys.exit(0)
    return content


def part():
    return exactly(struct.unpack("<Q", exactly(8))[0])


try:
    try:
        import resource

        # The bytes come from untrusted clients.
        resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, ValueError, OSError):
        pass
    from jaxlib import _jax
    from jaxlib.mlir import ir
    from jaxlib.mlir._mlir_libs import _jax_mlir_ext
    from jaxlib.mlir.dialects import chlo, sdy, stablehlo

    # A context keeps all that it ever saw: after a number of programs another one takes over.
    LONGEST_LIFE = 100
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)

    def context():
        made = ir.Context()
        made.append_dialect_registry(registry)
        made.load_all_available_dialects()
        for dialect in (chlo, sdy, stablehlo):
            dialect.register_dialect(made)
        return made

    def write(here, program, target):
        with here, ir.Location.unknown():
            module = stablehlo.deserialize_portable_artifact(here, program)
            serialize = _jax.mlir.serialize_portable_artifact
            try:
                return serialize(module, target, True)
            except TypeError:
                # Older builds take the module as bytes.
                content = io.BytesIO()
                module.operation.write_bytecode(content)
                return serialize(content.getvalue(), target, True)

    current = context()
    answer(0, stablehlo.get_current_version().encode())
except Exception as error:
    answer(1, f"{type(error).__name__}: {error}".encode())
    sys.exit(1)

served = 0
while True:
    target, program = part().decode(), part()
    try:
        answer(0, write(current, program, target))
    except Exception as error:
        answer(1, f"{type(error).__name__}: {error}".encode())
    served += 1
    if served % LONGEST_LIFE == 0:
        current = context()
