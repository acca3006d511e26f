use proptest::prelude::*;
use serdes_wire::varint;

use super::{
    AttributeReader, AttributeValue, Attributes, ShapeValue, arena::TypeCount, value::Text,
};
use crate::{
    ops::{Element, Registry},
    scan::{self, Piece, Step, Visitor},
    schema::{Field, MessageId, NODE_DEF, TENSORFLOW},
    source::GraphError,
    text,
};

/// A visitor that only reads attributes; if `greedy`, it enters all messages.
#[derive(Default)]
struct NodeVisitor {
    reader: AttributeReader,
    greedy: bool,
}

impl Visitor for NodeVisitor {
    fn enter(&mut self, message: MessageId, field: &'static Field) -> Step {
        let wanted = self.reader.enter(message, field);
        if self.greedy { Step::Into } else { wanted }
    }

    fn leave(&mut self, message: MessageId, field: &'static Field, _at: u64) {
        self.reader.leave(message, field);
    }

    fn integer(&mut self, message: MessageId, field: &'static Field, value: u64) {
        self.reader.integer(message, field, value);
    }

    fn floats(&mut self, message: MessageId, field: &'static Field, count: u64, bytes: &[u8]) {
        self.reader.floats(message, field, count, bytes);
    }

    fn string(&mut self, message: MessageId, field: &'static Field, piece: &[u8], is: Piece) {
        self.reader.string(message, field, piece, is);
    }

    fn long_bytes(&mut self, message: MessageId, field: &'static Field, length: u64) {
        self.reader.long_bytes(message, field, length);
    }

    fn wants_packed(&self, message: MessageId) -> bool {
        self.reader.wants_packed(message)
    }

    fn wants_bytes(&self, message: MessageId, field: &'static Field) -> bool {
        self.reader.wants_bytes(message, field)
    }
}

/// Reads the attributes of a node in its binary form.
pub fn of_bytes(bytes: &[u8]) -> Attributes {
    let mut visitor = NodeVisitor::default();
    scan::scan(&bytes, TENSORFLOW, NODE_DEF, &mut visitor).unwrap();
    visitor.reader.attributes().clone()
}

/// Reads the attributes of a node in its text form.
pub fn of_text(node: &str) -> Attributes {
    let mut visitor = NodeVisitor::default();
    text::scan(&node.as_bytes(), NODE_DEF, &mut visitor).unwrap();
    visitor.reader.attributes().clone()
}

/// Reads the attributes of a node with these values, which are given as text.
pub fn of_values(values: &[(&str, &str)]) -> Attributes {
    of_text(&serdes_testkit::fields::attributes(values))
}

fn number(field: u32, value: i64) -> Vec<u8> {
    let mut out = Vec::new();
    varint::push(&mut out, u64::from(field << 3));
    varint::push(&mut out, value as u64);
    out
}

fn delimited(field: u32, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    varint::push(&mut out, u64::from(field << 3 | 2));
    varint::push(&mut out, content.len() as u64);
    out.extend(content);
    out
}

fn float(field: u32, value: f32) -> Vec<u8> {
    [&[(field << 3 | 5) as u8][..], &value.to_le_bytes()].concat()
}

/// Encodes an entry of the map: the key, and the values, which are concatenated.
fn entry(key: &str, values: &[Vec<u8>]) -> Vec<u8> {
    let values: Vec<u8> = values.iter().flat_map(|value| delimited(2, value)).collect();
    delimited(5, &[delimited(1, key.as_bytes()), values].concat())
}

/// Returns the only value, as it is shown.
fn shown(values: &[Vec<u8>]) -> String {
    of_bytes(&entry("a", values)).get("a").unwrap().to_string()
}

/// Encodes a list in an AttrValue.
fn list(content: &[Vec<u8>]) -> Vec<u8> {
    delimited(1, &content.concat())
}

#[test]
fn every_kind_of_value_is_read_in_both_forms() {
    let cases: [(&str, Vec<u8>, &str); 13] = [
        ("", vec![], "no value"),
        (r#"s: "SAME""#, delimited(2, b"SAME"), "\"SAME\""),
        ("i: -3", number(3, -3), "-3"),
        ("f: 0.5", float(4, 0.5), "0.5"),
        ("b: false", number(5, 0), "false"),
        ("type: DT_INT4", number(6, 29), "DT_INT4"),
        ("type: 777", number(6, 777), "DT_777"),
        ("shape { unknown_rank: true }", delimited(7, &number(3, 1)), "<unknown rank>"),
        (
            "shape { dim { size: -1 } dim { } dim { size: 7 name: \"x\" } }",
            delimited(
                7,
                &[
                    delimited(2, &number(1, -1)),
                    delimited(2, &[]),
                    delimited(2, &[number(1, 7), delimited(2, b"x")].concat()),
                ]
                .concat(),
            ),
            "[-1, 0, 7]",
        ),
        (
            "tensor { dtype: DT_INT32 tensor_shape { dim { size: 2 } } int_val: 5 int_val: 6 }",
            delimited(
                8,
                &[number(1, 3), delimited(2, &delimited(2, &number(1, 2))), delimited(7, &[5, 6])]
                    .concat(),
            ),
            "<tensor DT_INT32 [2]>",
        ),
        (r#"placeholder: "T""#, delimited(9, b"T"), "placeholder \"T\""),
        (r#"func { name: "f" }"#, delimited(10, &delimited(1, b"f")), "function \"f\""),
        ("list { }", list(&[]), "[]"),
    ];
    for (text, binary, expected) in cases {
        let own = of_values(&[("a", text)]);
        assert_eq!(own.get("a").unwrap().to_string(), expected, "{text}");
        assert_eq!(shown(&[binary]), expected, "{text}");
    }
    let tensor = of_values(&[(
        "a",
        "tensor { dtype: DT_INT32 tensor_shape { dim { size: 2 } } int_val: 5 int_val: -6 }",
    )]);
    let Some(AttributeValue::Tensor(tensor)) = tensor.get("a") else { panic!() };
    assert_eq!((tensor.data_type, tensor.numbers, tensor.values), (3, &[5, -6][..], 2));
    assert_eq!(tensor.shape.dimensions, [2]);
}

#[test]
fn every_kind_of_list_is_read_in_both_forms_packed_or_not() {
    let shape = delimited(7, &delimited(2, &number(1, 4)));
    let floats = [1.5_f32, -2.0].map(f32::to_le_bytes).concat();
    let cases: [(&str, Vec<Vec<u8>>, &str); 11] = [
        (r#"s: "a" s: "b""#, vec![delimited(2, b"a"), delimited(2, b"b")], r#"["a", "b"]"#),
        ("i: [1, -2]", vec![number(3, 1), number(3, -2)], "[1, -2]"),
        ("i: 1 i: 300", vec![delimited(3, &[1, 0xac, 2])], "[1, 300]"),
        ("f: [1.5, -2]", vec![float(4, 1.5), float(4, -2.0)], "[1.5, -2.0]"),
        ("f: [1.5, -2]", vec![delimited(4, &floats)], "[1.5, -2.0]"),
        ("b: [true, false]", vec![delimited(5, &[1, 0])], "[true, false]"),
        (
            "type: [DT_FLOAT, DT_FLOAT, DT_INT8]",
            vec![delimited(6, &[1, 1, 6])],
            "[DT_FLOAT × 2, DT_INT8]",
        ),
        ("type: [1, 3]", vec![number(6, 1), number(6, 3)], "[DT_FLOAT, DT_INT32]"),
        ("shape { dim { size: 4 } } shape { }", vec![shape, delimited(7, &[])], "[[4], []]"),
        (
            r#"func { name: "f" } func { }"#,
            vec![delimited(9, &delimited(1, b"f")), delimited(9, &[])],
            r#"[function "f", function ""]"#,
        ),
        ("i: 1 b: true", vec![number(3, 1), number(5, 1)], "[values of several kinds, 2]"),
    ];
    for (text, binary, expected) in cases {
        let own = of_values(&[("a", &format!("list {{ {text} }}"))]);
        assert_eq!(own.get("a").unwrap().to_string(), expected, "{text}");
        assert_eq!(shown(&[list(&binary)]), expected, "{text}");
    }
    let tensors = of_values(&[("a", "list { tensor { } tensor { dtype: DT_INT8 } }")]);
    let Some(AttributeValue::List(list)) = tensors.get("a") else { panic!() };
    assert_eq!((list.len(), list.element()), (2, Some(Element::Tensor)));
}

#[test]
fn of_several_members_of_a_value_the_last_one_counts() {
    assert_eq!(shown(&[[number(3, 1), number(6, 1)].concat()]), "DT_FLOAT");
    assert_eq!(shown(&[[list(&[number(3, 1)]), float(4, 1.0)].concat()]), "1.0");
    assert_eq!(shown(&[[number(3, 1), list(&[])].concat()]), "[]");
    assert_eq!(shown(&[[list(&[number(3, 1)]), delimited(2, b"x"), list(&[])].concat()]), "[]");
    // The same in two parts of one value.
    assert_eq!(shown(&[number(3, 1), delimited(9, b"T")]), "placeholder \"T\"");
}

#[test]
fn a_message_that_comes_twice_in_a_value_is_put_together() {
    let one = |number_of: i64| list(&[number(3, number_of)]);
    assert_eq!(shown(&[[one(1), one(2)].concat()]), "[1, 2]");
    assert_eq!(shown(&[one(1), one(2)]), "[1, 2]");
    let dimension = |size| delimited(2, &number(1, size));
    let shape = |size| delimited(7, &dimension(size));
    assert_eq!(shown(&[[shape(1), shape(2)].concat()]), "[1, 2]");
    // Other fields may lie in between: a shape of a list.
    let tensor = |field: Vec<u8>| delimited(8, &field);
    let in_tensor = |size| tensor(delimited(2, &dimension(size)));
    let integers = tensor(delimited(7, &[9, 9]));
    let parts = [in_tensor(1), integers, in_tensor(2)].concat();
    assert_eq!(shown(&[parts]), "<tensor DT_INVALID [1, 2]>");
    let function = |name: &[u8]| delimited(10, &delimited(1, name));
    assert_eq!(shown(&[[function(b"f"), delimited(10, &[])].concat()]), "function \"f\"");
}

#[test]
fn of_equal_keys_the_last_entry_counts() {
    let few = [entry("a", &[number(3, 1)]), entry("b", &[]), entry("a", &[number(3, 2)])].concat();
    let attributes = of_bytes(&few);
    assert_eq!(attributes.get("a").unwrap().to_string(), "2");
    assert_eq!(attributes.iter().count(), 2);
    let many: Vec<u8> = (0..100).flat_map(|key| entry(&format!("k{key}"), &[])).collect();
    let attributes = of_bytes(&[&few[..], &many, &few].concat());
    assert_eq!(attributes.iter().count(), 102);
    assert_eq!(attributes.get("c").map(|value| value.to_string()), None);
}

#[test]
fn an_entry_may_lack_its_key_or_its_value() {
    let attributes = of_bytes(&[delimited(5, &[]), delimited(5, &delimited(1, b"a"))].concat());
    assert!(matches!(attributes.get(""), Some(AttributeValue::None)));
    assert!(matches!(attributes.get("a"), Some(AttributeValue::None)));
}

#[test]
fn what_is_inside_of_a_function_or_tensor_is_no_value_of_the_node() {
    let inner = entry("T", &[number(6, 1)]);
    // NameAttrList.attr has the form of NodeDef.attr, with the number 2.
    let inner = [&[2 << 3 | 2][..], &inner[1..]].concat();
    let function = delimited(10, &[delimited(1, b"f"), inner].concat());
    let bytes = entry("a", &[function]);
    for greedy in [false, true] {
        let mut visitor = NodeVisitor { greedy, ..NodeVisitor::default() };
        scan::scan(&bytes.as_slice(), TENSORFLOW, NODE_DEF, &mut visitor).unwrap();
        let attributes = visitor.reader.attributes();
        assert_eq!(attributes.get("a").unwrap().to_string(), "function \"f\"");
        assert!(attributes.get("T").is_none());
    }
}

#[test]
fn a_reader_forgets_the_last_node() {
    let mut visitor = NodeVisitor::default();
    for bytes in [entry("a", &[list(&[number(3, 1)])]), entry("b", &[])] {
        visitor.reader.clear();
        scan::scan(&bytes.as_slice(), TENSORFLOW, NODE_DEF, &mut visitor).unwrap();
    }
    let attributes = visitor.reader.attributes();
    assert!(attributes.get("a").is_none() && attributes.get("b").is_some());
}

#[test]
fn of_a_long_text_the_length_is_known() {
    let long = vec![b'x'; 3 << 20];
    let text = format!("s: \"{}\"", "x".repeat(3 << 20));
    for attributes in [of_bytes(&entry("a", &[delimited(2, &long)])), of_values(&[("a", &text)])] {
        let Some(AttributeValue::String(Text { length, bytes })) = attributes.get("a") else {
            panic!()
        };
        assert_eq!((length, bytes), (3 << 20, None));
        assert!(!attributes.is_oversized());
    }
    let listed = of_bytes(&entry("a", &[list(&[delimited(2, b"a"), delimited(2, &long)])]));
    assert_eq!(listed.get("a").unwrap().to_string(), r#"["a", <3145728 bytes>]"#);
}

#[test]
fn what_is_kept_of_a_node_is_bounded() {
    // Numbers, shapes and tensors are all counted, but only the first ones are kept.
    let many = delimited(3, &vec![1; 3 << 20]);
    let attributes = of_bytes(&entry("a", &[list(&[many])]));
    let Some(AttributeValue::List(list_of)) = attributes.get("a") else { panic!() };
    assert_eq!(list_of.len(), 3 << 20);
    assert_eq!(list_of.values().count(), 1 << 16);
    assert!(!attributes.is_oversized());
    // Floats that are longer than a window are counted as well.
    let floats = delimited(4, &vec![0; 4 << 20]);
    let attributes = of_bytes(&entry("a", &[list(&[floats])]));
    let Some(AttributeValue::List(floats)) = attributes.get("a") else { panic!() };
    assert_eq!((floats.len(), floats.values().count()), (1 << 20, 0));
    // Equal types are one run; changing ones are kept one by one, until there are too many.
    let attributes = of_bytes(&entry("a", &[list(&[delimited(6, &vec![1; 3 << 20])])]));
    let Some(AttributeValue::List(types)) = attributes.get("a") else { panic!() };
    assert_eq!(types.types(), [TypeCount { data_type: 1, count: 3 << 20 }]);
    let changing: Vec<u8> = (0..3 << 20).map(|position| position as u8 & 1).collect();
    assert!(of_bytes(&entry("a", &[list(&[delimited(6, &changing)])])).is_oversized());
    // Names are kept in the same way.
    let names: Vec<u8> = (0..200_000).flat_map(|key| entry(&format!("_{key}"), &[])).collect();
    assert!(of_bytes(&names).is_oversized());
    let name = "n".repeat(2 << 20);
    assert!(of_bytes(&entry(&name, &[])).is_oversized());
    let dimensions = delimited(2, &[]).repeat(1 << 20);
    let attributes = of_bytes(&entry("a", &[delimited(7, &dimensions)]));
    let Some(AttributeValue::Shape(shape)) = attributes.get("a") else { panic!() };
    assert_eq!((shape.rank, shape.dimensions.len()), (1 << 20, 255));
}

/// Returns true if the value equals the default of an operation's attribute.
fn equals_default(operation: &str, attribute: &str, value: &str) -> bool {
    let operation = Registry::operation_of_any_release(operation).unwrap();
    let default = operation.attribute(attribute).unwrap().default().unwrap();
    of_values(&[("a", value)]).get("a").unwrap().equals(default)
}

#[test]
fn a_value_equals_a_default_of_its_kind_alone() {
    for (operation, attribute, same, others) in [
        ("MatMul", "grad_a", "b: false", ["b: true", "i: 0", ""]),
        ("TopKV2", "index_type", "type: DT_INT32", ["type: DT_INT64", "i: 3", "list { }"]),
        ("ScatterNd", "bad_indices_policy", r#"s: """#, [r#"s: "IGNORE""#, "list { }", ""]),
        (
            "Conv2D",
            "dilations",
            "list { i: [1, 1, 1, 1] }",
            ["list { i: [1, 1, 1] }", "list { i: [1, 1, 1, 1, 1] }", "list { i: [1, 1, 2, 1] }"],
        ),
        (
            "Conv2D",
            "explicit_paddings",
            "list { }",
            ["list { i: 0 }", "i: 0", "list { i: 0 b: true }"],
        ),
        ("FakeQuantWithMinMaxArgs", "min", "f: -6", ["f: 6", "i: -6", ""]),
        (
            "Placeholder",
            "shape",
            "shape { unknown_rank: true }",
            ["shape { }", "shape { dim { } }", ""],
        ),
        (
            "DefaultAttrs",
            "type_list_val",
            "list { type: [DT_INT32, DT_FLOAT] }",
            ["list { type: DT_INT32 }", "list { type: [3, 3, 3] }", "list { type: [1, 3] }"],
        ),
    ] {
        assert!(equals_default(operation, attribute, same), "{operation}.{attribute}: {same}");
        for other in others {
            assert!(
                !equals_default(operation, attribute, other),
                "{operation}.{attribute}: {other}"
            );
        }
    }
}

/// Returns the hash of attributes from a hasher without keys.
fn judged(attributes: &Attributes) -> u64 {
    use std::hash::{DefaultHasher, Hasher};

    let mut hasher = DefaultHasher::new();
    attributes.hash_judged(&mut hasher);
    hasher.finish()
}

#[test]
fn what_is_judged_is_told_apart_and_the_rest_is_not() {
    let base = judged(&of_values(&[("T", "type: DT_FLOAT")]));
    assert_eq!(base, judged(&of_values(&[("T", "type: DT_FLOAT"), ("_class", "i: 3")])));
    for other in ["type: DT_HALF", "i: 1", "placeholder: \"T\"", "list { type: DT_FLOAT }", ""] {
        assert_ne!(base, judged(&of_values(&[("T", other)])), "{other}");
    }
    let tensor = |content| judged(&of_values(&[("value", content)]));
    assert_eq!(tensor("tensor { int_val: 3 }"), tensor("tensor { int_val: 4 }"));
    // Except for invalid shapes.
    let negative = "tensor { tensor_shape { dim { size: -3 } } }";
    assert_ne!(tensor("tensor { tensor_shape { dim { size: 3 } } }"), tensor(negative));
}

/// Scans arbitrary bytes; returns the attributes, or an error if the bytes are not a message.
fn of_any_bytes(bytes: &[u8]) -> Result<Attributes, GraphError> {
    let mut visitor = NodeVisitor::default();
    scan::scan(&bytes, TENSORFLOW, NODE_DEF, &mut visitor)?;
    Ok(visitor.reader.attributes().clone())
}

/// Generates the content of an AttrValue: its fields, and noise.
fn value_bytes() -> impl Strategy<Value = Vec<u8>> {
    let leaf = prop_oneof![
        (1_u32..12, any::<i64>()).prop_map(|(field, value)| number(field, value)),
        (1_u32..12, any::<f32>()).prop_map(|(field, value)| float(field, value)),
        (1_u32..12, proptest::collection::vec(0_u8..0x80, 0..6))
            .prop_map(|(field, bytes)| delimited(field, &bytes)),
        proptest::collection::vec(any::<u8>(), 0..4),
    ];
    leaf.prop_recursive(5, 40, 4, |inner| {
        (1_u32..12, proptest::collection::vec(inner, 0..4))
            .prop_map(|(field, parts)| delimited(field, &parts.concat()))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn any_value_is_read_or_refused_and_can_be_shown(
        values in proptest::collection::vec(value_bytes(), 0..4),
    ) {
        if let Ok(attributes) = of_any_bytes(&entry("a", &values)) {
            let value = attributes.get("a").unwrap();
            prop_assert!(value.to_string().len() < 2000);
            judged(&attributes);
            if let AttributeValue::List(list) = value {
                let types: u64 = list.types().iter().map(|run| run.count).sum();
                let kept = types.max(list.values().count() as u64);
                prop_assert!(kept <= list.len());
            }
            if let AttributeValue::Shape(ShapeValue { rank, dimensions, .. }) = value {
                prop_assert_eq!(rank, dimensions.len() as u64);
            }
        }
    }
}
