//! TensorFlow's rules for names, inputs and loops.
//!
//! Depends on one name, input or operation at a time, not on a graph.

use super::characters::{self, Seen};

/// The role of an operation in loops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoopRole {
    #[default]
    None,
    /// `Merge`: the start of a loop, or the join of two branches.
    Merge,
    /// `NextIteration`: the back edge of a loop.
    NextIteration,
}

impl LoopRole {
    #[inline(always)]
    pub fn of(operation: &[u8]) -> Self {
        match operation {
            b"Merge" | b"RefMerge" => Self::Merge,
            b"NextIteration" | b"RefNextIteration" => Self::NextIteration,
            _ => Self::None,
        }
    }
}

/// Returns true for an operation that calls the function named by its attribute `f`.
pub fn is_partitioned_call(operation: &[u8]) -> bool {
    matches!(operation, b"PartitionedCall" | b"StatefulPartitionedCall")
}

/// Limit on the bytes of a name that are kept for messages.
pub const SHOWN_NAME: usize = 256;

/// Returns a name for messages, cut to a limited length.
pub fn shown(name: &[u8]) -> String {
    let kept = name.get(..SHOWN_NAME).unwrap_or(name);
    String::from_utf8_lossy(kept).into_owned()
}

/// Returns true if TensorFlow accepts this as a node name.
#[inline(always)]
pub fn is_node_name(name: &[u8]) -> bool {
    if characters::are_of_a_name(name) {
        return name.first().is_some_and(|head| begins_a_name(*head));
    }
    are_joined_names(name)
}

/// Returns true if a name, or a part of it, may begin with this byte.
#[inline]
fn begins_a_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'.'
}

#[inline(never)]
fn are_joined_names(name: &[u8]) -> bool {
    name.split(|byte| *byte == b'>').all(|part| {
        part.first().is_some_and(|head| begins_a_name(*head)) && characters::are_of_a_name(part)
    })
}

/// Returns true if TensorFlow accepts this as the name of a node in a function, which may begin
/// with an underscore.
pub fn is_body_name(name: &[u8]) -> bool {
    let Some(mut rest) = name.strip_prefix(b"_") else { return is_node_name(name) };
    while let [b'_' | b'-' | b'/', after @ ..] = rest {
        rest = after;
    }
    match rest {
        [] => true,
        [b'>', after @ ..] => is_node_name(after),
        _ => is_node_name(rest),
    }
}

/// Returns the node that an input names: `name`, `name:3` or `^name`.
#[inline]
pub fn input_node(input: &[u8]) -> &[u8] {
    input_node_seen(input, characters::seen(input))
}

/// Returns the node that an input names, given the facts about its characters.
#[inline]
pub fn input_node_seen(input: &[u8], seen: Seen) -> &[u8] {
    // The first character is never the colon, as a name cannot be empty.
    if (seen.colon || !seen.ascii)
        && let Some(colon) = input.iter().rposition(|byte| *byte == b':')
        && let Some((name, [_, output @ ..])) = input.split_at_checked(colon)
        && !name.is_empty()
        && !output.is_empty()
        && output.iter().all(u8::is_ascii_digit)
        && (output.len() < 20
            || std::str::from_utf8(output).is_ok_and(|text| text.parse::<u64>().is_ok()))
    {
        return name;
    }
    input.strip_prefix(b"^").unwrap_or(input)
}

/// The output that an input selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Output(i32);

impl Output {
    /// No output: a control edge, which carries no tensor.
    pub const CONTROL: Self = Self(-1);
    /// The first two outputs.
    pub const FIRST: Self = Self(0);
    pub const SECOND: Self = Self(1);
    /// The output number -1, which means a control edge: it counts as a data input and carries no
    /// tensor.
    const MINUS_ONE: Self = Self(-2);
    /// A number below -1: no node has such an output.
    const NOWHERE: Self = Self(-3);

    /// Returns the output that `input` selects, whose node is `name` ([`input_node`]).
    #[inline]
    pub fn of(input: &[u8], name: &[u8]) -> Self {
        match input.strip_prefix(name) {
            Some([]) => Self(0),
            Some([_colon, digits @ ..]) => {
                let digits = std::str::from_utf8(digits).ok();
                // The importer keeps the low 32 bits.
                match digits.and_then(|digits| digits.parse::<u64>().ok()).unwrap_or(0) as i32 {
                    -1 => Self::MINUS_ONE,
                    number if number < 0 => Self::NOWHERE,
                    number => Self(number),
                }
            }
            None => Self::CONTROL,
        }
    }

    /// Returns true if the input carries a tensor.
    #[inline]
    pub fn is_data(self) -> bool {
        self != Self::CONTROL && self != Self::MINUS_ONE
    }

    /// Returns the output number, if it is a data output that a node can have.
    #[inline]
    pub fn number(self) -> Option<u32> {
        u32::try_from(self.0).ok()
    }
}

/// Returns true for a control input; only the first character decides.
#[inline]
pub fn is_control_input(input: &[u8]) -> bool {
    input.first() == Some(&b'^')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_nodes_are_the_ones_that_the_importer_takes() {
        for name in ["a", ".", "0", "a/b-c_d.e", "A>b", "a>.b/c", "MatMul_1"] {
            assert!(is_node_name(name.as_bytes()), "{name}");
        }
        for name in
            ["", "_a", "-a", "/a", "a b", "a>", ">a", "a>>b", "a>_b", "a:0", "^a", "a\\b", "é"]
        {
            assert!(!is_node_name(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn an_input_names_a_node_an_output_or_a_control_dependency() {
        let node = |input: &'static str| input_node(input.as_bytes());
        assert_eq!(node("a"), b"a");
        assert_eq!(node("a:12"), b"a");
        assert_eq!(node("^a"), b"a");
        assert_eq!(node("^a:0"), b"^a");
        assert_eq!(node("a:"), b"a:");
        assert_eq!(node("a:18446744073709551615"), b"a");
        assert_eq!(node("a:18446744073709551616"), b"a:18446744073709551616");
        assert_eq!(node(":0"), b":0");
        assert_eq!(node("12"), b"12");
        assert_eq!(node(""), b"");
        assert!(is_control_input(b"^a") && is_control_input(b"^a:0") && !is_control_input(b"a"));
    }

    #[test]
    fn the_number_of_an_output_is_cut_to_32_bits() {
        let output = |input: &[u8]| Output::of(input, input_node(input));
        for (input, number) in [
            ("a", 0),
            ("a:0", 0),
            ("a:007", 7),
            ("^a:1", 1),
            ("a:2147483647", i32::MAX as u32),
            ("a:4294967296", 0),
            ("a:4294967297", 1),
        ] {
            assert_eq!(output(input.as_bytes()).number(), Some(number), "{input}");
        }
        assert_eq!(output(b"^a"), Output::CONTROL);
        assert_eq!(output(b"a:4294967295"), Output::MINUS_ONE);
        assert!(!output(b"a:18446744073709551615").is_data());
        assert!(output(b"a:2147483648").is_data());
        assert_eq!(output(b"a:2147483648").number(), None);
    }
}
