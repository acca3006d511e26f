"""Compares the shape functions of serdes with the installed TensorFlow, on graphs of one operation with inputs of random shapes.

    PYTHON tests/interop/tensorflow_shapes.py --serdes PATH [--count N] [--seed N] [--keep DIRECTORY]

An operation gets random attributes, placeholders with partially known shapes, and constants as integer inputs. After it, another node
restricts the shape of the output, which reveals shapes that are inferred too narrowly. Half of the graphs are of operations whose function
is written by hand (crates/graphs/src/graph/shapes), the others of any operation. A third of them has the operation in a function, which
gets its inputs from the node that calls it or from constants of its own. serdes may not refuse any graph that TensorFlow accepts; the
share of TensorFlow's refusals that it finds is printed, and must not fall. With SERDES_FULL=1 it makes 20,000 graphs.
"""

import argparse
import collections
import os
import pathlib
import random
import re
import struct
import sys
import tempfile

import operation_graphs
import tensorflow_operations
from operation_graphs import FLOAT, INT32, INT64, Node, field, shape_bytes, varint

FUNCTIONS = pathlib.Path(__file__).resolve().parents[2] / "crates/graphs/src/graph/shapes/functions.rs"
# Minimum share of TensorFlow's refusals that serdes finds, for operations whose functions are written by hand.
LEAST = 0.5
# They end the process, or depend on functions.
LEFT_OUT = {"_QuantizedMatMul", "PartitionedCall", "StatefulPartitionedCall", "SymbolicGradient", "RemoteCall", "Case", "StatelessCase"}
EQUATIONS = [b"ij,jk->ik", b"ij->ji", b"bij,bjk->bik", b"ii->i", b"i,j->ij", b"ij,ij->", b"...ij,jk->...ik", b"ab,bc", b"i->"]


def tensor(data_type, shape, numbers):
    code = "<i" if data_type == INT32 else "<q"
    content = b"".join(struct.pack(code, number) for number in numbers)
    if len(numbers) and len(set(numbers)) == 1 and numbers[0] >= 0:
        return field(1, data_type) + field(2, shape_bytes(shape)) + field(7 if data_type == INT32 else 10, varint(numbers[0]))
    return field(1, data_type) + field(2, shape_bytes(shape)) + field(4, content)


class Case:
    """One graph."""

    def __init__(self, registry, rng):
        self.registry, self.rng, self.graph = registry, rng, operation_graphs.Graph()
        self.graph.producer = registry.version
        self.maker = operation_graphs.Maker(registry, rng, registry.names, self.graph)
        self.rank = rng.choice([0, 1, 1, 2, 2, 2, 3, 3, 4, 4, 4, 5])
        self.sizes = [rng.choice([1, 2, 2, 3, 3, 4, 6]) for _ in range(8)]

    def shape(self):
        rng = self.rng
        if rng.random() < 0.15:
            return None
        rank = self.rank if rng.random() < 0.75 else rng.choice([0, 1, 2, 3, 4, 5])
        sizes = list(self.sizes[:rank])
        if rng.random() < 0.3:
            rng.shuffle(sizes)
        return [rng.choice([-1, 1, 2, 3, 0]) if rng.random() < 0.2 else size for size in sizes]

    def constant(self, data_type):
        rng = self.rng
        shape = rng.choice([[], [], [1], [2], [self.rank], [self.rank], [self.rank, 2]])
        count = 1
        for size in shape:
            count *= size
        numbers = [rng.choice([-2, -1, 0, 0, 1, 1, 2, 3]) for _ in range(count)]
        if shape == [self.rank] and rng.random() < 0.5:
            numbers = rng.sample(range(self.rank), self.rank) if rng.random() < 0.5 else self.sizes[:self.rank]
        return Node(f"n{len(self.graph.nodes)}", "Const", [], {"dtype": ("type", data_type), "value": ("tensor", tensor(data_type, shape, numbers))})

    def source(self, data_type, is_ref):
        if data_type in (INT32, INT64) and not is_ref and self.rng.random() < 0.6:
            node = self.constant(data_type)
        elif data_type == operation_graphs.RESOURCE and self.rng.random() < 0.7:
            held = ("type", self.rng.choice([FLOAT, FLOAT, FLOAT, INT32]))
            node = Node(f"n{len(self.graph.nodes)}", "VarHandleOp", [], {"dtype": held, "shape": ("shape", self.shape())})
        else:
            kind = "VariableV2" if is_ref else "Placeholder"
            node = Node(f"n{len(self.graph.nodes)}", kind, [], {"dtype": ("type", data_type), "shape": ("shape", self.shape())})
        self.graph.nodes.append(node)
        return node.name

    def attribute(self, name, kind, declared):
        rng = self.rng
        length = rng.choice([4, 4, 4, 4, 5, 3]) if self.rank != 5 else 5
        if name in ("strides", "ksize", "dilations") and kind == "list(int)":
            middle = [rng.choice([1, 1, 2, 3, 0] if name == "strides" else [1, 1, 2, 3]) for _ in range(length - 2)]
            return ("list", [("int", number) for number in [1, *middle, 1]])
        if name == "equation":
            return ("string", rng.choice(EQUATIONS))
        if kind == "type" and "allowed_values" not in declared:
            return ("type", rng.choice([FLOAT, FLOAT, FLOAT, INT32, INT64]))
        if kind == "shape":
            return ("shape", self.shape())
        if kind == "int" and name in ("N", "num", "num_split"):
            return ("int", rng.choice([1, 2, 2, 3]))
        if name == "squeeze_dims":
            return ("list", [("int", rng.choice([-1, 0, 1, 2])) for _ in range(rng.choice([0, 1, 1, 2]))])
        return self.maker.value(kind, declared)

    def into_function(self, name, node, definition, outputs):
        """Moves the node into a function, which gets its inputs from the call, except for some constants."""
        rng, function = self.rng, operation_graphs.Function("in_function")
        sources = {one.name: one for one in self.graph.nodes}
        body, given, texts = operation_graphs.Node("op", name, [], node.attributes), [], {}
        for text in node.inputs:
            source = sources[text]
            is_inside = source.operation == "Const" and rng.random() < 0.5
            if text not in texts and is_inside:
                function.nodes.append(source)
                texts[text] = f"{text}:output:0"
            elif text not in texts:
                data_type = operation_graphs.RESOURCE if source.operation == "VarHandleOp" else source.attributes["dtype"][1]
                texts[text] = f"arg{len(given)}"
                function.arguments.append({"name": texts[text], "type": data_type})
                given.append((text, data_type))
            body.inputs.append(texts[text])
        function.nodes.append(body)
        function.nodes.sort(key=lambda _: rng.random())
        results = []
        for argument, types in outputs:
            for place, data_type in enumerate(types):
                result = f"out{len(results)}"
                function.results.append({"name": result, "type": data_type})
                function.returns[result] = f"op:{argument['name']}:{place}"
                results.append(data_type)
        inside = {one.name for one in function.nodes}
        self.graph.nodes = [one for one in self.graph.nodes if one.name not in inside]
        self.graph.functions.append(function)
        attributes, operation = {}, "in_function"
        if rng.random() < 0.5:
            operation = rng.choice(["PartitionedCall", "StatefulPartitionedCall"])
            types = lambda numbers: ("list", [("type", number) for number in numbers])
            attributes = {"Tin": types([one for _, one in given]), "Tout": types(results), "f": ("func", ("in_function", {}))}
        return Node("op", operation, [text for text, _ in given], attributes)

    def make(self, name):
        definition, rng = self.registry.ops[name], self.rng
        attributes = {}
        for declared in definition.get("attrs", []):
            if "default" not in declared or rng.random() < 0.4:
                attributes[declared["name"]] = self.attribute(declared["name"], declared["type"], declared)
        inputs = []
        for argument, types in self.maker.types(definition, attributes, definition.get("inputs", [])):
            inputs += [self.source(number, argument.get("is_ref", False)) for number in types]
        node = Node("op", name, inputs, attributes)
        if rng.random() < 0.1:
            many = sum(len(types) for _, types in self.maker.types(definition, attributes, definition.get("outputs", [])))
            node.attributes["_output_shapes"] = ("list", [("shape", self.shape()) for _ in range(many)])
        outputs = self.maker.types(definition, attributes, definition.get("outputs", []))
        flat = [number for _, types in outputs for number in types]
        is_ref = any(argument.get("is_ref") for argument, _ in outputs)
        takes_refs = any(argument.get("is_ref") for argument in definition.get("inputs", []))
        if not is_ref and not takes_refs and rng.random() < 0.33:
            node = self.into_function(name, node, definition, outputs)
        self.graph.nodes.append(node)
        if flat and not is_ref and rng.random() < 0.5:
            place = rng.randrange(len(flat))
            shape = [rng.choice([-1, 1, 2, 3, 4, 6]) for _ in range(max(0, self.rank + rng.choice([-1, 0, 0, 0, 1])))]
            self.graph.nodes.append(Node("behind", "PlaceholderWithDefault", [f"op:{place}"], {"dtype": ("type", flat[place]), "shape": ("shape", shape)}))
        return self.graph.bytes()


def cases(registry, rng, count, directory):
    written = [name for name in re.findall(r'\("(\w+)", \w+::', FUNCTIONS.read_text()) if name in registry.ops and name not in LEFT_OUT]
    others = [name for name in registry.names if name not in LEFT_OUT]
    found = []
    for number in range(count):
        is_written = rng.random() < 0.5
        name = rng.choice(written if is_written else others)
        path = directory / f"{number:05}.pb"
        path.write_bytes(Case(registry, rng).make(name))
        found.append({"id": f"{number:05}-{name}", "path": str(path), "ways": ["capi_import"], "faults": [name], "is_written": is_written})
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--serdes")
    parser.add_argument("--host-plugin")
    parser.add_argument("--count", type=int, default=20000 if os.environ.get("SERDES_FULL") else 1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=pathlib.Path)
    options = parser.parse_args()
    import tensorflow as tf
    release = tf.__version__
    with tempfile.TemporaryDirectory() as scratch:
        directory = options.keep or pathlib.Path(scratch)
        graphs = directory / "graphs"
        graphs.mkdir(parents=True)
        registry = operation_graphs.Registry(".".join(release.split(".")[:2]))
        made = cases(registry, random.Random(options.seed), options.count, graphs)
        results = tensorflow_operations.real(made, directory)
        tensorflow_operations.record(made, results, release, directory)
        if not options.serdes:
            print(f"TensorFlow {release}: the verdicts are in {directory}")
            return
        found = tensorflow_operations.ours(options.serdes, release, graphs)
        wrong, counts = 0, collections.Counter()
        for case, answers in zip(made, results):
            answer, ours = answers["capi_import"], found[case["path"]]["verdict"] == "acceptable"
            if answer is None and not ours:
                wrong += 1
                print(f"WRONGLY REFUSED {case['id']}: {found[case['path']]['reasons']}")
            if answer not in (None, "crash") and tensorflow_operations.classify(answer) == "shape_function":
                counts[case["is_written"], not ours] += 1
    shares = {is_written: counts[is_written, True] / max(1, counts[is_written, True] + counts[is_written, False]) for is_written in (True, False)}
    print(f"TensorFlow {release}: {wrong} of {options.count} graphs are wrongly refused; of what shape functions refuse, "
          f"{shares[True]:.0%} is found of operations with a function, {shares[False]:.0%} of any")
    sys.exit(1 if wrong or shares[True] < LEAST else 0)


if __name__ == "__main__":
    main()
