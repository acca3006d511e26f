//! The syntax of references between nodes: `NODE`, `NODE:2` and `^NODE` in a graph,
//! `NODE:tensors:2` in the body of a function.

/// Returns the name of the node to which an input or a text refers.
pub(super) fn node_name(input: &[u8]) -> &[u8] {
    let input = input.strip_prefix(b"^").unwrap_or(input);
    input.split(|byte| *byte == b':').next().unwrap_or_default()
}

/// Returns the number of the output that an input names.
pub(super) fn output_number(input: &[u8]) -> usize {
    let number = input.rsplit(|byte| *byte == b':').next().unwrap_or_default();
    std::str::from_utf8(number).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_name_is_what_stands_before_the_output() {
        for (input, name, output) in
            [("a/b", "a/b", 0), ("a:2", "a", 2), ("^a", "a", 0), ("a:tensors:7", "a", 7)]
        {
            let found = (node_name(input.as_bytes()), output_number(input.as_bytes()));
            assert_eq!(found, (name.as_bytes(), output), "{input}");
        }
    }
}
