"""Measures which ranks and lengths of inputs the shape functions of the installed TensorFlow accept, and which shapes they return.

    PYTHON tests/interop/operation_shapes.py OUT.json [OPERATION…]
    python3 tests/interop/operation_shapes.py --merge crates/graphs/src/graph/shapes/tensorflow.shapes MEASURED.json…

Every operation is created many times through the C API, with random attributes. If it is accepted with inputs of unknown shapes, each input
in turn gets each rank, each length of a vector, and constants; a rank or length that is refused in every sample, for all attributes, is a
rule of the operation. An output with the same shape in every sample is fixed; one that has the shape of an input whenever that is known, for
inputs of all ranks and also with the other inputs known, follows that input. `--merge` writes the rules that hold in all of several
releases, for operations that have the same inputs in every release of tests/data/tensorflow/ops.
"""

import ctypes
import json
import os
import pathlib
import random
import sys

RANKS = range(0, 9)
LENGTHS = range(0, 9)
SAMPLES = 10
# Operations that end the process, or whose shapes depend on a function.
LEFT_OUT = {"_QuantizedMatMul", "PartitionedCall", "StatefulPartitionedCall", "SymbolicGradient", "RemoteCall"}
# Its shape function uses the last of all inputs as the axis, so the rules of each depend on their number.
LEFT_OUT |= {"_MklQuantizedConcatV2"}
# Their rules depend on the version with which a graph was written; their functions are written by hand.
OF_A_VERSION = {"All", "Any", "EuclideanNorm", "Max", "Mean", "Min", "Prod", "Sum"}
# They compute with unknown dimensions, so they accept with known inputs what they refuse with unknown ones.
COUNT_WITH_UNKNOWN = "DTensor"
# Its inputs have one shape, or are broadcast to one: a rank that is refused with an input of unknown shape is accepted with others.
BROADCASTS = {"SoftmaxCrossEntropyWithLogits"}
# Minimum number of samples for rules of an operation.
FEW = 4
# The ranks that are tried for all inputs together.
TOGETHER = 0x3F
REGISTRIES = pathlib.Path(__file__).resolve().parents[1] / "data/tensorflow/ops"


class Api:
    def __init__(self, tf):
        pointer, text = ctypes.c_void_p, ctypes.c_char_p
        self.dll = ctypes.CDLL(str(pathlib.Path(tf.__file__).parent / "libtensorflow_cc.so.2"))

        class Output(ctypes.Structure):
            _fields_ = [("oper", pointer), ("index", ctypes.c_int)]

        self.Output = Output
        for name, result, arguments in [
            ("TF_NewGraph", pointer, []), ("TF_DeleteGraph", None, [pointer]), ("TF_NewStatus", pointer, []), ("TF_GetCode", ctypes.c_int, [pointer]),
            ("TF_Message", text, [pointer]), ("TF_NewOperation", pointer, [pointer, text, text]), ("TF_AddInput", None, [pointer, Output]),
            ("TF_AddInputList", None, [pointer, ctypes.POINTER(Output), ctypes.c_int]),
            ("TF_SetAttrValueProto", None, [pointer, text, text, ctypes.c_size_t, pointer]),
            ("TF_FinishOperation", pointer, [pointer, pointer]), ("TF_GraphGetTensorNumDims", ctypes.c_int, [pointer, Output, pointer]),
            ("TF_GraphGetTensorShape", None, [pointer, Output, ctypes.POINTER(ctypes.c_int64), ctypes.c_int, pointer]),
            ("TF_OperationNumOutputs", ctypes.c_int, [pointer]), ("TF_GetAllOpList", pointer, []),
        ]:
            function = getattr(self.dll, name)
            function.restype, function.argtypes = result, arguments


class Graph:
    """A graph, and the sources of inputs in it."""

    def __init__(self, api, messages):
        self.api, self.dll, self.messages = api, api.dll, messages
        self.graph, self.status = api.dll.TF_NewGraph(), api.dll.TF_NewStatus()
        self.count, self.sources = 0, {}
        self.message = ""

    def delete(self):
        self.dll.TF_DeleteGraph(self.graph)

    def make(self, operation, inputs, attributes):
        """Creates an operation; returns it, or None. Inputs are lists of outputs or single outputs."""
        self.count += 1
        made = self.dll.TF_NewOperation(self.graph, operation.encode(), b"n%d" % self.count)
        for one in inputs:
            if isinstance(one, list):
                self.dll.TF_AddInputList(made, (self.api.Output * len(one))(*one), len(one))
            else:
                self.dll.TF_AddInput(made, one)
        for name, value in attributes.items():
            self.dll.TF_SetAttrValueProto(made, name.encode(), value, len(value), self.status)
        done = self.dll.TF_FinishOperation(made, self.status)
        if self.dll.TF_GetCode(self.status):
            self.message = self.dll.TF_Message(self.status).decode(errors="replace")
            return None
        return done

    def shapes(self, operation):
        found = []
        for index in range(self.dll.TF_OperationNumOutputs(operation)):
            output = self.api.Output(operation, index)
            rank = self.dll.TF_GraphGetTensorNumDims(self.graph, output, self.status)
            if rank < 0:
                found.append(None)
                continue
            dims = (ctypes.c_int64 * rank)()
            self.dll.TF_GraphGetTensorShape(self.graph, output, dims, rank, self.status)
            found.append(list(dims))
        return found

    def source(self, data_type, is_reference, shape):
        """Returns an output of a type and shape; None is an unknown rank, -1 an unknown dimension."""
        key = (data_type, is_reference, None if shape is None else tuple(shape))
        if key not in self.sources:
            value = self.messages["attr"]()
            if shape is None:
                value.shape.unknown_rank = True
            else:
                value.shape.SetInParent()
                for size in shape:
                    value.shape.dim.add().size = size
            kind = self.messages["attr"](type=data_type)
            made = self.make("VariableV2" if is_reference else "Placeholder", [], {"dtype": kind.SerializeToString(), "shape": value.SerializeToString()})
            self.sources[key] = self.api.Output(made, 0) if made else None
        return self.sources[key]

    def constant(self, data_type, shape, numbers):
        value = self.messages["attr"]()
        value.tensor.dtype = data_type
        value.tensor.tensor_shape.SetInParent()
        for size in shape:
            value.tensor.tensor_shape.dim.add().size = size
        (value.tensor.int_val if data_type == 3 else value.tensor.int64_val).extend(numbers)
        kind = self.messages["attr"](type=data_type)
        made = self.make("Const", [], {"dtype": kind.SerializeToString(), "value": value.SerializeToString()})
        return self.api.Output(made, 0)


class Sampler:
    """Draws random attributes."""

    def __init__(self, messages, rng):
        self.attr, self.rng = messages["attr"], rng

    def put(self, value, kind, declared, into=None):
        rng = self.rng
        if kind == "type":
            allowed = list(declared.allowed_values.list.type) or [1, 1, 3, 9, 7, 10, 2, 4, 8, 14, 19, 21]
            usual = [one for one in allowed if one in (1, 3, 9, 7, 10)]
            chosen = rng.choice(usual) if usual and rng.random() < 0.7 else rng.choice(allowed)
            into.append(chosen) if into is not None else setattr(value, "type", chosen)
        elif kind == "int":
            least = declared.minimum if declared.has_minimum else -1
            chosen = max(least, rng.choice([-1, 0, 1, 1, 2, 3, 4]))
            into.append(chosen) if into is not None else setattr(value, "i", chosen)
        elif kind == "float":
            chosen = rng.choice([0.0, 1.0, 0.5])
            into.append(chosen) if into is not None else setattr(value, "f", chosen)
        elif kind == "bool":
            chosen = rng.random() < 0.5
            into.append(chosen) if into is not None else setattr(value, "b", chosen)
        elif kind == "string":
            chosen = rng.choice(list(declared.allowed_values.list.s) or [b"", b"x", b"some text", b"NHWC", b"NCHW", b"ij,jk->ik"])
            into.append(chosen) if into is not None else setattr(value, "s", chosen)
        elif kind == "shape":
            shape = into.add() if into is not None else value.shape
            dims = rng.choice([None, None, [], [2], [-1, 2], [2, 3, 4]])
            shape.SetInParent()
            if dims is None:
                shape.unknown_rank = True
            else:
                for size in dims:
                    shape.dim.add().size = size
        elif kind == "func":
            func = into.add() if into is not None else value.func
            func.name = "missing"
        elif kind == "tensor":
            tensor = into.add() if into is not None else value.tensor
            tensor.dtype = 1
            tensor.tensor_shape.SetInParent()
            tensor.float_val.append(1.0)

    def value(self, declared):
        value = self.attr()
        kind = declared.type
        if not kind.startswith("list("):
            self.put(value, kind, declared)
            return value
        element = kind[5:-1]
        least = declared.minimum if declared.has_minimum else 0
        length = max(least, self.rng.choice([0, 1, 1, 2, 3, 4, 5]))
        value.list.SetInParent()
        field = {"string": "s", "int": "i", "float": "f", "bool": "b"}.get(element, element)
        for _ in range(length):
            self.put(value, element, declared, getattr(value.list, field))
        return value

    def attributes(self, definition):
        found = {}
        for declared in definition.attr:
            is_default = declared.HasField("default_value") and self.rng.random() < 0.5
            found[declared.name] = declared.default_value if is_default else self.value(declared)
        return found


def arguments(definition, attributes):
    """Returns [(name, is_list, [types], is_ref)], one per argument, or None for impossible attributes."""
    found = []
    for argument in definition.input_arg:
        if argument.type_list_attr:
            types, is_list = list(attributes[argument.type_list_attr].list.type), True
        else:
            one = attributes[argument.type_attr].type if argument.type_attr else argument.type
            is_list = bool(argument.number_attr)
            types = [one] * (attributes[argument.number_attr].i if is_list else 1)
        found.append((argument.name, is_list, types, argument.is_ref))
    return found


class Measured:
    """The common results of all samples of one operation."""

    def __init__(self, definition):
        self.definition = definition
        self.samples = 0
        names = [argument.name for argument in definition.input_arg]
        self.ranks = {name: set(RANKS) for name in names}
        self.lengths = {name: set(LENGTHS) for name in names}
        self.seen = {name: False for name in names}
        self.outputs = None
        self.follows = None

    def sample(self, graph, sampler):
        rng = sampler.rng
        attributes = sampler.attributes(self.definition)
        ready = {name: value.SerializeToString() for name, value in attributes.items()}
        found = arguments(self.definition, attributes)

        def make(change=None, all_known=None):
            inputs = []
            for position, (_, is_list, types, is_ref) in enumerate(found):
                ones = []
                for number, data_type in enumerate(types):
                    own = change if change and change[0] == (position, number) else None
                    if own and callable(own[1]):
                        ones.append(own[1](data_type))
                    else:
                        shape = own[1] if own else (all_known(position, number) if all_known else None)
                        ones.append(graph.source(data_type, is_ref, shape))
                if any(one is None for one in ones):
                    return None
                inputs.append(ones if is_list else ones[0])
            return graph.make(self.definition.name, inputs, ready)

        made = make()
        if made is None:
            return
        self.samples += 1
        shapes = graph.shapes(made)
        flat = [(position, number) for position, one in enumerate(found) for number in range(len(one[2]))]
        if self.outputs is None or len(self.outputs) != len(shapes):
            self.outputs = shapes if self.outputs is None else []
            self.follows = [{position for position, one in enumerate(found) if not one[1]} for _ in shapes] if self.follows is None else []
        self.fixed(shapes)
        taken = {}
        for place in flat:
            position, number = place
            name, _, types, is_ref = found[position]
            self.seen[name] = True
            refused = set()
            for rank in RANKS:
                done = make((place, [-1] * rank))
                if done is None:
                    refused.add(rank)
                else:
                    self.follow(graph.shapes(done), position, [-1] * rank)
                    self.fixed(graph.shapes(done))
                    taken.setdefault(place, []).append(rank)
            short = {length for length in LENGTHS if make((place, [length])) is None}
            if types[number] in (3, 9) and not is_ref:
                refused -= {rank for rank in (0, 1) if rank in refused and self.is_taken_as_constant(graph, make, place, rank)}
                short -= {length for length in short if self.is_taken_as_vector(graph, make, place, length)}
            self.ranks[name] &= refused
            self.lengths[name] &= short
            for rank in taken.get(place, []):
                sizes = [rng.choice([-1, 0, 1, 2, 3, 4, 5, 7]) for _ in range(rank)]
                done = make((place, sizes))
                if done is not None:
                    self.follow(graph.shapes(done), position, sizes)
                    self.fixed(graph.shapes(done))
        self.together(graph, make, flat, found, rng)
        for _ in range(8):
            known = {}

            def shape(position, number):
                ranks = taken.get((position, number), [])
                if not ranks or rng.random() < 0.2:
                    return None
                known[position, number] = [rng.choice([-1, 1, 2, 3]) for _ in range(rng.choice(ranks))]
                return known[position, number]

            done = make(None, shape)
            if done is not None:
                for (position, _), sizes in known.items():
                    self.follow(graph.shapes(done), position, sizes)
                self.fixed(graph.shapes(done))

    def together(self, graph, make, flat, found, rng):
        """Tries ranks with all inputs known: a rank that is refused for one input alone may be accepted then."""
        for attempt in range(14):
            rank = attempt if attempt < 6 else None
            ranks = {place: rng.choice([0, 1, 2, 3, 4]) if rank is None else rank for place in flat}
            size = rng.choice([-1, 1, 2])
            done = make(None, lambda position, number: [size] * ranks[position, number])
            if done is None:
                continue
            for (position, _), taken in ranks.items():
                self.ranks[found[position][0]].discard(taken)
                self.lengths[found[position][0]].discard(size if taken == 1 else None)
                self.follow(graph.shapes(done), position, [size] * taken)
            self.fixed(graph.shapes(done))

    def fixed(self, shapes):
        """Updates the common shapes of the outputs: a dimension that was not always the same is unknown."""
        def common(old, new):
            if old is None or new is None or len(old) != len(new):
                return None
            return [one if one == two else -1 for one, two in zip(old, new)]
        self.outputs = [common(old, new) for old, new in zip(self.outputs, shapes)]

    def follow(self, shapes, position, shape):
        for follows, given in zip(self.follows, shapes):
            if given != shape:
                follows.discard(position)

    def is_taken_as_constant(self, graph, make, place, rank):
        shape = [] if rank == 0 else [1]
        return any(make((place, lambda data_type, number=number: graph.constant(data_type, shape, [number]))) is not None for number in (-1, 0, 1, 2))

    def is_taken_as_vector(self, graph, make, place, length):
        return any(make((place, lambda data_type, number=number: graph.constant(data_type, [length], [number] * length))) is not None for number in (-1, 0, 1, 2))

    def result(self):
        result = {"samples": self.samples}
        if self.samples:
            result["ranks"] = {name: sorted(ranks) for name, ranks in self.ranks.items() if self.seen[name] and ranks}
            result["lengths"] = {name: sorted(lengths) for name, lengths in self.lengths.items() if self.seen[name] and lengths and lengths != set(LENGTHS)}
            result["outputs"] = [{"shape": shape, "follows": sorted(follows)} for shape, follows in zip(self.outputs or [], self.follows or [])]
        return result


def measure(api, messages, definition):
    rng = random.Random(definition.name)
    sampler = Sampler(messages, rng)
    measured = Measured(definition)
    plain = all(one.type in ("type", "func") for one in definition.attr)
    wanted, tries = (4, 20) if plain else (SAMPLES, 60)
    for _ in range(tries):
        graph = Graph(api, messages)
        measured.sample(graph, sampler)
        graph.delete()
        if measured.samples >= wanted:
            break
    return measured.result()


def inputs_of_all_releases():
    """Returns the names of the inputs of each operation that has the same ones in every release, and the kinds of its attributes."""
    base, deltas = (json.loads((REGISTRIES / f"{name}.json").read_text()) for name in ("base", "deltas"))
    found, attributes, different = {}, {}, set()
    for operations in [base["ops"], *({**delta.get("add", {}), **delta.get("change", {})} for delta in deltas.values())]:
        for name, one in operations.items():
            arguments = tuple(argument["name"] for argument in one.get("inputs", []))
            attributes.setdefault(name, set()).update(attribute["type"] for attribute in one.get("attrs", []))
            if found.setdefault(name, arguments) != arguments:
                different.add(name)
    return {name: (arguments, attributes[name]) for name, arguments in found.items() if name not in different}


def output(found):
    """Returns the text of one output, from the results of several releases."""
    shapes, follows = [one["shape"] for one in found], set.intersection(*(set(one["follows"]) for one in found))
    text = ""
    if None not in shapes and len({len(one) for one in shapes}) == 1:
        sizes = [sizes[0] if len(set(sizes)) == 1 else -1 for sizes in zip(*shapes)]
        text = "[" + ".".join("?" if size < 0 else str(size) for size in sizes) + "]"
        if -1 not in sizes:
            return text
    return text + (f"={min(follows)}" if follows else "") or "*"


def mask(refused):
    return sum(1 << bit for bit in range(9) if bit not in refused)


def is_sure(mask):
    """Returns True if only one rank, or all from one on, are accepted. Other sets occur if an attribute decides."""
    return mask & (mask - 1) == 0 or mask + (mask & -mask) == 0x200


def line(name, arguments, measured):
    """Returns the line of the table, or None if nothing is known; `measured` has the results of the releases with the operation."""
    names, kinds = arguments
    decides = bool(kinds - {"type", "list(type)", "bool", "func", "float"})
    rules, compares = [], False
    for argument in names:
        ranks = mask(set.intersection(*(set(one["ranks"].get(argument, [])) for one in measured)))
        lengths = mask(set.intersection(*(set(one["lengths"].get(argument, [])) for one in measured)))
        # An input that accepts no rank alone is compared with other inputs, for the ranks that were tried together.
        compares |= ranks in (0, TOGETHER)
        # A length that varies is that of a list, whose attribute was never drawn with its maximum length.
        if not is_sure(lengths) or "shape" in kinds:
            lengths = 0x1FF
        if decides and not is_sure(ranks):
            ranks = 0x1FF
        if name in BROADCASTS or ranks in (0, TOGETHER) or (ranks == 0x1FF and lengths == 0x1FF):
            rules.append("*")
            continue
        rules.append(f"{ranks:x}" + (f":{lengths:x}" if ranks >> 1 & 1 and lengths not in (0, 0x1FF) else ""))
    outputs = zip(*(one["outputs"] for one in measured)) if len({len(one["outputs"]) for one in measured}) == 1 else []
    texts = [] if compares else [output(found) for found in outputs]
    while texts and texts[-1] == "*":
        texts.pop()
    if all(rule == "*" for rule in rules) and not texts:
        return None
    return f"{name} {','.join(rules) or '-'} {','.join(texts) or '-'}\n"


def merge(output, files):
    releases = [json.loads(pathlib.Path(file).read_text())["operations"] for file in files]
    lines = []
    for name, arguments in sorted(inputs_of_all_releases().items()):
        measured = [release[name] for release in releases if name in release]
        if measured and name not in OF_A_VERSION and not name.startswith(COUNT_WITH_UNKNOWN) and all(one["samples"] >= FEW for one in measured):
            lines.append(line(name, arguments, measured))
    pathlib.Path(output).write_text("".join(one for one in lines if one))


def main():
    if sys.argv[1:2] == ["--merge"]:
        return merge(sys.argv[2], sys.argv[3:])
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf
    from tensorflow.core.framework import attr_value_pb2, op_def_pb2

    api = Api(tf)
    messages = {"attr": attr_value_pb2.AttrValue}

    class Buffer(ctypes.Structure):
        _fields_ = [("data", ctypes.c_void_p), ("length", ctypes.c_size_t), ("free", ctypes.c_void_p)]

    buffer = ctypes.cast(api.dll.TF_GetAllOpList(), ctypes.POINTER(Buffer)).contents
    operations = op_def_pb2.OpList.FromString(ctypes.string_at(buffer.data, buffer.length))
    wanted = [one for one in operations.op if one.name not in LEFT_OUT and (not sys.argv[2:] or one.name in sys.argv[2:])]
    output = pathlib.Path(sys.argv[1])
    results = {}
    pending = [wanted[start:start + 32] for start in range(0, len(wanted), 32)]
    while pending:
        chunk = pending.pop(0)
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read)
            found = {definition.name: measure(api, messages, definition) for definition in chunk}
            with os.fdopen(write, "w") as file:
                json.dump(found, file)
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as file:
            text = file.read()
        os.waitpid(child, 0)
        if text:
            results |= json.loads(text)
        elif len(chunk) > 1:
            pending = [[one] for one in chunk] + pending
        else:
            print(f"{chunk[0].name} ends the process", file=sys.stderr)
    output.write_text(json.dumps({"release": tf.__version__, "operations": results}, indent=None, sort_keys=True))


if __name__ == "__main__":
    main()
