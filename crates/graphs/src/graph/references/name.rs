//! The name of a node or tensor, as Python's `Graph.as_graph_element` reads it.

/// The kind of item that a name must refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Asked {
    /// A node or a tensor.
    Any,
    Tensor,
    Node,
}

impl Asked {
    /// Returns the kind, as text.
    pub(in super::super) fn expected(self) -> &'static str {
        match self {
            Self::Any => "a node or a tensor of the graph",
            Self::Tensor => "a tensor of the graph, NODE:NUMBER",
            Self::Node => "a node of the graph",
        }
    }
}

/// The node or tensor that a name refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Named<'t> {
    /// The name of the node.
    pub(in super::super) node: &'t str,
    /// The number of the output; a negative one counts from the end.
    pub(in super::super) output: Option<i64>,
}

impl<'t> Named<'t> {
    /// Parses a text; `None` if it cannot name an item of this kind.
    pub(in super::super) fn of(text: &'t str, asked: Asked) -> Option<Self> {
        let named = match text.split_once(':') {
            Some((node, number)) => Self { node, output: Some(whole_number(number)?) },
            None => Self { node: text, output: None },
        };
        let is_asked = match asked {
            Asked::Any => true,
            Asked::Tensor => named.output.is_some(),
            Asked::Node => named.output.is_none(),
        };
        is_asked.then_some(named)
    }

    /// Returns true if a node with this number of outputs has the named one.
    pub(in super::super) fn is_of(self, outputs: u64) -> bool {
        self.output.is_none_or(|output| match u64::try_from(output) {
            Ok(output) => output < outputs,
            Err(_) => output.unsigned_abs() <= outputs,
        })
    }
}

/// Returns the node as which the C++ loader interprets a text, and its output: the first one unless
/// the text has another.
pub(in super::super) fn node_in_cpp(text: &str) -> (&str, &str) {
    let text = text.strip_prefix('^').unwrap_or(text);
    let numbered = text.rsplit_once(':').filter(|(_, number)| {
        !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit())
    });
    numbered.unwrap_or((text, "0"))
}

/// Returns a number as Python's `int` reads it: blanks around it, a sign, and underscores between
/// digits.
fn whole_number(text: &str) -> Option<i64> {
    let text = text.trim();
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let are_digits = |part: &str| !part.is_empty() && part.bytes().all(|one| one.is_ascii_digit());
    if !digits.split('_').all(are_digits) {
        return None;
    }
    // No node has that many outputs.
    let number = digits.replace('_', "").parse::<i64>().unwrap_or(i64::MAX);
    Some(if text.starts_with('-') { -number } else { number })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_python_reads_them() {
        let any = |text| Named::of(text, Asked::Any).map(|named| (named.node, named.output));
        assert_eq!(any("y"), Some(("y", None)));
        assert_eq!(any(""), Some(("", None)));
        assert_eq!(any("^y"), Some(("^y", None)));
        for (text, number) in [
            ("y:0", 0),
            ("y:00", 0),
            ("y: 7 ", 7),
            ("y:+2", 2),
            ("y:-1", -1),
            ("y:1_0", 10),
            ("y:99999999999999999999", i64::MAX),
        ] {
            assert_eq!(any(text), Some(("y", Some(number))), "{text}");
        }
        for text in ["y:", "y:x", "y:0:0", "y:1_", "y:_1", "y:- 1", "y:+-1"] {
            assert_eq!(any(text), None, "{text}");
        }
        assert!(Named::of("y", Asked::Tensor).is_none());
        assert!(Named::of("y:0", Asked::Node).is_none());
    }

    #[test]
    fn the_cpp_loader_takes_what_is_no_number_for_a_part_of_the_name() {
        for (text, node) in [
            ("n", ("n", "0")),
            ("n:1", ("n", "1")),
            ("^n", ("n", "0")),
            ("n:x", ("n:x", "0")),
            ("n:", ("n:", "0")),
            ("", ("", "0")),
        ] {
            assert_eq!(node_in_cpp(text), node, "{text}");
        }
    }

    #[test]
    fn outputs_below_zero_count_from_the_end() {
        let is_of = |text, outputs| Named::of(text, Asked::Any).unwrap().is_of(outputs);
        assert!(is_of("y", 0) && is_of("y:0", 1) && is_of("y:-1", 1) && is_of("y:-2", 2));
        assert!(!is_of("y:0", 0) && !is_of("y:1", 1) && !is_of("y:-1", 0) && !is_of("y:-3", 2));
        assert!(!is_of("y:-9223372036854775808", 5));
    }
}
