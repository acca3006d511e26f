//! Protobuf fields, encoded by hand, for tests of readers.

/// Returns the attributes of a TensorFlow node in text format: `attr { key value }` for each value.
pub fn attributes(values: &[(&str, &str)]) -> String {
    let entry =
        |(key, value): &(&str, &str)| format!("attr {{ key: {key:?} value {{ {value} }} }}");
    values.iter().map(entry).collect()
}

/// Encodes a length-delimited field: a message or a text.
pub fn field(number: u64, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(content.len() + 8);
    for mut bits in [number << 3 | 2, content.len() as u64] {
        while bits >= 0x80 {
            out.push(bits as u8 | 0x80);
            bits >>= 7;
        }
        out.push(bits as u8);
    }
    out.extend_from_slice(content);
    out
}
