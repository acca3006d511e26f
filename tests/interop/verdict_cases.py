"""More cases for tensorflow_verdicts.py: texts, messages, functions, nodes and indices, each unusual in one way.

A family takes the Cases of that script and adds to them. `use` passes the script's functions for the formats.
"""

import json
import os
import shutil
import struct

# Complete texts.
TEXTS = [
    'node < name: "a"; op: "NoOp", >;', 'node {name:"a"op:"NoOp"}', 'node{name:"a",,op:"NoOp"}', 'node {{}}', 'node { < }', 'node <{name: "a"}>',
    'node [< name: "a" op: "NoOp" >, { name: "b" op: "NoOp" }]', 'node: [{ name: "a" op: "NoOp" }]', 'node []', 'node: []', 'node [ ] ;',
    'node [,]', 'node [{}{}]', 'versions [{ producer: 1 }]', 'versions: [{producer: 1}]', 'library { function [] }', 'versions {} ;;',
    'versions {} ,;', 'versions {};versions {}', 'versions { bad_consumers: [P]; bad_consumers: [1,2,] }', 'versions { bad_consumers: [1 2] }',
    'versions { bad_consumers [1] }', 'versions { bad_consumers: [[1]] }', 'versions { bad_consumers: [0x1, 010, -1] }',
    'versions { producer: [1] }', 'versions { bad_consumers: [P', 'versions { bad_consumers: ["1"] }', '# comment at the end',
    '# a\r\n# b\r\nversions { producer: 1 }\r\n', 'versions { # x }\n producer: 1 }', 'versions#c\n{#c\nproducer#c\n:#c\n1#c\n}#',
    'versions // x\n{}', '/* x */ versions {}', '# \u2028 versions { producer: "bad" }', 'versions\xa0{ producer: 1 }',
    'versions\u3000{ producer: 1 }', 'versions\x0b{ producer: 1\x0c}', 'versions\x85{ }', 'versions \x1c { }', 'versions \x1f{ }',
    'versions \u200b { }', '# a\rversions { producer: "x" }', '# a\x0bversions { producer: "x" }', '# a\x85versions { producer: "x" }',
    '# a\u2028versions { producer: "x" }', '# a\x1cversions { producer: "x" }', 'node { name: \'a\' "b" \'c\' op: \'NoOp\' }',
    "node { name: 'a'\n\n#c\n'b' op: 'NoOp' }", "node { name: '' op: 'NoOp' }", "node { name: 'a\\'b' op: 'NoOp' }",
    "node { name: 'a\tb' op: 'NoOp' }", "node { name: 'a' op: 'NoOp' attr { key: '\xe9' value { i: 1 } } }",
    "node { name: 'a' op: 'NoOp' attr { key: '\\303\\251' value { i: 1 } } }",
    "node { name: 'a' op: 'NoOp' attr { key: '\\303' '\\251' value { i: 1 } } }",
    "node { name: 'a' op: 'NoOp' attr { key: '\\303' value { i: 1 } } }",
    'node { name: \'a\' op: \'NoOp\' attr { key: \'s\' value { s: "a\rb" } } }', "node { name: 'a' op: 'NoOp' device: '\\377' }",
    "node { name: a op: 'NoOp' }", "node { name: 1 op: 'NoOp' }", "node { name: `a` op: 'NoOp' }", "node { name: u'a' op: 'NoOp' }",
    'node { name: """a""" op: \'NoOp\' }', "node { name: 'a\\x41\\101\\n' op: 'NoOp' }", 'versions { producer: 0X1f }', 'versions { producer: 00 }',
    'versions { producer: 0_1 }', 'versions { producer: 1_0 }', 'versions { producer: 0b11 }', 'versions { producer: 0o17 }',
    'versions { producer: --1 }', 'versions { producer: -\n1 }', 'versions { producer: 1e3 }', 'versions { producer: 1.5 }',
    'versions { producer: .5 }', 'versions { producer: inf }', 'versions { producer: 1L }', 'versions { producer: 1u }',
    'versions { producer: 0xFFFFFFFF }', 'versions { producer: 0x7FFFFFFF }', 'versions { producer: -0x80000000 }',
    'versions { producer: 99999999999999999999999999 }', 'versions { producer: 1;; }', 'versions { producer: 1\u0661 }',
    'versions { producer: -0 }', 'versions { producer: 0 producer: 0 }', 'versions { producer: 0 producer: 1 }',
    'versions { producer: 1 producer: 0 }', 'versions { producer: 1 2 }', 'versions { producer: 1producer: 2 }',
    'versions { producer: 1min_consumer: 2 }', 'versions { producer: 1# \n min_consumer: 2 }', 'versions { producer: 0x1min_consumer: 2 }',
    "node { name: 'a' op: 'NoOp' attr { key: 'k' value { list { func { name: 'f' attr { key: 'x' value { func { name: 'g' } } } } } } } }",
    "node { name: 'a' op: 'NoOp' attr { key: 'k' value { func { attr { } } } } }",
    "node { name: 'a' op: 'NoOp' attr { key: 'k' value { func { attr { value { } } } } } }",
    "node { name: 'a' op: 'NoOp' attr { key: 'k' value { func { attr { key: 'a' value { i: 1 } } attr { key: 'a' value { i: 2 } } } } } }",
    "node { name: 'a' op: 'NoOp' attr { key: 'k' value { i: 1 } } attr { key: 'k' value { i: 2 } } }",
    "node { name: 'a' op: 'NoOp' attr { key: 'k' key: 'k' } }", "node { name: 'a' op: 'NoOp' attr { value { i: 1 } key: 'k' } }",
    "node { name: 'a' op: 'NoOp' attr { value { i: 1 } value { i: 1 } key: 'k' } }", "node { name: 'a' op: 'NoOp' attr { } }",
    "node { name: 'a' op: 'NoOp' attr [ { key: 'k' value { i: 1 } }, { key: 'l' value { i: 1 } } ] }", "node { name: 'a' op: 'NoOp' name: 'a' }",
    "node { name: '' name: 'a' op: 'NoOp' }", "node { name: 'a' name: '' op: 'NoOp' }", "node { name: 'a' op: 'NoOp' device: '' device: 'x' }",
    "node { name: 'a' op: 'NoOp' experimental_debug_info { original_node_names: ['a', 'b'] original_func_names: 'x' } }",
    "node { name: 'a' op: 'NoOp' experimental_type { type_id: TFT_PRODUCT args { type_id: TFT_TENSOR s: 'x' } args { i: 5 } } }",
    "node { name: 'a' op: 'NoOp' experimental_type { s: 'a' i: 5 } }", "node { name: 'a' op: 'NoOp' experimental_type { type_id: 99999 } }",
    "node { name: 'a' op: 'NoOp' experimental_type { type_id: TFT_NOPE } }",
    'versions { [type.googleapis.com/tensorflow.VersionDef] { producer: 1 } }', '[a.b]: 1', '[a.b] { }', '5: 1', 'versions { 1: 1 }',
    'versions { producer: 1 unknown { a: 1 } }', 'versions { reserved: 1 }', 'graph_def { }', 'tensorflow.GraphDef { }',
    "node { name: 'a' op: 'NoOp' input: ['^a'] }", "node { name: 'b' op: 'NoOp' input: '^a' } node { name: 'a' op: 'NoOp' }",
    "node { name: 'b' op: 'NoOp' input: ['^a', '^c'] } node { name: 'a' op: 'NoOp' } node { name: 'c' op: 'Old' } versions { producer: P }",
    'version: 5', 'version: 5 version: 5', 'version: 0 version: 5',
    "debug_info { files: ['a'] files: 'b' frames_by_id { key: 1 value { line: 3 } } }",
    "debug_info { traces { key: 'a' value { file_line_cols { file_index: 1 line: 2 col: 3 func: 'f' code: 'c' } frame_id: [1, 2] } } name_to_trace_id { key: 'x' value: 18446744073709551615 } }",
    'debug_info { traces_by_id { key: -1 } }', "debug_info { files: '\\377' }",
    "debug_info { traces { value { file_line_cols { func: 'a' func: 'b' } } } }",
    'debug_info { traces { value { file_line_cols { line: 0 line: 0 } } } }',
    "library { function { signature { name: 'f' input_arg { name: 'x' type: DT_FLOAT } attr { name: 'T' type: 'type' allowed_values { list { type: DT_FLOAT } } has_minimum: true minimum: -3 } deprecation { version: 8 explanation: 'x' } is_stateful: true } ret { key: 'y' value: 'x' } control_ret { key: 'a' value: 'b' } arg_attr { key: 0 value { attr { key: 'a' value { s: 'b' } } } } resource_arg_unique_id { key: 4294967295 value: 0 } } gradient { function_name: 'f' gradient_func: 'g' } registered_gradients { gradient_func: 'x' registered_op_type: 'y' } }",
    'library { function { arg_attr { key: -1 } } }', 'library { function { arg_attr { key: 4294967296 } } }',
    "library { function { signature { name: 'f' } signature { name: 'f' } } }", 'library { } library { }',
    "library { function { signature { name: 'f' } } function { signature { name: 'f' } } }",
    "library { function { signature { name: 'f' } } function { signature { name: 'f' is_stateful: true } } }",
    "library { function { signature { name: 'f' control_output: ['a'] input_arg { handle_data { dtype: DT_FLOAT shape { } } experimental_full_type { } } } } }",
    '\ufeff', '\ufeff# x\n', 'versions { producer: 1 }\x1a', 'versions { producer: 1 }\x00', '\x00', ' ', '\n\n', '\t', 'a', '{', '}', '<>', ':',
    "'a'", '1', '-', '.', '#', 'node', 'node:', 'node {', 'node { name', 'node { name:', "node { name: 'a", "node { name: 'a'",
    "node { name: 'a' }", "node { op: 'NoOp' }", 'versions: 1', "versions: 'a'", 'versions: { } }', 'versions { } {',
    "node: { name: 'a' op: 'NoOp' } : ", "Node { name: 'a' op: 'NoOp' }", "node.name: 'a'", "node { name.x: 'a' }", "node/name: 'a'", 'node-x {}',
    '_node {}', 'n\xf6de {}',
]

# Texts as the value of an attribute.
VALUES = [
    'f: 1', 'f: -1', 'f: +1', 'f: 1.', 'f: 1.e5', 'f: 1E+5', 'f: 1e', 'f: 0x10', 'f: 010', 'f: 00.5', 'f: 0.5F', 'f: 1ff', 'f: Infinity',
    'f: -Infinity', 'f: +inf', 'f: NaN', 'f: nanf', 'f: NANF', 'f: -inff', 'f: infinityf', 'f: in', 'f: 1e39', 'f: -1e39', 'f: 1e-400',
    'f: 340282346638528859811704183484516925440.0', 'f: 3.5e38', "f: 'inf'", 'f: true', 'f: 1_0.0', 'f: 1 .5', 'f: - 1', 'f: -  inf', 'f: - nan',
    'f: 1.0.0', 'f: 0', 'f: 0 f: 0', 'f: 0 i: 0', 'f: 0 f: 1', 'f: 12345678901234567890123456789012345678901', 'f: 0123', 'f: 09', 'f: 0e5',
    'f: 00', 'f: -00', 'f: 0f', 'f: -0f', 'f: 00f', 'i: 9223372036854775807', 'i: 9223372036854775808', 'i: -9223372036854775808',
    'i: -9223372036854775809', 'i: 1.0', 'i: true', 'i: 0x7fffffffffffffff', 'i: -0x8000000000000000', 'i: 0777777777777777777777', "i: 'a'",
    'i: 0 i: 0', 'i: 3 f: 2', 'b: true', 'b: false', 'b: TRUE', 'b: tRue', 'b: True', 'b: False', 'b: t', 'b: f', 'b: T', 'b: 0', 'b: 1', 'b: 01',
    'b: 0x1', 'b: -1', 'b: 00', 'b: 1.0', "b: 'true'", 'b: yes', 'b: +1', 'b: -0', 'b: 0x0', 'type: DT_FLOAT', 'type: dt_float', "type: 'DT_FLOAT'",
    'type: 1', 'type: 0x1', 'type: -1', 'type: 101', 'type: 2147483648', 'type: -2147483648', 'type: -2147483649', 'type: 1.0',
    'type: DT_FLOAT type: DT_FLOAT', 'type: DT_INVALID type: DT_INVALID', 'type: DT_INT4', 'type: DT_UINT2_REF', 'type: DT_FLOAT8_E5M2',
    'type: DT_FLOAT8_E4M3FN_REF', 'type: DT_FLOAT8_E4M3FNUZ', 'type: DT_FLOAT4_E2M1FN', 'type: DT_INT2', 'type: 31', 'type: 33', 'type: +1',
    'type: 01', 'type: DT_FLOAT_REF', 'type: DataType.DT_FLOAT', "s: 'x' s: 'y'", "s: '' s: ''", 'list {} list {}', 'list { }',
    "list < s: ['a', 'b'] >", 'list { i: [1, 2', 'list { f: [1.5, inf, -nan] b: [t, f, 1] type: [DT_FLOAT, 2] }', "list { s: ['a' 'b', 'c'] }",
    "list { s: 'a' s: 'b' }", 'list { shape [{ dim { size: 1 } }, { unknown_rank: true }] }', 'list { tensor { } }',
    "tensor { dtype: DT_STRING string_val: '\\377' string_val: ['a'] tensor_shape { } }", "tensor { dtype: DT_FLOAT tensor_content: '\\000\\377' }",
    'tensor { half_val: [1, 0xffff] }', 'tensor { half_val: 99999999 }', 'tensor { uint32_val: -1 }', 'tensor { uint32_val: 4294967296 }',
    'tensor { uint64_val: 18446744073709551615 }', 'tensor { uint64_val: 18446744073709551616 }', "tensor { float8_val: 'ab' }",
    "tensor { resource_handle_val { device: 'd' container: 'c' hash_code: 18446744073709551615 dtypes_and_shapes { dtype: DT_FLOAT } } }",
    "tensor { variant_val { type_name: 't' metadata: '\\377' tensors { } } }", 'tensor { version_number: 1 version_number: 1 }',
    'tensor { double_val: [1e308, 1e309] }', "tensor { tensor_shape { dim { size: -1 name: 'x' } unknown_rank: false } }",
    'tensor { bool_val: [true, 2] }', 'tensor { dcomplex_val: 1 scomplex_val: 2f }', "placeholder: 'x'", "func { name: 'f' } s: 'x'",
    "s: 'x' func { name: 'f' }", 'shape { unknown_rank: true unknown_rank: true }', 'shape { unknown_rank: false unknown_rank: false }',
    'shape { dim { size: 1 } dim { size: 99999999999999999999 } }', '', 'nope: 1', '[ext.a]: 1', '[tensorflow.NodeDef]: 1', "i: 1, s: 'x'",
    'list { i: 1 i: 2 }; ',
]

# Texts between the quotes of a string.
STRINGS = [
    '\\0', '\\8', '\\1234', '\\400', '\\x', '\\xg', '\\x1', '\\x123', '\\X41', '\\ud800', '\\ud83d\\ude00', '\\U0001F600', '\\U00110000', '\\u12',
    '\\?', '\\', '\\\\', 'a\\\nb', '\xe9', 'a\x00b',
]


def use(script):
    """Imports names of the script: the wire format, the table format, the artifacts that TensorFlow made."""
    global S, field, varint, node, graph, version_def, type_attribute, masked
    S = script
    field, varint, node, graph = script.field, script.varint, script.node, script.graph
    version_def, type_attribute, masked = script.version_def, script.type_attribute, script.masked


def odd_texts(cases):
    texts = TEXTS + ["node { name: 'a' op: 'NoOp' attr { key: 'k' value { %s } } }" % value for value in VALUES]
    texts += ["node { name: 'a' op: 'NoOp' attr { key: 's' value { s: '%s' } } }" % string for string in STRINGS]
    for depth in (90, 96, 97, 98, 99, 100, 101, 400):
        texts.append("node { name: 'a' op: 'NoOp' experimental_type { " + "args { " * depth + "}" * depth + " } }")
    for depth in (10, 31, 32, 33, 60):
        texts.append("node { name: 'a' op: 'NoOp' attr { key: 'k' value { " + "func { attr { key: 'k' value { " * depth + " } } }" * depth + " } } }")
    for text in texts:
        for version in dict.fromkeys([cases.consumer, cases.consumer + 1]):
            if version == cases.consumer or ": P" in text or "[P" in text:
                data = text.replace("[P", f"[{version}").replace(": P", f": {version}").encode("utf-8", "surrogatepass")
                cases.file("odd_texts", "text", ".pbtxt", data)
    for data in [
        b"\xff", b"versions { producer: 1 } # \xff", b"node { name: 'a' op: 'NoOp' device: '\xff' }", b"\xef\xbb\xbfversions { }",
        b"versions { producer: 1 }\r", b"versions {\r\n producer: 1\r\n}\r\n", b"versions { } # \xed\xa0\x80\n", b"versions { }\xc2",
        "versions { producer: 1 }".encode("utf-16"), b"# \xc0\x80\n", b"node { name: 'a\r' op: 'NoOp' }",
    ]:
        cases.file("odd_texts", "text", ".pbtxt", data)
    rng = cases.rng
    whole = (
        "node { name: 'a' op: 'NoOp' attr { key: 'k' value { list { i: [1, 2] f: 1.5 s: 'x' } } } } library { function { signature { name: 'f' "
        "input_arg { name: 'x' type: DT_FLOAT } } node_def { name: 'n' op: 'NoOp' } ret { key: 'y' value: 'x' } } } versions { producer: 100 "
        "min_consumer: 0 bad_consumers: [1, 2] }"
    ).split()
    more = "{ } < > [ ] , ; : 'a' 1 0x10 -1 1.5 inf true DT_FLOAT name: producer: versions library attr function #c\n".split(" ")
    for _ in range(120 * cases.scale):
        words = list(whole)
        for _ in range(rng.randrange(1, 3)):
            at, kind = rng.randrange(len(words)), rng.randrange(4)
            if kind == 0:
                words[at] = rng.choice(more)
            elif kind == 1:
                words.insert(at, rng.choice(more))
            elif kind == 2:
                words.insert(at, rng.choice(words))
            else:
                del words[at]
        cases.file("odd_texts", "text", ".pbtxt", " ".join(words).encode())


def messages(cases):
    """Adds messages of every type that a graph can hold, made from their descriptors, mostly valid."""
    from google.protobuf.descriptor import FieldDescriptor as F
    from tensorflow.core.framework import graph_pb2

    rng = cases.rng
    varints = {F.TYPE_INT32, F.TYPE_INT64, F.TYPE_UINT32, F.TYPE_UINT64, F.TYPE_BOOL, F.TYPE_ENUM, F.TYPE_SINT32, F.TYPE_SINT64}
    lengths = {F.TYPE_MESSAGE, F.TYPE_STRING, F.TYPE_BYTES}
    wrong = 0

    def bad():
        return rng.random() < wrong

    def is_repeated(found):
        # Old releases of protobuf have the first, new ones the second.
        return found.is_repeated if hasattr(found, "is_repeated") else found.label == found.LABEL_REPEATED

    def scalar(found):
        if found.type in varints:
            number = rng.choice([0, 1, 2, 5, 127, 128, 300, 2**31, 2**32 + 1, 2**63, 2**64 - 1])
            return 0, varint(number, 11 if bad() else rng.choice([0] * 9 + [5, 10]))
        return (5, rng.randbytes(4)) if found.type in (F.TYPE_FLOAT, F.TYPE_FIXED32, F.TYPE_SFIXED32) else (1, rng.randbytes(8))

    def packed(found):
        elements = b"".join(scalar(found)[1] for _ in range(rng.randrange(4)))
        return elements[:-1] if bad() else elements

    def other_wire_type(found, depth):
        number, kind = found.number, rng.choice([4, 6, 7] if bad() else [0, 1, 2, 3, 5])
        if kind == 2:
            content = b"" if found.type in lengths else packed(found)
            return field(number, content)
        if kind == 3:
            inner = message(found.containing_type, depth + 1) if depth < 8 else b""
            return varint(number << 3 | 3) + inner + varint(number + bad() << 3 | 4)
        return varint(number << 3 | kind) + {0: varint(rng.randrange(300)), 1: bytes(8), 5: bytes(4)}.get(kind, b"abc")

    def message(descriptor, depth):
        out = b""
        for _ in range(rng.choice([0, 1, 1, 2, 3, 4]) if descriptor.fields else 0):
            found, chance = rng.choice(descriptor.fields), rng.random()
            number = found.number
            if chance < 0.04:
                out += other_wire_type(found, depth)
            elif chance < 0.07:
                out += field(rng.choice([60, 100, 5000, 2**29 - 1]), rng.randbytes(3))
            elif found.type == F.TYPE_MESSAGE:
                inner = message(found.message_type, depth + 1) if depth < 14 else b""
                length = max(0, len(inner) + (rng.choice([-1, 1, 5]) if bad() else 0))
                out += varint(number << 3 | 2, rng.choice([0, 0, 0, 5])) + varint(length, rng.choice([0, 0, 0, 5])) + inner
            elif found.type == F.TYPE_STRING:
                ill = [b"\xff", b"a\xc3", b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80", b"abcdefgh\x80"]
                out += field(number, rng.choice(ill) if bad() else rng.choice([b"", b"a", b"abc", "\u00e9".encode(), b"x" * 130]))
            elif found.type == F.TYPE_BYTES:
                out += field(number, rng.choice([b"", b"\xff\xfe", b"abc"]))
            elif is_repeated(found) and rng.random() < 0.7:
                out += field(number, packed(found))
            else:
                kind, data = scalar(found)
                out += varint(number << 3 | kind) + data
        return out

    top = graph_pb2.GraphDef.DESCRIPTOR.fields_by_name
    inner = {name: found.message_type for name, found in top["node"].message_type.fields_by_name.items()}
    for _ in range(300 * cases.scale):
        wrong = rng.choice([0, 0, 0.01, 0.03])
        parts = []
        for number in range(rng.randrange(1, 4)):
            kind = rng.randrange(6)
            if kind <= 2:
                extra = b"".join(field(5, message(inner["attr"], 3)) for _ in range(rng.randrange(1, 4)))
                for name, at in (("experimental_debug_info", 6), ("experimental_type", 7)):
                    if rng.random() < 0.3 and name in inner:
                        extra += field(at, message(inner[name], 3))
                parts.append(field(1, node(f"n{number}", "NoOp", [], extra)))
            else:
                at, name = [(2, "library"), (4, "versions"), (5, "debug_info")][kind - 3]
                parts.append(field(at, message(top[name].message_type, 2) if name in top else rng.randbytes(4)))
        cases.file("messages", "graph", ".pb", b"".join(parts))


def function(name, nodes=(), signature=b"", rest=b""):
    return field(1, field(1, name) + signature) + b"".join(field(3, each) for each in nodes) + rest


def attribute(key, value):
    return field(5, field(1, key) + field(2, value))


def functions(cases):
    """Adds libraries with a function twice, with gradients, with functions that are marked as deprecated."""
    plain, alone, call = function(b"f"), [node("a")], [node("a"), node("c", "f")]
    x, y = node("x"), node("y")
    p, q = attribute(b"p", field(3, 1)), attribute(b"q", field(3, 2))
    pairs = [
        (plain, plain), (plain, function(b"f", [x])), (function(b"f", [x, y]), function(b"f", [y, x])),
        (function(b"f", rest=p + q), function(b"f", rest=q + p)), (function(b"f", rest=p), plain),
        (function(b"f", [node("x", attributes=p + q)]), function(b"f", [node("x", attributes=q + p)])),
        (function(b"f", [node("x", attributes=attribute(b"_p", field(3, 1)))]), function(b"f", [x])),
        (function(b"f", rest=attribute(b"_p", field(3, 1))), plain),
        (function(b"f", [node("x", inputs=["^p", "^q"])]), function(b"f", [node("x", inputs=["^q", "^p"])])),
        (function(b"f", [node("x", inputs=["p", "q"])]), function(b"f", [node("x", inputs=["q", "p"])])),
        (function(b"f", [node("x", attributes=field(4, b"/cpu:0"))]), function(b"f", [x])),
        (function(b"f", [node("x", attributes=field(6, field(1, b"z")))]), function(b"f", [x])),
        (function(b"f", [node("x", attributes=field(7, field(1, 1)))]), function(b"f", [x])),
        (function(b"f", rest=field(4, field(1, b"r") + field(2, b"s"))), plain),
        (function(b"f", rest=field(6, field(1, b"k") + field(2, b"v"))), plain),
        (function(b"f", rest=field(7, field(1, 0) + field(2, field(1, b"")))), plain),
        (function(b"f", rest=field(8, field(1, 0) + field(2, 1))), plain),
        (function(b"f", signature=field(6, b"text")), plain), (function(b"f", signature=field(5, b"text")), plain),
        (function(b"f", signature=field(17, 1)), plain), (function(b"f", signature=field(17, 0)), plain),
        (function(b"f", signature=field(8, field(1, 3))), plain), (function(b"f", signature=field(1, b"f")), plain),
    ]
    gradient = lambda name, of: field(2, field(1, name) + field(2, of))  # noqa: E731
    gradients = [
        gradient(b"f", b"g"), gradient(b"f", b"g") * 2, gradient(b"f", b"g") + gradient(b"f", b"f"), gradient(b"z", b"x") + gradient(b"z", b"y"),
        gradient(b"f", b"") + gradient(b"f", b"g"), field(2, b"") + field(2, field(2, b"x")), field(3, field(1, b"x") + field(2, b"NoOp")) * 2,
    ]
    twice = attribute(b"p", field(3, 1))
    for first in ([x, x], [node("x", attributes=twice), x], [x, node("x", attributes=twice)], [x]):
        for second in ([x, x], [node("x", attributes=twice), x], [x]):
            pairs.append((function(b"f", first), function(b"f", second)))
    for producer in (7, 8, cases.consumer):

        def put(nodes, library):
            cases.file("functions", "graph", ".pb", graph(nodes, version_def(producer), library))

        for one, other in pairs:
            for nodes in (alone, [node("a", "Old")], [node("a"), node("a")]):
                put(nodes, field(1, one) + field(1, other))
        cases.file("functions", "graph", ".pb", graph(alone, version_def(producer), field(1, plain)) + field(2, field(1, function(b"f", [x]))))
        for library in gradients:
            put(alone, field(1, plain) + field(1, function(b"g")) + library)
            put(alone, library + field(1, plain) + field(1, function(b"f", [x])))
        for version in (0, 1, producer - 1, producer, producer + 1, -1, 2**31 - 1):
            deprecated = field(1, function(b"f", signature=field(8, field(1, version) + field(2, b"because"))))
            put(call, deprecated)
            put(alone, deprecated)
            put([node("first", "Old"), *call], deprecated)
        put(call, field(1, function(b"f", signature=field(8, b""))))
        put(call, field(1, function(b"f", [node("i", "g")])) + field(1, function(b"g", [node("o", "Old")])))


def nodes(cases):
    """Adds nodes colocated with missing nodes, unusual inputs and names, and loops without an entry."""
    rng = cases.rng

    def put(family, nodes, producer):
        cases.file(family, "graph", ".pb", graph(nodes, version_def(producer)))

    def beside(*names):
        return attribute(b"_class", field(1, b"".join(field(2, name.encode()) for name in names)))

    lost = beside("loc:@nothing")
    list_of = lambda name: field(2, field(1, field(2, name)))  # noqa: E731
    for producer in (7, cases.consumer):
        for target in ["a", "b", "nothing", "", "a:0", "^a", "\u00e9", "_SOURCE"]:
            placed = beside(f"loc:@{target}")
            for order in ([node("a"), node("b", attributes=placed)], [node("b", attributes=placed), node("a")]):
                put("beside", order, producer)
                put("beside", [node("o", "Old"), *order], producer)
                put("beside", [*order, node("o", "Old")], producer)
        for placed in [
            beside("nothing"), beside("LOC:@nothing"), beside("loc:@b", "loc:@nothing"), lost + beside("loc:@b"), beside("loc:@b") + lost,
            attribute(b"_class", field(2, b"loc:@nothing")), field(5, field(1, b"_class")), attribute(b"_class", field(10, b"")),
            field(5, list_of(b"loc:@nothing") + field(1, b"_class")), field(5, field(1, b"x") + field(1, b"_class") + list_of(b"loc:@nothing")),
            field(5, field(1, b"_class") + list_of(b"loc:@nothing") + field(2, field(3, 1))),
            field(5, field(1, b"_class") + list_of(b"loc:@b") + list_of(b"loc:@nothing")), attribute(b"other", field(1, field(2, b"loc:@nothing"))),
        ]:
            put("beside", [node("b", attributes=placed)], producer)
        circle = [node("x", inputs=["^y"]), node("y", inputs=["^x"])]
        put("beside", [*circle, node("b", attributes=lost)], producer)
        put("beside", [circle[0], node("y", inputs=["^x"], attributes=lost)], producer)
        put("beside", [node("x", inputs=["^z"]), node("b", attributes=lost)], producer)
        for text in ["a:4294967296", "a:18446744073709551615", "a:18446744073709551616", "^a:99999999999999999999", "a:99999999999999999999", "a:0:0"]:
            put("inputs", [node("a"), node("b", inputs=[text])], producer)
            put("inputs", [node("b", inputs=[text]), node("a")], producer)
        for name in ["x" * 70000, "a/" * 100 + "b", "a>b/c>d", "a/_b", "a.b>.c", "a>", "a/>b"]:
            for order in ([node(name)], [node("z", inputs=["^" + name]), node(name)], [node(name), node(name)]):
                put("names", order, producer)
        for extra in [field(1, b"_bad"), field(1, b""), field(2, b""), field(2, b"Old"), field(1, b"b")]:
            put("names", [node("a") + extra, node("b")], producer)
            put("names", [extra + node("a"), node("b")], producer)
    for _ in range(100 * cases.scale):
        count = rng.randrange(2, 8)
        made = []
        for number in range(count):
            inputs = [f"^n{other}" for other in range(count) if other != number and rng.random() < 0.08]
            names = [rng.choice([f"loc:@n{rng.randrange(count)}"] * 5 + ["loc:@zz", "x"]) for _ in range(rng.choice([0, 1, 1, 2]))]
            made.append(node(f"n{number}", rng.choice(["NoOp", "NoOp", "Old"]), inputs, beside(*names) if names else b""))
        put("beside", made, rng.choice([7, 8]))
    t, two = type_attribute("T", 1), attribute(b"N", field(3, 2))
    for _ in range(150 * cases.scale):
        count = rng.randrange(2, 9)
        names = [f"n{number}" for number in range(count)] + ["p"]
        made = [node("p", "Placeholder", [], type_attribute("dtype", 1))]
        for number in range(count):
            operation = rng.choice(["Merge", "Merge", "RefMerge", "NextIteration", "RefNextIteration", "Identity", "NoOp", "Old"])
            data = {"Merge": 2, "RefMerge": 2, "NextIteration": 1, "RefNextIteration": 1, "Identity": 1}.get(operation, 0)
            inputs = [rng.choice(names) for _ in range(data)] + ["^" + rng.choice(names) for _ in range(rng.choice([0, 0, 0, 1, 2]))]
            made.append(node(f"n{number}", operation, inputs, (t if data else b"") + (two if data == 2 else b"")))
        if rng.random() < 0.7:
            rng.shuffle(made)
        put("loops", made, rng.choice([7, 8]))


# ---- Functions that are called ---------------------------------------------------------------------------------------------------


def argument(name, number=None, **more):
    """Encodes an argument or result of a function; `more` names attributes."""
    places = {"type_attr": 4, "number_attr": 5, "type_list_attr": 6}
    out = field(1, name.encode()) + (b"" if number is None else field(3, number))
    return out + b"".join(field(places[key], value.encode()) for key, value in more.items())


def body(name="f", nodes=(), arguments=(), results=(), returns=(), extra=b"", rest=b""):
    """Encodes a function of the library; `extra` belongs to its signature."""
    signature = b"".join(field(2, each) for each in arguments) + b"".join(field(3, each) for each in results) + extra
    rest = b"".join(field(4, field(1, key.encode()) + field(2, value.encode())) for key, value in returns) + rest
    return field(1, function(name.encode(), nodes, signature, rest))


def flag(value):
    return attribute(b"_disable_call_shape_inference", value)


def partitioned(name, called, inputs=(), outputs=0, more=b"", operation="PartitionedCall"):
    floats = lambda count: field(2, field(1, b"".join(field(6, 1) for _ in range(count))))  # noqa: E731
    attributes = field(5, field(1, b"Tin") + floats(sum(text[:1] != "^" for text in inputs))) + field(5, field(1, b"Tout") + floats(outputs))
    return node(name, operation, inputs, attributes + attribute(b"f", field(10, field(1, called.encode()))) + more)


def called_bodies(cases):
    """Adds functions that cannot be instantiated for one reason each, called and not called. Cases that only the registry decides are marked."""
    t = type_attribute("T", 1)
    two = t + attribute(b"N", field(3, 2))
    p = lambda name="p": node(name, "Placeholder", [], type_attribute("dtype", 1))  # noqa: E731
    x, y, call = argument("x", 1), argument("y", 1), node("c", "f")
    same = node("i", "Identity", ["x"], t)
    circle = [node("a", inputs=["^b"]), node("b", inputs=["^a"])]
    bad, old = body(nodes=circle), lambda inputs=(): node("o", "Old", inputs)
    beside = lambda name: field(5, field(1, b"_class") + field(2, field(1, field(2, b"loc:@" + name))))  # noqa: E731

    def put(library, nodes=(call,), reason="structure", producer=cases.consumer):
        cases.file("called_bodies", "graph", ".pb", graph(nodes, version_def(producer), library), reason=reason)

    def one(nodes=(same,), returns=(("y", "i:output:0"),), arguments=(x,), results=(y,), reason="structure", **more):
        library = body("f", nodes, arguments, results, returns, **more)
        put(library, [p(), node("c", "f", ["p"])], reason)
        put(library, [p(), partitioned("c", "f", ["p"], len(results))], reason)
        put(library + body("h", [p("q"), node("n", "f", ["q:output:0"])]), [node("c", "h")], reason)
        put(library + body("h", [p("q"), partitioned("n", "f", ["q:output:0"], len(results))]), [node("c", "h")], reason)
        put(library + body("h", [p("q"), node("n", "f", ["q:output:0"])]), [node("c")])

    # Names, and two equal names.
    for nodes in ([node("a"), node("a")], [node("a"), p("a")], [p("a"), p("a")], [node("x")], [p("x")], [node("y_RetVal")], [node("y")]):
        one([same, *nodes])
    one([node("i", "Identity", ["y_RetVal"], t)], arguments=[argument("y_RetVal", 1)])
    one([node("i", "Identity", ["y"], t)], arguments=[argument("y", 1)])
    one(results=[y, y])
    put(body("f", [same], [x, x], [y], [("y", "x")]), [p(), node("c", "f", ["p", "p"])])
    for name in ["", "_x", "-x", "a:0", "a b", "\u00e9", "_SOURCE", "a>", "a>b", "a>_b", "_>a", "_-a", "_>_a", "x" * 300, "/a", ".", "a//b", "^a", "_", "__a", ">a"]:
        put(body("f", [node(name)]))
        one([node("i", "Identity", [name], t)], arguments=[argument(name, 1)], reason="structure")
        one(results=[argument(name, 1)], returns=[(name, "i:output:0")])
    # Cycles and loops.
    loop = lambda inputs: [p("q"), node("m", "Merge", inputs, two), node("n", "NextIteration", ["m:output:0"], t)]  # noqa: E731
    for nodes in (
        circle, [node("a", inputs=["^a"])], [node("a", "Identity", ["b:output:0"], t), node("b", "Identity", ["a:output:0"], t)],
        loop(["q:output:0", "n:output:0"]), loop(["n:output:0", "n:output:0"]), loop(["q:output:0", "n:output:0", "^n"]), loop(["q:output:0", "q:output:0", "^n"]),
        loop(["n:output:0", "q:output:0", "^q"]), [*loop(["q:output:0", "n:output:0"]), node("z", inputs=["^n"])],
    ):
        put(body("f", nodes))
        one([same, *nodes])
    one([node("n", inputs=["^i"]), node("i", "Identity", ["n", "x"], t)])
    one([same, *loop(["x", "n:output:0"])])
    one([same, *loop(["n:output:0", "x", "^x"])])
    # Names in inputs.
    unknown = "zz zz:output:0 x x:0 x:1 x:0:0 x: x:00 x:output:0 :0 j:0 j:output j:output:0 j:00 n:0".split()
    for text in ["", *unknown]:
        one([node("i", "Identity", [text], t), node("j", "Identity", ["x"], t), node("n")])
    for text in ["j", "j:output:1", "j:nope:0", "n", "^x", "^n"]:
        one([node("i", "Identity", [text], t), node("j", "Identity", ["x"], t), node("n")], reason="registry")
    for text in "^zz ^x ^x:0 ^i ^i:output ^i:output:0 ^ ^n ^n:0 ^n: ^i: ^y ^y_RetVal ^^n ^f ^c ^p".split():
        one([same, node("n"), node("k", inputs=[text])])
    for text in ["^i:nope", "n", "x", "i:output:0"]:
        one([same, node("n"), node("k", inputs=[text])], reason="registry")
    one([node("n"), node("i", "Identity", ["^n", "x"], t)])
    one([node("n"), node("i", "Identity", ["x", "^n", "x"], t)])
    one([node("i-2", "Identity", ["x"], t), node("k", inputs=["^i"])], [("y", "i-2:output:0")])
    one([same, node("n"), node("k", inputs=["^n", "^n"])])
    one([same, node("a", "")])
    one([same, node("a", "Nope")], reason="registry")
    one([same, node("a", "Old")])
    one([same, node("a", attributes=beside(b"zz"))])
    # Returned values.
    for text in "x x:0 x:1 i:output:0 i:output i i:0 zz zz:output:0 ^x n y".split() + [""]:
        one([same, node("n")], [("y", text)])
    for returns in ([], [("z", "x")], [("y", "x"), ("z", "zz")], [("y", "x"), ("y", "zz")], [("y", "zz"), ("y", "x")]):
        one(returns=returns)
    one(returns=[("y", "x")], results=[argument("y", 3)])
    one(returns=[("y", "i:output:1")], reason="registry")
    one(returns=[("y", "x")], results=[argument("y")])
    one([], returns=[("y", "x")], arguments=[argument("x")], results=[argument("y")])
    one([], [], [argument("x")], [])
    # Arguments and results that depend on the call.
    number, kind = field(4, field(1, b"N") + field(2, b"int")), field(4, field(1, b"T") + field(2, b"type"))
    n = lambda count: attribute(b"N", field(3, count))  # noqa: E731
    for text in ("x", "x:0", "x:1", "x:output", "x:01"):
        put(body("f", [node("i", "Identity", [text], t)] if text != "x" else [], [argument("x", 1, number_attr="N")], extra=number), [p(), node("c", "f", ["p", "p"], n(2))])
        put(body("f", [node("k", inputs=["^" + text])], [argument("x", 1, number_attr="N")], extra=number), [p(), node("c", "f", ["p", "p"], n(2))])
    put(body("f", [p("x")], [argument("x", 1, number_attr="N")], extra=number), [p(), node("c", "f", ["p", "p"], n(2))])
    bound = field(5, field(1, b"T") + field(2, field(9, b"T")))
    for attributes in (t, b""):
        put(body("f", [node("i", "Identity", ["x"], bound)], [argument("x", type_attr="T")], [argument("y", type_attr="T")], [("y", "i:output:0")], kind),
            [p(), node("c", "f", ["p"], attributes)], "registry")
    put(body("f", [], [argument("x", 3)], [argument("y", type_attr="T")], [("y", "x")], kind), [node("p", "Placeholder", [], type_attribute("dtype", 3)), node("c", "f", ["p"], type_attribute("T", 3))])
    # Numbers of arguments and results.
    for count in (0, 1, 2):
        for results in (0, 1, 2):
            put(body("f", [], [argument(f"x{k}", 1) for k in range(count)]), [p(), partitioned("c", "f", ["p", "^p"], results)])
            library = body("f", [p("q")], [], [argument(f"y{k}", 1) for k in range(count)], [(f"y{k}", "q:output:0") for k in range(count)])
            put(library, [partitioned("c", "f", [], results)])
            put(library + body("h", [partitioned("n", "f", [], results)]), [node("c", "h")])
    # Operations that call a function, and operations that do not.
    call_of = lambda operation: partitioned("c", "f", operation=operation)  # noqa: E731
    for nodes in (
        [call_of("PartitionedCall")], [call_of("StatefulPartitionedCall")], [node("a")], [node("c", "NoOp", [], attribute(b"f", field(10, field(1, b"f"))))],
        [p(), node("c", "StatelessWhile", ["p"], field(5, field(1, b"T") + field(2, field(1, field(6, 1)))) + attribute(b"cond", field(10, field(1, b"f"))) + attribute(b"body", field(10, field(1, b"f"))))],
        [partitioned("c", "nothing")], [partitioned("c", "g", more=attribute(b"f", field(10, field(1, b"f"))))], [partitioned("c", "f", more=attribute(b"f", field(10, field(1, b"g"))))],
        [field(2, b"f") + node("c")], [node("c") + field(2, b"f")], [node("c", "h")], [node("c", "g")],
    ):
        put(bad + body("g") + body("h", [node("n", "NoOp"), node("m", "f", ["^n"])]), nodes)
    merged = [field(10, field(1, b"g")) + field(10, field(1, b"f")), field(10, field(1, b"f")) + field(10, b""), field(10, field(1, b"f")) + field(2, b"") + field(10, b""), field(2, b"") + field(10, field(1, b"f"))]
    for value in merged:
        put(bad + body("g"), [partitioned("c", "g", more=attribute(b"f", value))])
    truth = field(5, 1)
    for value in [truth, field(5, 0), field(3, 1), field(2, b"x"), field(9, b"P"), field(5, 2), truth + field(3, 1), field(3, 1) + truth, truth + field(1, b""), truth + field(5, 0),
                  truth + field(7, b""), truth + field(10, b""), truth + field(2, b""), varint(5 << 3 | 5) + bytes([1, 0, 0, 0])]:
        put(bad, [node("c", "f", [], flag(value))])
        put(bad, [partitioned("c", "f", more=flag(value))])
        if value != field(9, b"P"):
            put(bad + body("h", [node("n", "f", [], flag(value))]), [node("c", "h")])
    put(bad, [node("c", "f", [], flag(truth) + flag(field(5, 0)))])
    put(bad, [node("c", "f", [], flag(field(5, 0)) + flag(truth))])
    put(bad, [node("c", "f", [], field(5, field(2, truth) + field(1, b"_disable_call_shape_inference")))])
    put(body(nodes=circle, rest=flag(truth)))
    for untyped in (body(results=[argument("y")], nodes=circle), body(arguments=[argument("x")], nodes=circle)):
        put(untyped, [p(), node("c", "f", ["p"], flag(truth))])
        put(untyped + body("h", [p("q"), node("n", "f", ["q:output:0"], flag(truth))]), [node("c", "h")], "registry")
    put(body(results=[argument("y")], nodes=circle) + body("h", [node("n", "f", [], flag(truth))]), [node("c", "h")])
    # Functions that call others, and themselves.
    deep = lambda count: b"".join(body(f"f{k}" if k else "f", [node("n", f"f{k + 1}")]) for k in range(count))  # noqa: E731
    for count in (1, 2, 50):
        put(deep(count) + body(f"f{count}"))
        put(deep(count) + body(f"f{count}", circle))
        put(body(f"f{count}", circle) + deep(count))
        put(deep(count) + body(f"f{count}", [node("n", "Nope")]), reason="registry")
    itself, other = body(nodes=[node("n", "f")]), body(nodes=[node("n", "g")]) + body("g", [node("n", "f")])
    for library in (itself, other, body(nodes=[partitioned("n", "f")]), body(nodes=[node("n", "g")]) + body("g", [node("n", "g")])):
        put(library)
        put(library, [node("a")])
    put(itself, [old(), call])
    put(itself, [call, old()])
    put(body(nodes=[node("n", "f"), *circle]))
    put(body(nodes=[node("n", "f", [], flag(truth))]))
    # The fault that the importer finds first.
    wait, circled = node("c", "f", ["^o"]), [node("q", inputs=["^r"]), node("r", inputs=["^q"])]
    for library in (bad, other, bad + body("g", circle) + field(2, field(1, b"f") + field(2, b"g")), bad + bad, bad + body(nodes=[node("z")])):
        for nodes in (
            [old(), call], [call, old()], [wait, old()], [old(["^c"]), call], [*circled, call], [node("c", "f", ["^r"]), node("r", inputs=["^c"])], [*circled, node("c", "f", ["^q"])],
            [call, node("z", inputs=["^nope"])], [call, call], [call, node("_z")], [node("z", attributes=beside(b"nope")), call], [call, node("z", attributes=beside(b"nope"))],
            [node("c", "f", attributes=beside(b"nope"))], [node("d", "f", ["^c"]), node("c"), old(["^d"])], [call, node("d", "f")], [node("a", "NoOp", ["^c"]), call, node("b", "NoOp", ["^a"])],
        ):
            put(library, nodes)
        put(library, [old(), call], producer=7)
        put(library, [call], producer=-5)
    for version in (5, cases.consumer + 1):
        put(body(nodes=circle, extra=field(8, field(1, version) + field(2, b"b"))))
        put(body(results=[argument("y")], extra=field(8, field(1, version) + field(2, b"b"))))
    put(bad, [node("u", "Nope"), call], "registry")
    put(bad, [call, node("u", "Nope")])
    put(body("a b:^", circle), [node("a", "a b:^")])
    cases.file("called_bodies", "graph", ".pb", field(2, bad) + graph([call], version_def(cases.consumer)), reason="structure")
    cases.file("called_bodies", "graph", ".pb", field(2, body("z")) + graph([call], version_def(cases.consumer)) + field(2, bad), reason="structure")
    cases.file("called_bodies", "graph", ".pb", field(2, field(1, field(4, field(2, b"x") + field(1, b"y")) + field(1, field(1, b"f") + field(2, x)) + field(1, field(3, y)))) + graph([p(), node("c", "f", ["p"])], version_def(cases.consumer)), reason="structure")
    for library in (bad, body()):
        for nodes in ([call], [partitioned("c", "f")], [node("a")]):
            cases.file("called_bodies", "meta", ".meta", field(2, graph(nodes, version_def(cases.consumer), library)), reason="structure")
    text = "node { name: 'c' op: 'f' } library { function { signature { name: 'f' } node_def { name: 'a' op: 'NoOp' input: '^%s' } } } versions { producer: 100 }"
    for name in "ab":
        cases.file("called_bodies", "text", ".pbtxt", (text % name).encode(), reason="structure")
    text = "node { name: 'c' op: 'PartitionedCall' attr { key: 'Tin' value { list { } } } attr { key: 'Tout' value { list { } } } attr { key: 'f' value { func { name: 'f' } } } attr { key: '_disable_call_shape_inference' value { b: %s } } } library { function { signature { name: 'f' } node_def { name: 'a' op: 'NoOp' input: '^a' } } }"
    for value in ("true", "false"):
        cases.file("called_bodies", "text", ".pbtxt", (text % value).encode(), reason="structure")


def random_calls(cases):
    """Adds graphs with nested calls of functions with a few faults each, none of which depends on the registry."""
    rng = cases.rng
    t = type_attribute("T", 1)
    two = t + attribute(b"N", field(3, 2))
    placeholder = type_attribute("dtype", 1)

    def rarely(chance):
        return rng.random() < chance

    def make(number, shapes, wrong):
        """Returns a function that may call others; `shapes` has their numbers of arguments and results."""
        arguments, results = shapes[number]
        count = rng.randrange(0, 7)
        operations = [rng.choice(["NoOp", "Identity", "Identity", "Merge", "NextIteration", "Placeholder", "call", "partitioned", "Old"]) for _ in range(count)]
        names = [f"n{k}" for k in range(count)]
        called = [rng.choice(range(len(shapes)) if rarely(0.02) else range(number + 1, len(shapes)) or [None]) for _ in range(count)]
        outputs = [f"x{k}" + rng.choice(["", ":0"]) for k in range(arguments)]
        before = [list(outputs)]
        for k, operation in enumerate(operations):
            needed = {"Identity": 1, "NextIteration": 1}.get(operation, 0)
            if operation in ("call", "partitioned"):
                needed = 1 if called[k] is None else shapes[called[k]][0]
            if (needed and not outputs) or (operation in ("call", "partitioned") and called[k] is None):
                operations[k] = operation = "NoOp"
            made = {"Identity": ["output"], "Merge": ["output"], "NextIteration": ["output"], "Placeholder": ["output"]}.get(operation, [])
            if operation == "call":
                made = [f"y{each}" for each in range(shapes[called[k]][1])]
            outputs += [f"{names[k]}:{each}:0" for each in made]
            if operation == "partitioned":
                outputs += [f"{names[k]}:output:{each}" for each in range(shapes[called[k]][1])]
            before.append(list(outputs))
        nodes = []
        for k, operation in enumerate(operations):
            needed = {"Identity": 1, "Merge": 2, "NextIteration": 1}.get(operation, 0)
            if operation in ("call", "partitioned"):
                needed = shapes[called[k]][0]

            def source():
                if rarely(wrong):
                    return rng.choice(["zz", "zz:output:0", "x0:1", "x9", ":0", "x0:output:0"])
                pool = outputs if operation == "Merge" or rarely(wrong) else before[k]
                return rng.choice(pool) if pool else "zz"

            inputs = [source() for _ in range(needed)]
            for _ in range(rng.choice([0, 0, 0, 1, 2])):
                pool = [f"x{each}" for each in range(arguments)] + (names if rarely(wrong) else names[:k])
                inputs.append("^" + ("zz" if rarely(wrong) or not pool else rng.choice(pool)))
            if rarely(wrong):
                inputs.reverse()
            name = rng.choice([f"n{rng.randrange(count)}", "x0", "y0_RetVal", "_", "a b", ""]) if rarely(wrong) else names[k]
            if operation == "call":
                nodes.append(node(name, f"f{called[k]}", inputs, flag(field(5, 1)) if rarely(0.1) else b""))
            elif operation == "partitioned":
                nodes.append(partitioned(name, f"f{called[k]}", inputs, max(0, shapes[called[k]][1] - rarely(wrong)), flag(field(5, 1)) if rarely(0.1) else b""))
            else:
                nodes.append(node(name, operation, inputs, {"Merge": two, "Placeholder": placeholder, "NoOp": b"", "Old": b""}.get(operation, t)))
        order = list(range(count))
        if rarely(0.3):
            rng.shuffle(order)
        returns = []
        for k in range(results):
            if not rarely(wrong):
                returns.append((f"y{k}", rng.choice(["zz", "^x0", "n0", "x0:1"]) if rarely(wrong) or not outputs else rng.choice(outputs)))
        return body(f"f{number}", [nodes[k] for k in order], [argument(f"x{k}", 1) for k in range(arguments)], [argument(f"y{k}", 1) for k in range(results)], returns)

    for _ in range(250 * cases.scale):
        wrong = rng.choice([0, 0, 0.01, 0.04])
        shapes = [(rng.randrange(3), rng.randrange(3)) for _ in range(rng.randrange(1, 5))]
        library = [make(number, shapes, wrong) for number in range(len(shapes))]
        if rarely(0.1):
            library.append(rng.choice(library))
        if rarely(0.05):
            library.append(make(rng.randrange(len(shapes)), shapes, 0))
        rng.shuffle(library)
        if rarely(0.2):
            library.append(field(2, field(1, b"f0") + field(2, rng.choice([b"f0", b"f1", b"zz"]))) * rng.choice([1, 2]))
        nodes, outputs = [node("p", "Placeholder", [], placeholder)], ["p"]
        names = [f"m{k}" for k in range(rng.randrange(1, 7))]
        for k, name in enumerate(names):
            operation = rng.choice(["call", "call", "partitioned", "NoOp", "Identity", "Old", "Merge", "NextIteration"])
            number = rng.randrange(len(shapes))
            needed = {"Identity": 1, "NextIteration": 1, "Merge": 2}.get(operation, 0)
            if operation in ("call", "partitioned"):
                needed = shapes[number][0]
            inputs = ["zz" if rarely(wrong) else rng.choice(outputs) for _ in range(needed)]
            if operation == "partitioned" and rarely(wrong):
                inputs = inputs[1:]
            inputs += ["^" + rng.choice(names if rarely(0.05) else (names[:k] or ["p"])) for _ in range(rng.choice([0, 0, 1]))]
            more = flag(field(5, 1)) if rarely(0.1) else b""
            if rarely(0.1):
                more += field(5, field(1, b"_class") + field(2, field(1, field(2, b"loc:@" + rng.choice([*names, "zz" if rarely(0.2) else "p"]).encode()))))
            if operation == "call":
                nodes.append(node(name, f"f{number}", inputs, more))
                outputs += [name] if shapes[number][1] else []
            elif operation == "partitioned":
                nodes.append(partitioned(name, f"f{number}", inputs, shapes[number][1], more))
                outputs += [name] if shapes[number][1] else []
            else:
                nodes.append(node(name, operation, inputs, {"Merge": two, "NoOp": b"", "Old": b""}.get(operation, t) + more))
                outputs += [name] if needed else []
        if rarely(0.4):
            rng.shuffle(nodes)
        versions = version_def(rng.choice([7, 8, cases.consumer, cases.consumer, cases.consumer + 30]), rng.choice([None, None, None, None, cases.consumer + 1]))
        cases.file("random_calls", "graph", ".pb", graph(nodes, versions, b"".join(library)), reason="structure")


# ---- Indices ---------------------------------------------------------------------------------------------------------------------


def make_checkpoints(tf, directory):
    """Saves checkpoints with strings of every length, tensors in pieces and in several shards."""
    directory.mkdir()

    def save(name, tensors, slices=None):
        names = [each for each, _ in tensors]
        values = [tensor for _, tensor in tensors]
        tf.raw_ops.SaveV2(prefix=str(directory / name), tensor_names=names, shape_and_slices=slices or [""] * len(names), tensors=values)
        meant = sorted({each: tensor.dtype.as_datatype_enum for each, tensor in tensors}.items())
        (directory / f"{name}.expected").write_text(json.dumps(meant))

    types = ["float32", "float64", "int32", "uint8", "int16", "int8", "complex64", "int64", "bool", "bfloat16", "uint16", "complex128", "half", "uint32", "uint64"]
    save("types", [(name, tf.cast(tf.constant([1, 0, 3]), getattr(tf, name))) for name in types])
    strings = {"a": [b"", b"x", b"y" * 127, b"z" * 128, b"w" * 16384], "b": b"scalar", "d": [[b"1", b"22"], [b"333", b""]], "e": [b"\0\xff"] * 200, "f": b""}
    save("strings", [(name, tf.constant(value)) for name, value in strings.items()] + [("c", tf.constant([], tf.string))])
    whole = tf.reshape(tf.range(60.0), (6, 5, 2))
    pieces = {"0,2:0,3:-": whole[:2, :3], "0,2:3,2:-": whole[:2, 3:], "2,4:-:0,1": whole[2:, :, :1], "2,4:-:1,1": whole[2:, :, 1:]}
    texts = [f"6 5 2 {text}" for text in pieces]
    save("pieces", [("m", piece) for piece in pieces.values()] + [("z", tf.constant([7]))], [*texts, ""])
    for number, (text, piece) in enumerate(zip(texts, pieces.values())):
        save(f"part{number}", [("m", piece), (f"only{number}", tf.fill([number], number))], [text, ""])
    tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=[str(directory / f"part{number}") for number in range(4)],
                                  destination_prefix=str(directory / "shards"), delete_old_dirs=False)
    (directory / "shards.expected").write_text(json.dumps([["m", 1]] + [[f"only{number}", 3] for number in range(4)]))


def snappy(data, rng):
    """Compresses data, with copies of every form for repeated bytes, and literals in between."""
    out, at = varint(len(data)), 0
    while at < len(data):
        if at >= 4 and rng.random() < 0.5:
            offset, length = rng.randrange(1, min(at, 2000) + 1), 0
            while length < 11 and at + length < len(data) and data[at + length] == data[at + length - offset]:
                length += 1
            if length >= 4:
                short = bytes([length - 4 << 2 | offset >> 8 << 5 | 1, offset & 255])
                out += rng.choice([short, bytes([length - 1 << 2 | 2]) + struct.pack("<H", offset), bytes([length - 1 << 2 | 3]) + struct.pack("<I", offset)])
                at += length
                continue
        length = min(len(data) - at, rng.randrange(1, 60))
        out += bytes([length - 1 << 2]) + data[at : at + length]
        at += length
    return out


def table(entries, rng, block_bytes, interval, compressed=0.0, change=None):
    """Returns a table in blocks of a size; `change` may replace a block: its kind, bytes, bytes of the entries, restarts."""
    out = b""

    def put(what, entries, interval):
        nonlocal out
        content, restarts, last = b"", [], b""
        for number, (key, value) in enumerate(entries):
            shared = 0
            if number % interval == 0:
                restarts.append(len(content))
            else:
                shared = len(os.path.commonprefix([key, last]))
            content += varint(shared) + varint(len(key) - shared) + varint(len(value)) + key[shared:] + value
            last = key
        restarts = restarts or [0]
        body, kind = content + b"".join(struct.pack("<I", at) for at in restarts) + struct.pack("<I", len(restarts)), 0
        if change:
            body, kind = change(what, body, content, restarts)
        if kind == 0 and rng.random() < compressed:
            body, kind = snappy(body, rng), 1
        handle = varint(len(out)) + varint(len(body))
        out += body + bytes([kind]) + struct.pack("<I", masked(body + bytes([kind])))
        return handle

    index, group, size = [], [], 0
    for number, entry in enumerate(entries):
        group.append(entry)
        size += len(entry[0]) + len(entry[1])
        if size >= block_bytes or number + 1 == len(entries):
            index.append((group[-1][0], put("data", group, interval)))
            group, size = [], 0
    footer = put("meta", [], 1) + put("index", index, 1)
    return out + footer + bytes(40 - len(footer)) + bytes.fromhex("57fb808b247547db")


def indices(cases):
    """Adds tables in blocks of every size, compressed, or damaged with correct checksums; entries with an added or changed field."""
    rng, source = cases.rng, cases.made / "more"
    extra = [field(3, number) for number in (0, 1, -1, 2**31, 2**32)] + [field(4, number) for number in (0, 1, -1, 2**62, 2**63 - 1)]
    extra += [field(5, number) for number in (0, -1, 3, 5)] + [field(1, number) for number in (0, 9, 34, 101, 1000, -1)]
    extra += [field(2, field(2, content)) for content in (b"", field(1, -1), field(1, -2), field(1, 2**62), field(1, 0), field(2, b"\xff"), field(2, b"n"))]
    extra += [field(2, field(3, 0)), field(2, field(3, 1)), field(7, b""), field(7, field(1, b"")), field(7, field(1, field(1, 1))), field(99, b"x")]
    extra += [varint(6 << 3 | 5) + bytes(4), varint(6 << 3) + varint(1), varint(99 << 3 | 3) + varint(99 << 3 | 4), b"\x00", b"\xff"]
    for name in ("types", "strings", "pieces", "shards"):
        whole = S.entries_of((source / f"{name}.index").read_bytes())

        def put(family, index, how):
            folder = cases.directory / family / f"{len(cases.all):05}"
            folder.mkdir(parents=True)
            for file in [*source.glob(f"{name}.data*"), source / f"{name}.expected"]:
                shutil.copy(file, folder / file.name)
            (folder / f"{name}.index").write_bytes(index)
            cases.add(family, how, folder / name)

        for _ in range(8 * cases.scale):
            data = table(whole, rng, rng.choice([1, 30, 200, 100000]), rng.choice([1, 2, 3, 16, 1000]), rng.choice([0, 0.5, 1]))
            put("tables", data, "restore")
        for _ in range(20 * cases.scale):
            kind, which, left = rng.randrange(9), rng.choice(["data", "data", "index", "meta"]), rng.randrange(3)

            def change(what, body, content, restarts):
                nonlocal left
                left -= what == which
                if what != which or left != -1:
                    return body, 0
                compressed, count = snappy(body, rng), len(restarts)
                anywhere = b"".join(struct.pack("<I", rng.randrange(len(content) + 10)) for _ in restarts)
                return [
                    (body, rng.choice([2, 3, 255])), (compressed[:-1], 1), (varint(len(body) + 1) + compressed[len(varint(len(body))) :], 1), (body, 1),
                    (content + bytes(4), 0), (content + struct.pack("<I", rng.choice([1000, 2**31, 2**32 - 1])), 0),
                    (content + anywhere + struct.pack("<I", count), 0), (body[: rng.randrange(4)], 0), (b"\x05" + body[1:], 0),
                ][kind]

            put("tables", table(whole, rng, rng.choice([1, 60, 300, 100000]), rng.choice([1, 2, 16]), 0, change), rng.choice(["open", "restore"]))
        for _ in range(30 * cases.scale):
            entries = list(whole)
            at = rng.randrange(1, len(entries))
            key, value = entries[at]
            kind = rng.randrange(5)
            if kind <= 2:
                value += rng.choice(extra)
            elif kind == 3:
                value = rng.choice(extra) + value
            else:
                value = entries[rng.randrange(1, len(entries))][1]
            entries[at] = (key, value)
            put("entries", S.table(entries), "restore")
        for _ in range(10 * cases.scale):
            header = whole[0][1] + rng.choice([field(1, number) for number in (0, 1, 2, 5, 99999, 2**31 - 1, -1, 2**32 + 1)] + [
                field(2, 2), field(2, -1), field(2, 2**32), field(3, b""), field(3, field(2, 1)), field(3, field(2, 2)), field(9, 3), b"\x0b\x0c", b"\x0b", b"\x00"])
            put("headers", S.table([(b"", header), *whole[1:]]), rng.choice(["open", "restore"]))
        again = [(b"", rng.choice([whole[0][1], field(1, 2), field(1, 1) + field(3, version_def(1, 99)), b"", whole[1][1]])) for _ in range(2)]
        for entries in ([again[0], *whole[1:]], [whole[0], again[0], *whole[1:]], [whole[0], *again, *whole[1:]], [whole[0], *whole[1:], again[0]], [whole[0], whole[0], *whole[1:]]):
            for how in ("open", "restore"):
                put("headers_again", S.table(entries), how)


def model_contents(cases):
    """Adds models whose meta graphs have further contents, or several with the same tags."""
    tags = {"model-two": [["serve"], ["train"]], "model-constant": [["serve"]], "model-tf2": [["serve"]]}
    describe = lambda *names: field(1, b"".join(field(4, name) for name in names))  # noqa: E731
    empty = lambda least: field(2, describe(b"serve") + field(2, graph(versions=version_def(10, least))))  # noqa: E731
    count = 0

    def put(name, wanted, change):
        nonlocal count
        count += 1
        path = cases.directory / "models_more" / f"{count:05}-{name}"
        path.parent.mkdir(exist_ok=True)
        shutil.copytree(cases.made / name, path)
        change(path)
        cases.add("models_more", "model", path, tags=wanted)

    for name, choices in tags.items():
        for wanted in choices:
            for extra in [
                field(1, field(4, b"serve")), field(1, field(4, b"x")), field(1, field(4, b"")), field(1, field(4, b"\xff")), field(1, field(5, b"9.9.9")),
                field(4, field(1, b"x") + field(2, field(2, field(1, b"\xff")))), field(5, field(1, b"k") + field(2, b"")),
                field(7, b"\xff"), field(2, field(4, field(3, varint(cases.consumer)))), field(2, field(1, node("new"))), field(2, field(1, node("_bad"))),
                field(2, field(1, node("q1", "NoOp", ["^q2"])) + field(1, node("q2", "NoOp", ["^q1"]))), field(2, field(5, b"\xff")), field(99, b"z"), b"\x00",
            ]:
                put(name, wanted, lambda path: S.change_meta_graphs(path / "saved_model.pb", None, extra))

        def rewrite(make):
            def change(path):
                file = path / "saved_model.pb"
                file.write_bytes(make(file.read_bytes()))

            return change

        put(name, choices[0], rewrite(lambda data: data + empty(99999)))
        put(name, ["serve"], rewrite(lambda data: empty(99999) + data))
        put(name, ["serve"], rewrite(lambda data: empty(1) + empty(99999)))
        put(name, choices[0], rewrite(lambda data: data * 2))
        untagged = field(2, field(2, graph(versions=version_def(10))))
        put(name, ["serve"], rewrite(lambda data: untagged))
        put(name, [], rewrite(lambda data: untagged))


FAMILIES = [odd_texts, messages, functions, nodes, called_bodies, random_calls, indices, model_contents]
