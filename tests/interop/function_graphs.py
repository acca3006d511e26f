"""Graphs whose functions have more than nodes: shapes and attributes of arguments, attributes of their own, gradients.

Each is made by hand for one question, in the form of `operation_graphs`. Nothing here needs TensorFlow.
"""

import copy

from operation_graphs import FLOAT, RESOURCE, Function, Graph, Node, entry, field, shape_bytes

SHAPES = {"unknown": None, "scalar": [], "part": [-1, 2], "negative": [2, -3], "large": [2**62, 4], "long": [1] * 300}
VALUES = {
    "none": ("none",), "int": ("int", 1), "float": ("float", 1.0), "bool": ("bool", True), "text": ("string", b"abc"), "no_text": ("string", b"\xff"),
    "empty": ("string", b""), "list": ("list", []), "texts": ("list", [("string", b"loc:@unknown")]), "bad_texts": ("list", [("string", b"loc:@\xff")]),
    "ints": ("list", [("int", 1)]), "placeholder": ("placeholder", "T"), "function": ("func", ("missing", {})), "type": ("type", FLOAT),
    "reference": ("type", 101), "no_type": ("type", 99), "int4": ("type", 29), "shape": ("shape", [-2]), "tensor": ("tensor", b""),
}
TENSORS = {"good": field(1, FLOAT) + field(2, b""), "type": field(1, 99), "shape": field(1, FLOAT) + field(2, field(2, field(1, -2))),
           "content": field(1, FLOAT) + field(2, field(2, field(1, 2))) + field(4, b"abc")}


def shapes(*found):
    return ("list", [("shape", shape) for shape in found])


def function(name="f", types=(FLOAT,), nodes=(), results=None, **more):
    """Returns a function with arguments of the given types, which by default returns the first of them."""
    made = Function(name)
    made.arguments = [{"name": f"x{number}", "type": one} for number, one in enumerate(types)]
    results = [("y", types[0], "x0")] if results is None and types else results or []
    made.results = [{"name": one, "type": number} for one, number, _ in results]
    made.returns, made.nodes = {one: text for one, _, text in results}, list(nodes)
    for key, value in more.items():
        setattr(made, key, value)
    return made


def graph(*functions, call=None, registered=()):
    """Returns a graph with functions and a node that calls the first of them, by default by its name."""
    made = Graph()
    made.producer, made.functions, made.registered_gradients = 1395, list(functions), list(registered)
    first = functions[0]
    inputs = [f"p{number}" for number, _ in enumerate(first.arguments)]
    made.nodes = [placeholder(name, argument["type"]) for name, argument in zip(inputs, first.arguments)]
    made.nodes.append(call or Node("c", first.name, inputs))
    return made


def placeholder(name, number=FLOAT, device=""):
    node = Node(name, "Placeholder", [], {"dtype": ("type", number)})
    node.device = device
    return node


def partitioned(name, function_name, *gives):
    gives = ("list", [("type", number) for number in gives])
    return Node(name, "PartitionedCall", [], {"Tin": ("list", []), "Tout": gives, "f": ("func", (function_name, {}))})


def uncalled(made):
    made.nodes = [Node("n", "NoOp")]
    return made


def of_arguments():
    """Yields graphs with shapes of arguments, and attributes of single arguments."""
    two = (FLOAT, FLOAT)
    for many in range(4):
        yield f"shapes-{many}-of-2", graph(function(types=two, attributes={"_input_shapes": shapes(*[None] * many)}))
    yield "shapes-mixed", graph(function(types=two, attributes={"_input_shapes": ("list", [("int", 1), ("shape", [3])])}))
    for name, shape in SHAPES.items():
        yield f"shapes-{name}", graph(function(types=two, attributes={"_input_shapes": shapes(None, shape)}))
        own = {0: {"_output_shapes": shapes(shape, [-2])}}
        yield f"own-{name}", graph(function(argument_attributes=own))
        yield f"own-{name}-uncalled", uncalled(graph(function(argument_attributes=own)))
        yield f"both-{name}", graph(function(attributes={"_input_shapes": shapes(shape)}, argument_attributes={0: {"_output_shapes": shapes([2])}}))
    for name, value in VALUES.items():
        yield f"shapes-is-{name}", graph(function(attributes={"_input_shapes": value}))
        for key in ("_output_shapes", "_class", "_gradient_op_type", "_XlaX", "x"):
            yield f"{key}-{name}", graph(function(argument_attributes={0: {key: value}}))
        yield f"gradient-{name}", graph(function(nodes=[Node("i", "Identity", ["x0"], {"T": ("type", FLOAT), "_gradient_op_type": value})]))
    yield "argument-7", graph(function(argument_attributes={7: {"_class": ("int", 1), "_output_shapes": ("list", [])}}))
    types = {"good": ("list", [("type", FLOAT)]), "empty": ("list", []), "int": ("int", 1)}
    held = {"good": shapes([2]), "empty": ("list", []), "negative": shapes([-2])}
    for one, data_type in types.items():
        for other, shape in held.items():
            attributes = {0: {"_handle_dtypes": data_type, "_handle_shapes": shape}}
            for number in (RESOURCE, FLOAT):
                yield f"handle-{number}-{one}-{other}", graph(function(types=(number,), argument_attributes=attributes))


class WithHandleData:
    """A function that returns its only argument, with the resource's contents in its signature."""

    def __init__(self, number, more):
        self.name, self.arguments, self.number, self.more = "f", [{"name": "x", "type": number}], number, more

    def bytes(self):
        argument = field(1, "x") + field(3, self.number) + field(7, field(1, FLOAT) + field(2, shape_bytes([2])))
        signature = field(1, "f") + field(2, argument) + field(3, field(1, "y") + field(3, self.number))
        return field(1, signature) + field(4, field(1, "y") + field(2, "x")) + self.more


def of_handles():
    """Yields graphs with resource arguments whose contents are in the signature."""
    for name, shape in SHAPES.items():
        listed = field(5, entry("_input_shapes", shapes(shape)))
        own = field(7, field(2, field(1, entry("_output_shapes", shapes(shape)))))
        for number in (RESOURCE, FLOAT):
            yield f"data-{number}-listed-{name}", graph(WithHandleData(number, listed))
            yield f"data-{number}-own-{name}", graph(WithHandleData(number, own))


def of_gradients():
    """Yields graphs with registered gradients that exist, are missing, or form a cycle."""
    of = {"_gradient_op_type": ("string", b"G")}
    asks = function(nodes=[Node("n", "NoOp", [], of)])
    plain = function("g")
    back = function("g", nodes=[Node("n", "NoOp", [], {"_gradient_op_type": ("string", b"F")})])
    yield "registered", graph(asks, plain, registered=[("g", "G")])
    yield "registered-unused", graph(asks, plain, registered=[("lost", "H")])
    for name in ("lost", "", "f"):
        yield f"registered-is-{name}", graph(asks, plain, registered=[(name, "G")])
        yield f"registered-was-{name}", graph(asks, plain, registered=[(name, "G"), ("g", "G")])
    yield "registered-circle", graph(asks, back, registered=[("g", "G"), ("f", "F")])
    # In a gradient function, no step waits for functions that are attributes.
    named = {"f": ("func", ("h", {}))}
    hides, other = function(nodes=[Node("n", "NoOp", [], of | named)]), function("h")
    yield "registered-hides", graph(hides, plain, other, registered=[("g", "G")])
    yield "registered-hides-late", graph(other, hides, plain, registered=[("g", "G")])
    for name, operation, attributes in [("call", "g", {}), ("partitioned", "PartitionedCall", partitioned("c", "g").attributes)]:
        calls = function(nodes=[Node("n", operation, [], of | attributes)])
        yield f"registered-lost-{name}", graph(calls, function("g", ()), registered=[("lost", "G")])


def of_own_tensors():
    """Yields graphs with tensors as attributes of a function, or as defaults of its attributes."""
    for name, tensor in TENSORS.items():
        for key in ("_noinline", "x"):
            yield f"attribute-{key}-{name}", graph(function(attributes={key: ("tensor", tensor)}))
        yield f"attributes-{name}", graph(function(attributes={"_noinline": ("list", [("tensor", tensor)])}))
        yield f"default-{name}", graph(function(attrs={"q": ("tensor", ("tensor", tensor))}))


def of_places():
    """Yields graphs with devices on nodes of functions that a session examines, and of others."""
    for number in (RESOURCE, FLOAT):
        for device in ("garbage::", "CPU", "/cpu:0"):
            given = function("f", (), [placeholder("p", number, device)], [("y", number, "p:output:0")])
            yield f"place-{number}-{device[:3].strip('/')}", graph(given, call=partitioned("c", "f", number))
            yield f"place-{number}-{device[:3].strip('/')}-by-name", graph(given, call=Node("c", "f"))
        inner = function("g", (), [placeholder("p", RESOURCE, "garbage::")], [("y", RESOURCE, "p:output:0")])
        nodes = [partitioned("d", "g", RESOURCE), placeholder("q", number)]
        yield f"place-{number}-within", graph(function("f", (), nodes, [("y", number, "q:output:0")]), inner, call=partitioned("c", "f", number))


def of_names():
    """Yields graphs with a missing name of a resource."""
    attributes = {"T": ("type", FLOAT), "num_devices": ("int", 2)}
    nodes = [placeholder("s", 3), Node("n", "_NcclBroadcastRecv", ["s:output:0"], attributes)]
    yield "name-in-function", uncalled(graph(function("f", (), nodes)))
    made = uncalled(graph(function()))
    made.nodes = [placeholder("s", 3), Node("n", "_NcclBroadcastRecv", ["s"], attributes)]
    yield "name-in-graph", made


def generic():
    """Returns a function `g` that takes as many arguments as its call says."""
    made = function("g", (), [placeholder("p")], [("o", FLOAT, "p:output:0")], attrs={"N": ("int", None)})
    made.arguments = [{"name": "a", "type": FLOAT, "number_attr": "N"}]
    return made


def call_of_generic(name, many, direct):
    """Returns a node that calls `g` with a number of arguments, and the name of its output."""
    inputs, number = ["x0"] * many, {"N": ("int", many)}
    if direct:
        return Node(name, "g", inputs, number), f"{name}:o:0"
    call = partitioned(name, "g", FLOAT)
    call.inputs, call.attributes["Tin"], call.attributes["f"] = inputs, ("list", [("type", FLOAT)] * many), ("func", ("g", number))
    return call, f"{name}:output:0"


def of_orders():
    """Yields graphs with two calls of a function with different attributes: the call whose shapes are requested first determines its body."""
    t = {"T": ("type", FLOAT)}
    for two, one, direct in (("two", "one", True), ("a", "b", True), ("two", "one", False), ("a", "b", False)):
        calls, outputs = zip(call_of_generic(two, 2, direct), call_of_generic(one, 1, direct))
        more = {
            "alone": [], "control": [Node("j", "NoOp", [f"^{two}", f"^{one}"])], "control-turned": [Node("j", "NoOp", [f"^{one}", f"^{two}"])],
            "data": [Node("j", "AddV2", outputs, t)], "data-turned": [Node("j", "AddV2", outputs[::-1], t)],
            "both": [Node("j", "Identity", [outputs[0], f"^{one}"], t)], "both-turned": [Node("j", "Identity", [outputs[1], f"^{two}"], t)],
            "one-of-them": [Node("j", "NoOp", [f"^{two}"])],
        }
        form = "" if direct else "partitioned-"
        for name, nodes in more.items():
            yield f"order-{form}{two}-{name}", graph(function(nodes=[*calls, *nodes]), generic())
            yield f"order-{form}{one}-{name}", graph(function(nodes=[*calls[::-1], *nodes]), generic())
        for name, results in (("", outputs), ("-turned", outputs[::-1])):
            given = [(f"y{number}", FLOAT, text) for number, text in enumerate(results)]
            yield f"order-{form}{two}-returned{name}", graph(function(nodes=calls, results=given), generic())
        # The attributes are passed through functions without attributes.
        between = [function(name, nodes=[call]) for name, call in zip(("h", "k"), calls)]
        for name, order in (("", ("h", "k")), ("-turned", ("k", "h"))):
            outer = function(nodes=[call_of(name, direct) for name in order])
            yield f"order-{form}{two}-between{name}", graph(outer, *between, generic())
    given, missing = call_of_generic("one", 1, False)[0], partitioned("again", "g")
    yield "order-missing", graph(function(nodes=[given, missing]), generic())
    yield "order-missing-turned", graph(function(nodes=[missing, given]), generic())


def call_of(name, direct):
    """Returns a node that calls a function of one argument and one result."""
    if direct:
        return Node(f"call_{name}", name, ["x0"])
    call = partitioned(f"call_{name}", name, FLOAT)
    call.inputs, call.attributes["Tin"] = ["x0"], ("list", [("type", FLOAT)])
    return call


def of_calls_beside():
    """Yields graphs with a PartitionedCall that lacks inputs or outputs of a function that another node also calls."""
    for name, beside in (("named", Node("c", "h", ["x0"])), ("partitioned", call_of("h", False))):
        for less, call in (("", call_of("h", False)), ("-inputs", partitioned("d", "h", FLOAT)), ("-outputs", partitioned("d", "h"))):
            if less == "-outputs":
                call.inputs, call.attributes["Tin"] = ["x0"], ("list", [("type", FLOAT)])
            call.name = "d"
            for disabled in ("", "-disabled"):
                call.attributes.pop("_disable_call_shape_inference", None)
                call.attributes |= {"_disable_call_shape_inference": ("bool", True)} if disabled else {}
                for turned in (False, True):
                    nodes = [copy.deepcopy(one) for one in ((call, beside) if turned else (beside, call))]
                    yield f"beside-{name}{less}{disabled}{'-turned' * turned}", uncalled(graph(function(nodes=nodes), function("h")))


def of_notes():
    """Yields graphs with functions in undeclared attributes of nodes, beside equal nodes without them."""
    for key in ("_note", "_output_shapes", "note"):
        for name, value in (("one", ("func", ("g", {}))), ("list", ("list", [("func", ("g", {}))])), ("lost", ("func", ("missing", {}))), ("self", ("func", ("f", {})))):
            noted = placeholder("n")
            noted.attributes |= {key: value}
            for order, nodes in (("first", [noted, placeholder("m")]), ("last", [placeholder("m"), noted])):
                back = function("g", nodes=[Node("c", "f", ["x0"])])
                yield f"note-{key}-{name}-{order}", uncalled(graph(function(nodes=nodes), back))


def of_cycles():
    """Yields graphs with nodes in a cycle or after one, of which one requires a reference."""
    t = {"T": ("type", FLOAT)}
    cycle = [Node("i", "Identity", ["k:output:0"], t), Node("k", "Identity", ["i:output:0"], t)]
    for name, operation, inputs in (("within", "RefIdentity", ["k:output:0"]), ("behind", "RefIdentity", ["x0", "^i"]), ("beside", "RefIdentity", ["x0"])):
        lost = Node("r", operation, inputs, t)
        if name == "within":
            nodes = [lost, Node("k", "Identity", ["r:output:0"], t)]
        else:
            nodes = [*cycle, lost]
        yield f"cycle-{name}", graph(function(nodes=nodes))
    one = {"name": "y", "type": FLOAT, "is_ref": True}
    for name, text in (("behind", "i:output:0"), ("beside", "x0")):
        given = function(nodes=cycle, results=[("y", FLOAT, text)])
        given.results = [one]
        yield f"cycle-result-{name}", graph(given)


def of_results_by_hand():
    """Yields graphs with arguments and results that are nodes, in functions that others call."""
    t = {"T": ("type", FLOAT)}
    result = [placeholder("p"), Node("r", "_Retval", ["p:output:0"], t | {"index": ("int", 0)})]
    for name, nodes in (("result", result), ("argument", [Node("r", "_Arg", [], t | {"index": ("int", 1)})])):
        by_hand = function("h", (), nodes)
        disabled = {"_disable_call_shape_inference": ("bool", True)}
        for form, call in (("name", Node("c", "h")), ("disabled", Node("c", "h", [], disabled)), ("partitioned", partitioned("c", "h"))):
            yield f"by-hand-{name}-{form}", uncalled(graph(function(nodes=[call]), by_hand))


def of_twins():
    """Yields graphs with functions of the same name, equal or not, called by name or as an attribute."""
    one, other = function("t", ()), function("t", (), [Node("n", "NoOp")])
    for name, call in (("name", Node("c", "t")), ("partitioned", partitioned("c", "t"))):
        calls = function(nodes=[call])
        for form, twins in (("equal", (one, one)), ("others", (one, other))):
            yield f"twins-{form}-{name}", graph(calls, *twins)
            yield f"twins-{form}-{name}-uncalled", uncalled(graph(calls, *twins))
            between = graph(calls, *twins)
            between.functions = [twins[0], calls, twins[1]]
            yield f"twins-{form}-{name}-between", between


def of_kinds():
    """Yields graphs with another kind of value in a type attribute: the importer checks it for lists of tensors, but not for a single one."""
    for operation, inputs, more in (("NPolymorphicRestrictOut", [], {"N": ("int", 1)}), ("AddN", ["x0"], {"N": ("int", 1)}), ("Placeholder", [], {})):
        key = "T" if more else "dtype"
        for name in ("int", "text", "list", "shape", "type"):
            nodes = [Node("n", operation, inputs, {key: VALUES[name]} | more)]
            yield f"kind-{operation}-{name}", graph(function(nodes=nodes))


def of_frames():
    """Yields graphs with loop frames in functions that a session examines, and in others: without a name, or with nodes in two frames."""
    t = {"T": ("type", FLOAT)}

    def enter(name, source, frame):
        return Node(name, "Enter", [source], t | {"frame_name": ("string", frame)})

    def joined(one, other):
        return Node("s", "AddV2", [one, other], t)

    entered, left = enter("e", "q:output:0", b"l"), Node("x", "Exit", ["e:output:0"], t)
    conditions = [Node(name, "LoopCond", ["b:output:0"]) for name in ("l", "m", "a/LoopCounter")]
    variable = Node("v", "VariableV2", [], {"dtype": ("type", FLOAT), "shape": ("shape", None)})
    bodies = {
        "nameless": [enter("e", "q:output:0", b"")], "missing": [Node("e", "Enter", ["q:output:0"], t)],
        "number": [Node("e", "Enter", ["q:output:0"], t | {"frame_name": ("int", 1)})],
        "reference": [variable, Node("e", "RefEnter", ["v:ref:0"], t | {"frame_name": ("string", b"")})],
        "two": [entered, joined("e:output:0", "q:output:0")], "same": [entered, joined("e:output:0", "e:output:0")],
        "twins": [entered, enter("d", "q:output:0", b"l"), joined("e:output:0", "d:output:0")],
        "left": [entered, left, joined("x:output:0", "q:output:0")],
        "waits": [entered, Node("w", "Identity", ["e:output:0", "^q"], t)],
        "condition": conditions[:1], "conditions": conditions[:2], "counter": conditions[::2],
        "nested": [entered, enter("d", "e:output:0", b"m")],
        "in-two": [entered, enter("d", "e:output:0", b"m"), enter("k", "q:output:0", b"m")],
        "never-entered": [Node("x", "Exit", ["q:output:0"], t), joined("x:output:0", "q:output:0")],
    }
    given = [placeholder("r", RESOURCE), placeholder("q"), placeholder("b", 10)]
    for name, nodes in bodies.items():
        for number, text in ((RESOURCE, "r:output:0"), (FLOAT, "q:output:0")):
            body = function("f", (), [*given, *nodes], [("y", number, text)])
            yield f"frame-{number}-{name}", graph(body, call=partitioned("c", "f", number))
        by_name = graph(function("f", (), [*given, *nodes], [("y", RESOURCE, "r:output:0")]), call=Node("c", "f"))
        yield f"frame-{name}-by-name", by_name


def of_said_shapes():
    """Yields graphs with nodes whose `_output_shapes` is not a list of shapes, is too short, or does not fit."""
    t = {"T": ("type", FLOAT)}
    nodes = {"no": Node("n", "NoOp"), "one": Node("n", "Identity", ["x0"], t), "two": Node("n", "Unique", ["x0"], t | {"out_idx": ("type", 3)})}
    values = {key: VALUES[key] for key in ("none", "int", "list", "ints", "placeholder", "shape", "function")} | {
        "one": shapes(None), "two": shapes(None, None), "bad": shapes([-2]), "second-bad": shapes(None, [-2]), "scalars": shapes([], [])}
    for operation, node in nodes.items():
        for name, value in values.items():
            said = copy.deepcopy(node)
            said.attributes["_output_shapes"] = value
            yield f"said-{operation}-{name}", graph(function(nodes=[said]))
            yield f"said-{operation}-{name}-uncalled", uncalled(graph(function(nodes=[said])))
            main = graph(function())
            said = copy.deepcopy(said)
            said.inputs = ["p0"] * len(said.inputs)
            main.nodes.append(said)
            yield f"said-{operation}-{name}-main", main
    faults = {"inputs": Node("n", "Identity", ["s:output:0", "s:output:0"], t), "shapes": Node("n", "MatMul", ["s:output:0", "s:output:0"], t), "none": Node("n", "NoOp"),
              "unbound": Node("n", "Identity", ["s:output:0"], t | {"_note": ("placeholder", "q")})}
    scalar = Node("s", "Placeholder", [], {"dtype": ("type", FLOAT), "shape": ("shape", [])})
    for fault, node in faults.items():
        for form in ("name", "partitioned", "disabled"):
            call = Node("c", "f") if form == "name" else partitioned("c", "f", FLOAT)
            call.attributes |= {"_output_shapes": shapes([3, 3])} | ({"_disable_call_shape_inference": ("bool", True)} if form == "disabled" else {})
            yield f"said-call-{form}-{fault}", graph(function(types=(), nodes=[copy.deepcopy(scalar), copy.deepcopy(node)], results=[("y", FLOAT, "s:output:0")]), call=call)
            outer = function("g", (), [copy.deepcopy(call)], [("y", FLOAT, "c:y:0" if form == "name" else "c:output:0")])
            inner = function(types=(), nodes=[copy.deepcopy(scalar), copy.deepcopy(node)], results=[("y", FLOAT, "s:output:0")])
            yield f"said-call-{form}-{fault}-body", graph(outer, inner)


def graphs():
    for family in (of_arguments, of_handles, of_gradients, of_own_tensors, of_places, of_names, of_orders, of_results_by_hand, of_twins, of_kinds,
                   of_calls_beside, of_notes, of_cycles, of_frames, of_said_shapes):
        yield from family()
