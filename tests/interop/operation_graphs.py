"""Random graphs over the operations of a release that the importer accepts, and their wire format.

These graphs are valid by the registry (tests/data/tensorflow/ops): types along every edge, numbers, lists, references, control edges,
loops, functions with generic types that nodes call. `operation_faults` damages them. Nothing here needs TensorFlow.
"""

import base64
import copy
import json
import pathlib
import struct

OPS = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "tensorflow" / "ops"
FIELDS = {"string": 2, "int": 3, "float": 4, "bool": 5, "type": 6, "shape": 7, "tensor": 8, "placeholder": 9, "func": 10}
LIST_FIELDS = {"string": 2, "int": 3, "float": 4, "bool": 5, "type": 6, "shape": 7, "tensor": 8, "func": 9}
SCALARS = ["string", "int", "float", "bool", "type", "shape", "tensor", "func"]
FLOAT, INT32, STRING, INT64, BOOL, RESOURCE, VARIANT = 1, 3, 7, 9, 10, 20, 21


# ---- The wire format -------------------------------------------------------------------------------------------------------------


def varint(value):
    value &= 2**64 - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number, value):
    if isinstance(value, str):
        value = value.encode("utf-8", "surrogateescape")
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    return varint(number << 3) + varint(value)


def shape_bytes(dimensions):
    """Encodes a shape; None is an unknown rank."""
    return field(3, 1) if dimensions is None else b"".join(field(2, field(1, size) if size else b"") for size in dimensions)


def function_reference(value):
    name, attributes = value
    return field(1, name) + b"".join(field(2, entry(key, one)) for key, one in attributes.items())


def scalar(kind, value, number):
    if kind == "float":
        return varint(number << 3 | 5) + struct.pack("<f", value)
    if kind == "shape":
        return field(number, shape_bytes(value))
    if kind == "func":
        return field(number, function_reference(value))
    return field(number, int(value) if kind in ("int", "bool", "type") else value)


def attribute_bytes(attribute):
    """Encodes an AttrValue: ("none",), ("raw", bytes), ("list", [(kind, value)...]) or (kind, value)."""
    kind = attribute[0]
    if kind == "none":
        return b""
    if kind == "raw":
        return attribute[1]
    if kind == "list":
        return field(1, b"".join(scalar(one, value, LIST_FIELDS[one]) for one, value in attribute[1]))
    return scalar(kind, attribute[1], FIELDS[kind])


def entry(key, attribute):
    return field(1, key) + field(2, attribute_bytes(attribute))


class Node:
    def __init__(self, name, operation, inputs=(), attributes=None):
        self.name, self.operation, self.inputs, self.attributes = name, operation, list(inputs), dict(attributes or {})
        self.device, self.more = "", b""

    def bytes(self):
        out = field(1, self.name) + field(2, self.operation) + b"".join(field(3, one) for one in self.inputs)
        out += field(4, self.device) if self.device else b""
        return out + b"".join(field(5, entry(key, one)) for key, one in self.attributes.items()) + self.more


class Function:
    """`arguments`, `results`: dictionaries as in the registry, with types as numbers. `attrs`: name to kind and default.
    `argument_attributes`: by number of the argument."""

    def __init__(self, name):
        self.name, self.arguments, self.results, self.attrs, self.nodes = name, [], [], {}, []
        self.returns, self.control_outputs, self.control_returns, self.attributes, self.argument_attributes, self.more = {}, [], {}, {}, {}, b""

    def bytes(self):
        signature = field(1, self.name)
        for number, arguments in [(2, self.arguments), (3, self.results)]:
            for one in arguments:
                out = field(1, one["name"]) + (field(3, one["type"]) if "type" in one else b"")
                for key, at in [("type_attr", 4), ("number_attr", 5), ("type_list_attr", 6)]:
                    out += field(at, one[key]) if key in one else b""
                signature += field(number, out + (field(16, 1) if one.get("is_ref") else b""))
        for name, (kind, default) in self.attrs.items():
            signature += field(4, field(1, name) + field(2, kind) + (field(3, attribute_bytes(default)) if default else b""))
        signature += b"".join(field(20, name) for name in self.control_outputs)
        out = field(1, signature) + b"".join(field(3, node.bytes()) for node in self.nodes)
        out += b"".join(field(4, field(1, key) + field(2, value)) for key, value in self.returns.items())
        out += b"".join(field(5, entry(key, one)) for key, one in self.attributes.items())
        for number, attributes in self.argument_attributes.items():
            out += field(7, field(1, number) + field(2, b"".join(field(1, entry(key, one)) for key, one in attributes.items())))
        return out + b"".join(field(6, field(1, key) + field(2, value)) for key, value in self.control_returns.items()) + self.more


class Graph:
    def __init__(self):
        self.nodes, self.functions, self.gradients, self.registered_gradients, self.faults = [], [], [], [], []
        self.producer, self.min_consumer, self.bad_consumers = 0, 0, []

    def bytes(self):
        out = b"".join(field(1, node.bytes()) for node in self.nodes)
        library = b"".join(field(1, function.bytes()) for function in self.functions)
        library += b"".join(field(2, field(1, name) + field(2, gradient)) for name, gradient in self.gradients)
        library += b"".join(field(3, field(1, gradient) + field(2, operation)) for gradient, operation in self.registered_gradients)
        out += field(2, library) if library else b""
        versions = field(1, self.producer) if self.producer else b""
        versions += field(2, self.min_consumer) if self.min_consumer else b""
        return out + field(4, versions + b"".join(field(3, one) for one in self.bad_consumers))


def saved_model(graph, object_graph=b""):
    """Encodes a SavedModel without variables, in the form of TF2 if it has an object graph."""
    info = field(4, "serve") + field(5, "2.21.0")
    return field(1, 1) + field(2, field(1, info) + field(2, graph) + (field(7, object_graph) if object_graph else b""))


# ---- The registry ----------------------------------------------------------------------------------------------------------------


def attribute_of(kind, value):
    """Converts a value of the registry's JSON to an attribute."""
    if kind.startswith("list("):
        return ("list", [attribute_of(kind[5:-1], one) for one in value])
    if kind == "type":
        return ("type", TYPES[value])
    if kind == "shape":
        return ("shape", value.get("dims"))
    if kind == "tensor":
        return ("tensor", base64.b64decode(value["tensor"]))
    if kind == "func":
        return ("func", (value["func"], {}))
    if kind == "string":
        return ("string", base64.b64decode(value["b64"]) if isinstance(value, dict) else value.encode())
    return (kind, float(value) if kind == "float" else value)


TYPES = {}


class Registry:
    """The operations of a release (`2.12`), and of all releases by name, to find older and newer ones."""

    def __init__(self, release):
        base, deltas = (json.loads((OPS / name).read_text()) for name in ["base.json", "deltas.json"])
        TYPES.update(base["datatypes"])
        for delta in deltas.values():
            TYPES.update(delta["datatypes"])
        self.types, self.ops, self.version = set(base["datatypes"].values()) - {0}, dict(base["ops"]), base["graph_def_version"]
        self.elsewhere, self.no_cpu_kernel = dict(base["ops"]), set(base["no_cpu_kernel"])
        reached = release == "2.12"
        for minor in sorted(deltas, key=lambda name: int(name.split(".")[1])):
            delta = deltas[minor]
            self.elsewhere.update(delta["change"] | delta["add"])
            if not reached:
                for name in delta["remove"]:
                    del self.ops[name]
                self.ops.update(delta["change"] | delta["add"])
                self.types |= set(delta["datatypes"].values()) - {0}
                self.version = delta["graph_def_version"]
                self.no_cpu_kernel = self.no_cpu_kernel if delta["no_cpu_kernel"] is None else set(delta["no_cpu_kernel"])
            reached = reached or minor == release
        self.elsewhere = {name: one for name, one in self.elsewhere.items() if name not in self.ops}
        self.all_types = {number for number in TYPES.values() if number}
        self.names = sorted(self.ops)

    def attribute(self, operation, name):
        return next((one for one in self.ops.get(operation, {}).get("attrs", []) if one["name"] == name), None)

    def is_deprecated(self, operation, producer):
        return 0 < self.ops[operation].get("deprecation", 0) <= producer


# ---- Valid graphs ----------------------------------------------------------------------------------------------------------------


class Value:
    """An output that an input can take: its text as an input, its type, and whether it is a reference."""

    def __init__(self, text, number, is_ref=False):
        self.text, self.type, self.is_ref = text, number, is_ref


class Maker:
    """Makes the nodes of one graph or one function body."""

    def __init__(self, registry, rng, operations, graph, body=None):
        self.registry, self.rng, self.operations, self.graph, self.body = registry, rng, operations, graph, body
        self.nodes = graph.nodes if body is None else body.nodes
        self.values, self.names = [], []

    def name(self, stem):
        name = f"{self.rng.choice(['n', 'a/b', 'A>c', 'x_y', 'Z.', 'scope/'])}{stem}{len(self.names)}"
        self.names.append(name)
        return name

    # Attributes.

    def random_type(self, allowed=None):
        usual = [FLOAT, FLOAT, FLOAT, INT32, INT64, STRING, BOOL]
        pool = sorted(self.registry.types) if allowed is None else allowed
        if allowed is not None:
            usual = [number for number in usual if number in pool]
        return self.rng.choice(usual if usual and self.rng.random() < 0.6 else pool)

    def value(self, kind, declared):
        rng, allowed, minimum = self.rng, declared.get("allowed_values"), declared.get("minimum")
        if kind.startswith("list("):
            length = max(minimum or 0, rng.choice([0, 1, 1, 2, 3]))
            element = {key: one for key, one in declared.items() if key != "minimum"}
            return ("list", [self.value(kind[5:-1], element) for _ in range(length)])
        if kind == "type":
            known = None if allowed is None else [TYPES[name] for name in allowed]
            return ("type", self.random_type(known))
        if kind == "string":
            return ("string", rng.choice(allowed).encode() if allowed else rng.choice([b"", b"x", b"some text", b"\xff\x00"]))
        if kind == "int":
            return ("int", max(minimum if minimum is not None else -1, rng.choice([0, 1, 1, 2, 3])))
        if kind == "float":
            return ("float", rng.choice([0.0, 1.0, 0.5]))
        if kind == "bool":
            return ("bool", rng.random() < 0.5)
        if kind == "shape":
            return ("shape", rng.choice([None, None, [], [2], [-1, 2]]))
        if kind == "tensor":
            return ("tensor", field(1, FLOAT) + field(2, b"") + varint(5 << 3 | 5) + struct.pack("<f", 1.0))
        functions = [function.name for function in self.graph.functions] or ["missing"]
        return ("func", (rng.choice(functions), {}))

    def attributes(self, definition, fixed=None):
        found = dict(fixed or {})
        for declared in definition.get("attrs", []):
            name, kind = declared["name"], declared["type"]
            if name not in found and not ("default" in declared and self.rng.random() < 0.5):
                default = "default" in declared and self.rng.random() < 0.7
                found[name] = attribute_of(kind, declared["default"]) if default else self.value(kind, declared)
        return found

    def read(self, definition, attributes, name):
        if name in attributes:
            return attributes[name][1]
        declared = next(one for one in definition["attrs"] if one["name"] == name)
        return attribute_of(declared["type"], declared["default"])[1]

    def types(self, definition, attributes, arguments):
        """Returns each argument with its types: [(argument, [types])]."""
        found = []
        for argument in arguments:
            if "type_list_attr" in argument:
                types = [number for _, number in self.read(definition, attributes, argument["type_list_attr"])]
            else:
                number = self.read(definition, attributes, argument["type_attr"]) if "type_attr" in argument else argument["type"]
                number = TYPES[number] if isinstance(number, str) else number
                count = self.read(definition, attributes, argument["number_attr"]) if "number_attr" in argument else 1
                types = [number] * count
            found.append((argument, types))
        return found

    # Inputs.

    def source(self, number, is_ref):
        """Adds a node with an output of a type."""
        unusual = self.rng.random()
        if is_ref:
            node = Node(self.name("v"), "VariableV2", [], {"dtype": ("type", number), "shape": ("shape", None)})
            text = "ref"
        elif unusual < 0.1:
            node = Node(self.name("c"), "PlaceholderWithDefault", [self.data(number, False).text], {"dtype": ("type", number), "shape": ("shape", None)})
            text = "output"
        else:
            node = Node(self.name("p"), "Placeholder", [], {"dtype": ("type", number)})
            text = "output"
        self.nodes.append(node)
        value = Value(f"{node.name}:{text}:0" if self.body else node.name, number, is_ref)
        self.values.append(value)
        return value

    def data(self, number, is_ref):
        fitting = [value for value in self.values if value.type == number and (value.is_ref or not is_ref)]
        if fitting and self.rng.random() < 0.7:
            return self.rng.choice(fitting)
        return self.source(number, is_ref)

    def add(self, operation, definition, attributes, stem="o"):
        """Adds a node of the operation with inputs, and its outputs to the values."""
        inputs = []
        for argument, types in self.types(definition, attributes, definition.get("inputs", [])):
            inputs += [self.data(number, argument.get("is_ref", False)).text for number in types]
        if self.names and self.rng.random() < 0.15:
            inputs.append("^" + self.rng.choice(self.nodes).name if self.nodes else "^")
        node = Node(self.name(stem), operation, [one for one in inputs if one != "^"], attributes)
        at = 0
        for argument, types in self.types(definition, attributes, definition.get("outputs", [])):
            for place, number in enumerate(types):
                text = f"{node.name}:{argument['name']}:{place}" if self.body else node.name + (f":{at}" if at or self.rng.random() < 0.2 else "")
                self.values.append(Value(text, number, argument.get("is_ref", False)))
                at += 1
        self.nodes.append(node)
        return node

    def random(self):
        operation = self.rng.choice(self.operations)
        definition = self.registry.ops[operation]
        return self.add(operation, definition, self.attributes(definition))

    def call(self, function, how=None):
        """Adds a node that calls the function: by its name, or with the name as an attribute."""
        rng, bound = self.rng, {}
        for name, (kind, _) in function.attrs.items():
            own = self.body.attrs.get(name) if self.body else None
            if own and own[0] == kind and kind == "type":
                # Passed on from the caller of the enclosing function: its arguments have that type.
                bound[name] = ("type", FLOAT) if rng.random() < 0.5 else ("type", self.random_type())
                continue
            bound[name] = ("list", [("type", self.random_type()) for _ in range(2)]) if kind == "list(type)" else ("int", rng.randrange(1, 3)) if kind == "int" else ("type", self.random_type())
        definition = {"inputs": function.arguments, "outputs": function.results, "attrs": []}
        how = how or rng.choice([function.name, "PartitionedCall", "StatefulPartitionedCall"])
        if how == function.name:
            return self.add(function.name, definition, bound, "call")
        flat = [[("type", number) for _, types in self.types(definition, bound, arguments) for number in types] for arguments in (function.arguments, function.results)]
        attributes = {"Tin": ("list", flat[0]), "Tout": ("list", flat[1]), "f": ("func", (function.name, bound))}
        if rng.random() < 0.3:
            attributes |= {"config": ("string", b""), "config_proto": ("string", b"\x0a\x07\x0a\x03CPU\x10\x01"), "executor_type": ("string", b"")}
        if rng.random() < 0.1:
            attributes["_XlaMustCompile"] = ("bool", False)
        return self.add(how, self.registry.ops[how], attributes, "call")

    def branch(self, first, second):
        """Adds an If over two functions."""
        operation = self.rng.choice(["If", "StatelessIf", "While", "StatelessWhile", "Case"])
        fixed = {"then_branch": ("func", (first, {})), "else_branch": ("func", (second, {})), "cond": ("func", (first, {})),
                 "body": ("func", (second, {})), "branches": ("list", [("func", (first, {})), ("func", (second, {}))])}
        definition = self.registry.ops[operation]
        known = {one["name"] for one in definition["attrs"]}
        fixed = {name: one for name, one in fixed.items() if name in known}
        fixed |= {"output_shapes": ("list", [])} if self.rng.random() < 0.5 else {}
        attributes = self.attributes(definition, fixed)
        attributes.pop("output_shapes", None)
        return self.add(operation, definition, attributes, "branch")

    def text(self, node, output, number=0):
        """Returns the name of a node's output for an input."""
        return f"{node}:{output}:0" if self.body else node + (f":{number}" if number else "")

    def loop(self):
        """Adds a loop of the old control flow."""
        number, stem = self.random_type(), f"l{len(self.names)}"
        self.names.append(stem)
        t, names = {"T": ("type", number)}, {part: f"{stem}/{part}" for part in ["enter", "merge", "p", "cond", "switch", "body", "next", "exit"]}
        two, of = t | {"N": ("int", 2)}, lambda part, output="output", place=0: self.text(names[part], output, place)
        self.nodes += [
            Node(names["enter"], "Enter", [self.data(number, False).text], t | {"frame_name": ("string", stem.encode())}),
            Node(names["merge"], "Merge", [of("enter"), of("next")], two),
            Node(names["p"], "Placeholder", ["^" + names["merge"]], {"dtype": ("type", BOOL)}),
            Node(names["cond"], "LoopCond", [of("p")]),
            Node(names["switch"], "Switch", [of("merge"), of("cond")], t),
            Node(names["body"], "Identity", [of("switch", "output_true", 1)], t),
            Node(names["next"], "NextIteration", [of("body")], t),
            Node(names["exit"], "Exit", [of("switch", "output_false")], t),
        ]
        self.values.append(Value(of("exit"), number))

    def chain(self, *steps):
        """Adds a chain of nodes (operation, output, more inputs, attributes), each with the previous one as first input."""
        before = []
        for operation, output, more, attributes in steps:
            node = Node(self.name("r"), operation, before + [self.data(number, False).text for number in more], attributes)
            self.nodes.append(node)
            before = [self.text(node.name, output)]
        return before[0]

    def variable(self):
        """Adds a resource variable that is written and read."""
        dtype, shape = ("type", FLOAT), ("shape", None)
        handle = self.chain(("VarHandleOp", "resource", [], {"dtype": dtype, "shape": shape}))
        self.nodes.append(Node(self.name("r"), "AssignVariableOp", [handle, self.data(FLOAT, False).text], {"dtype": dtype}))
        node = Node(self.name("r"), "ReadVariableOp", [handle, "^" + self.nodes[-1].name], {"dtype": dtype})
        self.nodes.append(node)
        self.values += [Value(handle, RESOURCE), Value(self.text(node.name, "value"), FLOAT)]

    def tensor_list(self):
        """Adds a list of tensors, which is a variant."""
        number = self.random_type()
        element, shapes = {"element_dtype": ("type", number)}, {"shape_type": ("type", INT32)}
        made = self.chain(("EmptyTensorList", "handle", [], element | shapes), ("TensorListPushBack", "output_handle", [number], element))
        # The first node takes the shape of an element and the maximum number of elements.
        self.nodes[-2].inputs = [self.data(INT32, False).text, self.data(INT32, False).text]
        self.values.append(Value(made, VARIANT))


def unusual(maker, share):
    """Adds loops, resources and variants, each with the frequency `share`."""
    for make in (maker.loop, maker.variable, maker.tensor_list):
        if maker.rng.random() < share:
            make()


def decorate(nodes, rng, maker):
    """Adds devices, colocations and shapes of outputs that change no verdict."""
    for node in nodes:
        if rng.random() < 0.03:
            node.device = rng.choice(["/device:CPU:0", "/cpu:0", "/job:localhost/replica:0/task:0/device:CPU:0"])
        if rng.random() < 0.03:
            node.attributes["_class"] = ("list", [("string", b"loc:@" + rng.choice(nodes).name.encode())])
        definition = maker.registry.ops.get(node.operation)
        is_open = any(attribute[0] == "placeholder" for attribute in node.attributes.values())
        if definition and not is_open and rng.random() < 0.04:
            outputs = sum(len(types) for _, types in maker.types(definition, node.attributes, definition.get("outputs", [])))
            node.attributes["_output_shapes"] = ("list", [("shape", None)] * outputs)


def make_function(registry, rng, operations, graph, name):
    function = Function(name)
    maker = Maker(registry, rng, operations, graph, function)
    generic = rng.random() < 0.15
    for number in range(rng.choice([0, 1, 1, 2, 3])):
        argument = {"name": f"arg{number}"}
        form = rng.random() if generic else 1
        if form < 0.5:
            function.attrs["T"] = ("type", ("type", FLOAT) if rng.random() < 0.2 else None)
            argument["type_attr"] = "T"
        elif form < 0.7:
            function.attrs["Ts"] = ("list(type)", None)
            argument["type_list_attr"] = "Ts"
        else:
            argument["type"] = maker.random_type()
            if rng.random() < 0.1:
                function.attrs["N"] = ("int", None)
                argument["number_attr"] = "N"
            else:
                maker.values.append(Value(argument["name"] + rng.choice([""] * 30 + [":0"]), argument["type"]))
        maker.names.append(argument["name"])
        function.arguments.append(argument)
    for _ in range(rng.choice([0, 1, 2, 3])):
        callable_ones = [other for other in graph.functions if not other.attrs or rng.random() < 0.5]
        if callable_ones and rng.random() < 0.3:
            maker.call(rng.choice(callable_ones))
        else:
            maker.random()
    unusual(maker, 0.06)
    for argument in function.arguments:
        if argument.get("type_attr"):
            node = Node(maker.name("id"), "Identity", [argument["name"]], {"T": ("placeholder", "T")})
            function.nodes.append(node)
            function.results.append({"name": "same_" + argument["name"], "type_attr": "T"})
            function.returns["same_" + argument["name"]] = node.name + ":output:0"
        elif argument.get("type_list_attr") and rng.random() < 0.5:
            node = Node(maker.name("ids"), "IdentityN", [f"{argument['name']}:{place}" for place in range(2)], {"T": ("placeholder", "Ts")})
            function.nodes.append(node)
    plain = [value for value in maker.values if not value.is_ref]
    for number, value in enumerate(rng.sample(plain, min(len(plain), rng.choice([0, 1, 1, 2])))):
        function.results.append({"name": f"out{number}", "type": value.type})
        function.returns[f"out{number}"] = value.text
    decorate(function.nodes, rng, maker)
    if function.nodes and rng.random() < 0.1:
        function.control_returns["done"] = rng.choice(function.nodes).name
        function.control_outputs += ["done"] if rng.random() < 0.7 else []
    plain = not any({"number_attr", "type_attr", "type_list_attr"} & argument.keys() for argument in function.arguments)
    if plain and rng.random() < 0.1:
        function.attributes["_input_shapes"] = ("list", [("shape", None)] * len(function.arguments))
    if function.arguments and rng.random() < 0.1:
        function.argument_attributes[0] = {"_output_shapes": ("list", [("shape", None)]), "_user_specified_name": ("string", b"x")}
    if rng.random() < 0.1:
        function.attributes[rng.choice(["_noinline", "_XlaMustCompile"])] = ("bool", rng.random() < 0.5)
    rng.shuffle(function.nodes)
    return function


def valid_graph(registry, rng, operations):
    """Returns a graph that the release accepts, unless a shape function refuses it."""
    graph = Graph()
    graph.producer = rng.choice([registry.version] * 6 + [2474, 2474, 30, 21])
    operations = [name for name in operations if not registry.is_deprecated(name, graph.producer)]
    for number in range(rng.choice([0, 0, 1, 1, 2, 3])):
        graph.functions.append(make_function(registry, rng, operations, graph, f"{rng.choice(['f', 'F_', '__inference_', 'tf>'])}{number}"))
    maker = Maker(registry, rng, operations, graph)
    for _ in range(rng.choice([1, 2, 3, 4, 6])):
        maker.random()
    for function in graph.functions:
        for _ in range(rng.choice([0, 1, 1, 2])):
            maker.call(function)
    if len(graph.functions) > 1 and rng.random() < 0.3:
        maker.branch(*[function.name for function in rng.sample(graph.functions, 2)])
    unusual(maker, 0.1)
    decorate(graph.nodes, rng, maker)
    if len(graph.functions) > 1 and rng.random() < 0.05:
        graph.gradients.append(tuple(function.name for function in rng.sample(graph.functions, 2)))
    for node in graph.nodes:
        if rng.random() < 0.05:
            node.attributes["_class"] = ("list", [("string", b"loc:@" + rng.choice(graph.nodes).name.encode())])
        if rng.random() < 0.05:
            node.attributes[rng.choice(["_output_shapes", "_note", "_XlaCompile"])] = rng.choice(
                [("list", [("shape", None)]), ("list", []), ("int", 1), ("string", b"x"), ("type", 99)])
    if rng.random() < 0.7:
        rng.shuffle(graph.nodes)
    return graph


def single(registry, rng, operation):
    """Returns a graph with one node of the operation and the nodes that it needs."""
    graph = Graph()
    graph.producer = max(registry.ops[operation].get("deprecation", 0) - 1, 1) if registry.ops[operation].get("deprecation") else registry.version
    maker = Maker(registry, rng, [operation], graph)
    maker.random()
    return graph


def duplicate(graph):
    return copy.deepcopy(graph)
