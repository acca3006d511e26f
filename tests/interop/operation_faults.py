"""Faults for the graphs of `operation_graphs`: each damages a graph in one way, or does nothing if it does not apply.

A fault takes (graph, rng, registry, nodes, body): `nodes` are those of the main graph or of one function, `body` is that function or None.
It returns whether it changed anything. The release itself determines whether it refuses the result.
"""

from operation_graphs import SCALARS, Function, Node, attribute_bytes, attribute_of, entry, field, varint

REFERENCE = 100
ODD_TYPES = [0, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 99, 100, 101, 103, 107, 120, 121, 126, 129, 131, 132, 199, 200, 201, -1, 2**31 - 1, 2**31, 2**32 + 1, 2**63]
ODD_INTS = [-(2**63), -(2**31) - 1, -(2**31), -2, -1, 0, 1, 2, 5, 2**31 - 1, 2**31, 2**32, 2**32 + 1, 2**63 - 1]
ODD_SHAPES = [[-2], [2**62, 2**62], [1] * 254, [1] * 255, [0], [-1, -1], [2**63 - 1]]
ODD_NAMES = ["", "_x", "-x", "a b", "a>", ">a", "a:0", "^a", "é", "a\\b", "x" * 300, "a>_b", "/a", "a/", "a//b", "."]
OLD = ["Old", "TopK", "AdjustContrast", "TileGrad", "BatchNormWithGlobalNormalization", "TensorArray", "BatchSvd", "Placeholder", "PlaceholderV2", "Skipgram", "RandomCrop"]


def any_value(rng, functions):
    """Returns an attribute value of any kind."""
    simple = {
        "string": b"x", "int": 1, "float": 1.0, "bool": True, "type": rng.choice([1, 3, 7]), "shape": None,
        "tensor": field(1, 1) + field(2, b"") + field(5, bytes(4)), "func": (rng.choice(functions or ["missing"]), {}),
    }
    form = rng.random()
    if form < 0.08:
        return ("none",)
    if form < 0.16:
        return ("placeholder", rng.choice(["T", "N", "other", ""]))
    if form < 0.24:
        return ("list", [])
    kind = rng.choice(SCALARS)
    if form < 0.6:
        return (kind, simple[kind])
    elements = [(kind, simple[kind])] * rng.choice([1, 1, 2, 3])
    if rng.random() < 0.15:
        other = rng.choice(SCALARS)
        elements.insert(rng.randrange(len(elements) + 1), (other, simple[other]))
    return ("list", elements)


def known(registry, graph, nodes):
    return [node for node in nodes if node.operation in registry.ops]


def with_attributes(registry, nodes, wanted=lambda declared: True):
    """Returns pairs of a node and a declared attribute."""
    return [(node, declared) for node in nodes for declared in registry.ops.get(node.operation, {}).get("attrs", []) if wanted(declared)]


def names_of(graph):
    return [function.name for function in graph.functions]


# ---- Operations and names --------------------------------------------------------------------------------------------------------


def operation(graph, rng, registry, nodes, body):
    node = rng.choice(nodes)
    choices = [
        lambda: node.operation + "V9", lambda: node.operation.lower(), lambda: rng.choice(sorted(registry.elsewhere) or ["Nope"]),
        lambda: rng.choice(registry.names), lambda: rng.choice(["NoSuchOp", "_Arg", "_Retval", "_Recv", "_HostSend", "Scope>NoOp", " NoOp"]),
        lambda: rng.choice(names_of(graph) or ["f0"]),
    ]
    node.operation = rng.choice(choices)()
    return True


def unknown_operation(graph, rng, registry, nodes, body):
    rng.choice(nodes).operation = rng.choice([*sorted(registry.elsewhere), "NoSuchOp", "MyCustomOp"])
    return True


def deprecated(graph, rng, registry, nodes, body):
    names = [name for name in registry.names if registry.ops[name].get("deprecation")]
    name = rng.choice(OLD + names)
    if name not in registry.ops:
        return False
    definition, attributes = registry.ops[name], {}
    for declared in definition.get("attrs", []):
        if "default" not in declared and rng.random() < 0.9:
            plain = {"type": ("type", 1), "int": ("int", max(1, declared.get("minimum") or 0)), "shape": ("shape", None), "string": ("string", b"x")}
            attributes[declared["name"]] = plain.get(declared["type"], ("list", []))
    nodes.append(Node(f"old{len(nodes)}", name, [rng.choice(nodes).name] * len(definition.get("inputs", [])), attributes))
    graph.producer = rng.choice([graph.producer, definition.get("deprecation", 8) - 1, definition.get("deprecation", 8), 22])
    return True


def node_name(graph, rng, registry, nodes, body):
    node = rng.choice(nodes)
    node.name = rng.choice([rng.choice(ODD_NAMES), rng.choice(nodes).name, ""])
    return True


def empty_operation(graph, rng, registry, nodes, body):
    rng.choice(nodes).operation = ""
    return True


def versions(graph, rng, registry, nodes, body):
    which = rng.randrange(4)
    if which == 0:
        graph.min_consumer = registry.version + rng.choice([0, 1])
    elif which == 1:
        graph.bad_consumers = [registry.version + rng.choice([0, 1])]
    else:
        graph.producer = rng.choice([0, 1, 7, 8, 9, 12, 17, 18, 22, 27, 9999, 2**31 - 1, -1])
    return True


# ---- Attributes ------------------------------------------------------------------------------------------------------------------


def attribute_gone(graph, rng, registry, nodes, body):
    there = [(node, name) for node in nodes for name in node.attributes]
    if not there:
        return False
    node, name = rng.choice(there)
    del node.attributes[name]
    if rng.random() < 0.2:
        node.attributes.clear()
    return True


def attribute_kind(graph, rng, registry, nodes, body):
    there = with_attributes(registry, nodes)
    if not there:
        return False
    node, declared = rng.choice(there)
    node.attributes[declared["name"]] = any_value(rng, names_of(graph))
    return True


def attribute_type(graph, rng, registry, nodes, body):
    there = with_attributes(registry, nodes, lambda declared: "type" in declared["type"])
    if not there:
        return False
    node, declared = rng.choice(there)
    types = sorted(registry.types)
    one = rng.choice([rng.choice(ODD_TYPES), rng.choice(types), rng.choice(sorted(registry.all_types)), rng.choice(types) + REFERENCE])
    if declared["type"] == "type":
        node.attributes[declared["name"]] = ("type", one)
        return True
    now = node.attributes.get(declared["name"], ("list", []))
    elements = list(now[1]) if now[0] == "list" else []
    if elements and rng.random() < 0.7:
        elements[rng.randrange(len(elements))] = ("type", one)
    else:
        elements.append(("type", one))
    node.attributes[declared["name"]] = ("list", elements)
    return True


def attribute_allowed(graph, rng, registry, nodes, body):
    there = with_attributes(registry, nodes, lambda declared: "allowed_values" in declared and "string" in declared["type"])
    if not there:
        return False
    node, declared = rng.choice(there)
    text = ("string", rng.choice([b"", b"NO_SUCH", declared["allowed_values"][0].lower().encode(), declared["allowed_values"][-1].encode()]))
    node.attributes[declared["name"]] = text if declared["type"] == "string" else ("list", [text] * rng.choice([1, 2]))
    return True


def attribute_minimum(graph, rng, registry, nodes, body):
    there = with_attributes(registry, nodes, lambda declared: declared["type"] == "int" or declared.get("minimum") is not None)
    if not there:
        return False
    node, declared = rng.choice(there)
    if declared["type"] == "int":
        now = node.attributes.get(declared["name"])
        near = [now[1] - 1, now[1] + 1] if now and now[0] == "int" else []
        minimum = declared.get("minimum")
        near += [minimum - 1, minimum] if minimum is not None else []
        node.attributes[declared["name"]] = ("int", rng.choice(near) if near and rng.random() < 0.7 else rng.choice(ODD_INTS))
        return True
    elements = list((node.attributes.get(declared["name"]) or ("list", []))[1] or []) if node.attributes.get(declared["name"], ("list", []))[0] == "list" else []
    node.attributes[declared["name"]] = ("list", elements[: rng.randrange(len(elements) + 1)])
    return True


def attribute_shape(graph, rng, registry, nodes, body):
    there = with_attributes(registry, nodes, lambda declared: "shape" in declared["type"] or declared["type"] == "tensor")
    if not there:
        return False
    node, declared = rng.choice(there)
    shape = ("shape", rng.choice(ODD_SHAPES))
    if declared["type"] == "tensor":
        shape = ("tensor", rng.choice([b"", field(1, 99), field(1, 1) + field(4, b"\0" * 3), field(1, 3) + field(2, b"") + field(7, b"\1\2\3")]))
    elif rng.random() < 0.2:
        shape = ("raw", field(7, field(3, 1) + field(2, field(1, 2))))
    node.attributes[declared["name"]] = ("list", [shape]) if declared["type"].startswith("list") and shape[0] != "raw" else shape
    return True


def attribute_function(graph, rng, registry, nodes, body):
    there = with_attributes(registry, nodes, lambda declared: "func" in declared["type"])
    if not there:
        return False
    node, declared = rng.choice(there)
    inside = [{}, {"T": ("type", 1)}, {"x": ("none",)}, {"x": ("placeholder", rng.choice(["T", "N", "", "other"]))}, {"x": ("func", (rng.choice(["missing", *names_of(graph)]), {}))}]
    one = ("func", (rng.choice(["", "missing", "NoOp", *names_of(graph)]), rng.choice(inside)))
    node.attributes[declared["name"]] = ("list", [one]) if declared["type"].startswith("list") else one
    return True


def attribute_unknown(graph, rng, registry, nodes, body):
    node = rng.choice(nodes)
    name = rng.choice(["no_such", "Tk", "grad_a", "bad_indices_policy", "T", "N", "dtype", "_x", "", "_class", "_output_shapes", "index_type", "_disable_call_shape_inference"])
    node.attributes[name] = any_value(rng, names_of(graph))
    if name == "_disable_call_shape_inference":
        node.attributes[name] = ("bool", rng.random() < 0.7)
    return True


def colocation(graph, rng, registry, nodes, body):
    node = rng.choice(nodes)
    node.attributes["_class"] = ("list", [("string", rng.choice([b"loc:@missing", b"loc:@", b"x", b"loc:@" + rng.choice(nodes).name.encode()]))])
    return True


def output_shapes(graph, rng, registry, nodes, body):
    node = rng.choice(nodes)
    node.attributes["_output_shapes"] = ("list", [("shape", rng.choice([None, [2], [3, 3], *ODD_SHAPES])) for _ in range(rng.choice([0, 1, 1, 2]))])
    return True


def attribute_wire(graph, rng, registry, nodes, body):
    """Encodes the same or another value in an unusual way."""
    there = [(node, name) for node in nodes for name in node.attributes]
    if not there:
        return False
    node, name = rng.choice(there)
    now, other = node.attributes[name], any_value(rng, names_of(graph))
    data, more = attribute_bytes(now), attribute_bytes(other)
    form = rng.randrange(8)
    if form == 0:
        node.more += field(5, entry(name, other))
    elif form == 1:
        node.attributes[name] = ("raw", more + data)
    elif form == 2:
        node.attributes[name] = ("raw", data + more)
    elif form == 3 and now[0] == "list" and now[1]:
        at = rng.randrange(len(now[1]) + 1)
        node.attributes[name] = ("raw", attribute_bytes(("list", now[1][:at])) + attribute_bytes(("list", now[1][at:])))
    elif form == 4 and now[0] == "list" and now[1] and now[1][0][0] in ("type", "int", "bool"):
        number = {"type": 6, "int": 3, "bool": 5}[now[1][0][0]]
        node.attributes[name] = ("raw", field(1, field(number, b"".join(varint(int(value)) for _, value in now[1]))))
    elif form == 5:
        node.attributes[name] = ("raw", field(15, 7) + data + field(99, b"later"))
    elif form == 6:
        node.more += field(5, field(2, data) + field(1, name))
        del node.attributes[name]
    else:
        node.more += field(5, field(1, name))
        if rng.random() < 0.5:
            del node.attributes[name]
    return True


def attribute_swapped(graph, rng, registry, nodes, body):
    there = [(node, name) for node in nodes for name in node.attributes]
    if len(there) < 2:
        return False
    (first, one), (second, two) = rng.sample(there, 2)
    first.attributes[one], second.attributes[two] = second.attributes[two], first.attributes[one]
    return True


def attribute_default(graph, rng, registry, nodes, body):
    """Writes or removes a default, which is not a fault."""
    there = with_attributes(registry, nodes, lambda declared: "default" in declared)
    if not there:
        return False
    node, declared = rng.choice(there)
    if declared["name"] in node.attributes and rng.random() < 0.5:
        del node.attributes[declared["name"]]
    else:
        node.attributes[declared["name"]] = attribute_of(declared["type"], declared["default"])
    return True


# ---- Inputs ----------------------------------------------------------------------------------------------------------------------


def with_inputs(nodes):
    return [node for node in nodes if node.inputs]


def input_gone(graph, rng, registry, nodes, body):
    there = with_inputs(nodes)
    if not there:
        return False
    node = rng.choice(there)
    del node.inputs[rng.randrange(len(node.inputs))]
    if rng.random() < 0.15:
        node.inputs.clear()
    return True


def texts(nodes, body, rng):
    if body is None:
        return rng.choice(nodes).name
    node = rng.choice(nodes)
    arguments = [argument["name"] for argument in body.arguments]
    return rng.choice([*arguments, f"{node.name}:output:0", f"{node.name}:out:0", node.name, f"{node.name}:output"])


def input_more(graph, rng, registry, nodes, body):
    node = rng.choice(nodes)
    used = [one for other in nodes for one in other.inputs]
    text = rng.choice(used) if used and rng.random() < 0.6 else texts(nodes, body, rng)
    node.inputs.insert(rng.randrange(len(node.inputs) + 1), text)
    return True


def input_other(graph, rng, registry, nodes, body):
    there = with_inputs(nodes)
    if not there:
        return False
    node = rng.choice(there)
    used = [one for other in nodes for one in other.inputs if not one.startswith("^")]
    at = rng.randrange(len(node.inputs))
    node.inputs[at] = rng.choice(used) if used and rng.random() < 0.6 else texts(nodes, body, rng)
    return True


def input_index(graph, rng, registry, nodes, body):
    there = with_inputs(nodes)
    if not there:
        return False
    node = rng.choice(there)
    at = rng.randrange(len(node.inputs))
    parts = node.inputs[at].removeprefix("^").split(":")
    if body is None:
        node.inputs[at] = parts[0] + rng.choice([":1", ":2", ":0", ":7", ":1", ":2", ":3", ":00", ":2147483647", ":2147483648", ":99999999999", ":-1", ":x", ":"])
    else:
        parts += ["output", "0"][len(parts) - 1 :]
        changed = rng.choice([
            [parts[0], parts[1], rng.choice(["1", "2", "9", "x", "-1", "", "00"])], [parts[0], rng.choice(["no_such", "output", "y", ""]), parts[2]],
            parts[:2], parts[:1], ["missing", *parts[1:]], [*parts, "0"], [parts[0], parts[2]],
        ])
        node.inputs[at] = ":".join(changed)
    return True


def input_unknown(graph, rng, registry, nodes, body):
    there = with_inputs(nodes)
    if not there:
        return False
    node = rng.choice(there)
    node.inputs[rng.randrange(len(node.inputs))] = rng.choice(["missing", "missing:0", "^missing", "", "^", ":0"])
    return True


def input_control(graph, rng, registry, nodes, body):
    node = rng.choice(nodes)
    names = [other.name for other in nodes] + [argument["name"] for argument in (body.arguments if body else [])]
    text = "^" + rng.choice(names) + (":0" if rng.random() < 0.1 else "")
    node.inputs.insert(rng.randrange(len(node.inputs) + 1) if rng.random() < 0.4 else len(node.inputs), text)
    return True


def cycle(graph, rng, registry, nodes, body):
    there = with_inputs(nodes)
    if not there:
        return False
    node = rng.choice(there)
    if body is None:
        users = [other for other in nodes if any(one.removeprefix("^").split(":")[0] == node.name for one in other.inputs)]
        node.inputs[rng.randrange(len(node.inputs))] = rng.choice(users or [node]).name
    else:
        node.inputs[rng.randrange(len(node.inputs))] = f"{node.name}:output:0"
    return True


def inputs_shuffled(graph, rng, registry, nodes, body):
    there = [node for node in nodes if len(node.inputs) > 1]
    if not there:
        return False
    rng.shuffle(rng.choice(there).inputs)
    return True


def loop_parts(graph, rng, registry, nodes, body):
    """Makes a back edge from another output or of another type, or a loop without its end."""
    there = [node for node in nodes if node.operation in ("Merge", "NextIteration", "Switch", "Enter", "Identity")]
    if not there:
        return False
    node = rng.choice(there)
    form = rng.randrange(4)
    if form == 0:
        node.attributes["T"] = ("type", rng.choice([1, 3, 7, 101]))
    elif form == 1 and node.inputs:
        at = rng.randrange(len(node.inputs))
        node.inputs[at] = node.inputs[at].split(":")[0] + ":1"
    elif form == 2:
        node.operation = rng.choice(["Merge", "NextIteration", "RefNextIteration", "RefMerge", "Identity", "RefIdentity"])
    else:
        node.attributes["N"] = ("int", rng.choice([1, 3]))
    return True


def references(graph, rng, registry, nodes, body):
    there = [node for node in nodes if node.operation in ("VariableV2", "Variable", "Placeholder", "PlaceholderWithDefault")]
    if not there:
        return False
    node = rng.choice(there)
    node.operation = rng.choice(["VariableV2", "Placeholder", "TemporaryVariable"])
    if rng.random() < 0.3:
        node.attributes["dtype"] = ("type", rng.choice([1, 3, 9, 101]))
    node.attributes.setdefault("shape", ("shape", None))
    return True


def device(graph, rng, registry, nodes, body):
    rng.choice(nodes).device = rng.choice(["/cpu:0", "/device:CPU:0", "garbage::", "/job:x/replica:0/task:0/device:GPU:7", "CPU", "/", "\x01"])
    return True


def full_type(graph, rng, registry, nodes, body):
    rng.choice(nodes).more += field(7, rng.choice([b"", field(1, 1000), field(1, 9999), field(1, 2) + field(2, field(1, 9))]))
    return True


# ---- Functions -------------------------------------------------------------------------------------------------------------------


def function_name(graph, rng, registry, nodes, body):
    if not graph.functions:
        return False
    function = rng.choice(graph.functions)
    old, function.name = function.name, rng.choice([rng.choice(registry.names), rng.choice(sorted(registry.elsewhere)), "lower", "", "Conv", "a b", "é", rng.choice(names_of(graph))])
    if rng.random() < 0.6:
        for other in [graph, *graph.functions]:
            for node in other.nodes:
                node.operation = function.name if node.operation == old else node.operation
    return True


def function_twice(graph, rng, registry, nodes, body):
    if not graph.functions:
        return False
    function = rng.choice(graph.functions)
    twin = Function(function.name)
    twin.__dict__.update(function.__dict__)
    if rng.random() < 0.5:
        twin.nodes = [*function.nodes, Node("extra", "NoOp")]
    graph.functions.append(twin)
    return True


def gradients(graph, rng, registry, nodes, body):
    if not graph.functions:
        return False
    pool = [*names_of(graph), "missing"]
    graph.gradients += [(rng.choice(pool), rng.choice(pool)) for _ in range(rng.choice([1, 2]))]
    return True


def function_gone(graph, rng, registry, nodes, body):
    if not graph.functions:
        return False
    del graph.functions[rng.randrange(len(graph.functions))]
    return True


def signature(graph, rng, registry, nodes, body):
    if not body or not (body.arguments or body.results):
        return False
    one = rng.choice(body.arguments + body.results)
    form = rng.randrange(9)
    if form == 0:
        one["type"] = rng.choice([0, 1, 3, 7, 29, 99, 101, *sorted(registry.all_types)])
    elif form == 1:
        one.pop("type", None)
        one["type_attr"] = rng.choice(["T", "U"])
    elif form == 2:
        body.attrs["T"] = rng.choice([("type", None), ("type", ("type", 1)), ("int", None), ("shape", None), ("list(type)", None)])
    elif form == 3:
        one["name"] = rng.choice(ODD_NAMES + ["other", "Upper", body.nodes[0].name if body.nodes else "x"])
    elif form == 4:
        one["number_attr"] = "N"
        body.attrs.setdefault("N", ("int", rng.choice([None, ("int", 2)])))
    elif form == 5:
        one["is_ref"] = True
    elif form == 6:
        body.arguments.append({"name": f"more{len(body.arguments)}", "type": rng.choice([1, 3])})
    elif form == 7:
        body.results.append({"name": f"out_more{len(body.results)}", "type": rng.choice([1, 3])})
    elif body.arguments:
        body.arguments.pop()
    return True


def returns(graph, rng, registry, nodes, body):
    if not body or not (body.returns or body.nodes):
        return False
    form = rng.randrange(6)
    key = rng.choice(list(body.returns) or ["out0"])
    if form == 0:
        body.returns.pop(key, None)
    elif form == 1:
        body.returns[key] = rng.choice(["missing", "missing:output:0", "", "^x", texts(body.nodes, body, rng) if body.nodes else "arg0"])
    elif form == 2:
        body.returns["no_such_result"] = body.returns.get(key, "arg0")
    elif form == 3 and body.results:
        rng.choice(body.results)["type"] = rng.choice([1, 3, 7, 9])
    elif form == 4:
        body.control_returns[rng.choice(["done", ""])] = rng.choice(["missing", "", body.nodes[0].name if body.nodes else "x"])
    elif body.arguments:
        body.returns[key] = rng.choice(body.arguments)["name"] + rng.choice(["", ":0", ":1", ":output:0"])
    return True


def placeholders(graph, rng, registry, nodes, body):
    """Makes an attribute of a body depend on the call, which has it or lacks it."""
    if not body:
        return False
    there = with_attributes(registry, nodes)
    if not there:
        return False
    node, declared = rng.choice(there)
    name = rng.choice(["T", "N", "Ts", "S"])
    node.attributes[declared["name"]] = ("placeholder", name)
    if rng.random() < 0.6:
        body.attrs[name] = (declared["type"], None)
        given = any_value(rng, []) if rng.random() < 0.3 else ("type", 1)
        for other in [graph, *graph.functions]:
            for call in other.nodes:
                if call.operation == body.name:
                    call.attributes[name] = given
                target = call.attributes.get("f")
                if target and target[0] == "func" and target[1][0] == body.name:
                    call.attributes["f"] = ("func", (body.name, {**target[1][1], name: given}))
    return True


def recursion(graph, rng, registry, nodes, body):
    if not body:
        return False
    target = rng.choice(graph.functions)
    call = Node("again", target.name) if rng.random() < 0.5 else Node(
        "again", "PartitionedCall", [], {"Tin": ("list", []), "Tout": ("list", []), "f": ("func", (target.name, {}))})
    body.nodes.append(call)
    return True


def call_given(graph, rng, registry, nodes, body):
    """Changes the attributes that a call passes to the function: other kinds, too few, too many, or placeholders."""
    calls = [node for node in nodes if node.operation in names_of(graph)]
    calls += [node for node in nodes if node.attributes.get("f", ("none",))[0] == "func"]
    if not calls:
        return False
    call = rng.choice(calls)
    is_named = call.operation in names_of(graph)
    given = call.attributes if is_named else dict(call.attributes["f"][1][1])
    name = rng.choice([*given, "T", "N", "Ts"])
    if rng.random() < 0.3:
        given.pop(name, None)
    else:
        given[name] = rng.choice([("placeholder", rng.choice(["T", "N", name])), any_value(rng, names_of(graph)), ("type", rng.choice(ODD_TYPES))])
    if not is_named:
        call.attributes["f"] = ("func", (call.attributes["f"][1][0], given))
    return True


def function_attributes(graph, rng, registry, nodes, body):
    """Changes attributes of a function, of its arguments, and its control outputs."""
    if not body:
        return False
    form = rng.randrange(5)
    shapes = [("shape", rng.choice([None, [2], [-1, 2], *ODD_SHAPES])) for _ in range(rng.choice([0, 1, 1, 2]))]
    if form == 0:
        body.attributes["_input_shapes"] = rng.choice([("list", shapes), any_value(rng, names_of(graph))])
    elif form == 1:
        body.attributes[rng.choice(["_noinline", "api_implements", "x", "", "_disable_acd", "function_runs_at_most_once"])] = any_value(rng, names_of(graph))
    elif form == 2:
        body.argument_attributes[rng.choice([0, 0, 1, 5])] = {rng.choice(["dtype", "_x", "shape"]): any_value(rng, [])}
    elif form == 3:
        body.control_outputs.append(rng.choice(["done", "other", ""]))
    else:
        body.control_returns[rng.choice(["done", "other"])] = texts(body.nodes, body, rng) if body.nodes and rng.random() < 0.5 else rng.choice(["missing", ""])
    return True


def call_attributes(graph, rng, registry, nodes, body):
    calls = [node for node in nodes if node.operation in ("PartitionedCall", "StatefulPartitionedCall") or node.operation in names_of(graph)]
    if not calls:
        return False
    call = rng.choice(calls)
    form = rng.randrange(5)
    if form == 0:
        call.attributes[rng.choice(["Tin", "Tout"])] = ("list", [("type", rng.choice([1, 3, 7])) for _ in range(rng.randrange(3))])
    elif form == 1:
        call.attributes["f"] = rng.choice([("func", (rng.choice(["missing", "", *names_of(graph)]), {})), ("string", b"f0"), ("placeholder", "f"), ("none",)])
    elif form == 2:
        call.attributes["T"] = any_value(rng, [])
    elif form == 3:
        call.attributes["_disable_call_shape_inference"] = ("bool", True)
    else:
        for name in ("T", "N", "Ts", "f"):
            call.attributes.pop(name, None)
    return True


FAULTS = [
    operation, unknown_operation, deprecated, node_name, empty_operation, versions, attribute_gone, attribute_gone, attribute_kind, attribute_kind,
    attribute_kind, attribute_type, attribute_type, attribute_type, attribute_allowed, attribute_minimum, attribute_minimum, attribute_shape,
    attribute_function, attribute_unknown, attribute_unknown, colocation, output_shapes, attribute_wire, attribute_wire, attribute_swapped,
    attribute_default, input_gone, input_gone, input_more, input_more, input_other, input_other, input_index, input_index, input_unknown,
    input_control, cycle, inputs_shuffled, loop_parts, references, device, full_type, function_name, function_twice, gradients, function_gone,
    signature, signature, returns, returns, placeholders, placeholders, recursion, call_attributes, call_attributes, call_given, call_given,
    function_attributes, function_attributes,
]


def spoil(graph, rng, registry, count):
    """Puts `count` faults into the graph, and records their names in it."""
    tries = 0
    while len(graph.faults) < count and tries < 50:
        tries += 1
        fault = rng.choice(FAULTS)
        bodies = [function for function in graph.functions if function.nodes]
        body = rng.choice(bodies) if bodies and rng.random() < 0.45 else None
        nodes = body.nodes if body else graph.nodes
        if nodes and fault(graph, rng, registry, nodes, body):
            graph.faults.append(fault.__name__ + ("/body" if body else ""))
