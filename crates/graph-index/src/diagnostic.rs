//! Diagnostics of TensorFlow's importer for a graph, in the order of its checks.
//!
//! Depends on the diagnostics and their texts, but not on the encoding of graphs or the walks over
//! them.

/// A diagnostic of a graph whose nodes or functions do not fit together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} \"{node}\": {kind}{}", kind.whose(), show_body(body.as_ref()))]
pub struct StructureDiagnostic {
    /// The name of the node or function that has the diagnostic, cut to 256 bytes.
    pub node: String,
    /// The kind of the diagnostic.
    pub kind: StructureDiagnosticKind,
    /// The diagnostic of the called function, if the node is refused because of it.
    pub body: Option<BodyDiagnostic>,
}

impl StructureDiagnostic {
    pub fn new(kind: StructureDiagnosticKind, node: String) -> Self {
        Self { node, kind, body: None }
    }
}

fn show_body(body: Option<&BodyDiagnostic>) -> String {
    body.map_or_else(String::new, |body| format!(" ({body})"))
}

/// The kinds of diagnostics of a node or a function, in the order of the checks of TensorFlow's
/// importer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum StructureDiagnosticKind {
    /// The name is not a letter, digit or dot followed by letters, digits and `_.-/`, nor several
    /// of these joined by `>`.
    #[error("its name is empty or has characters that no node name can have")]
    Name,
    /// Another node has the same name.
    #[error("another node has the same name")]
    Duplicate,
    /// The node has no operation.
    #[error("it names no operation")]
    NoOperation,
    /// A data input follows a control input.
    #[error("a data input comes after a control input")]
    InputOrder,
    /// An input names a node that does not exist.
    #[error("an input names a node that is not in the graph")]
    UnknownInput,
    /// Another function of the library has the same name but differs.
    #[error("another function has the same name and does something else")]
    DuplicateFunction,
    /// TensorFlow does not find the function equal to itself, so it does not accept it a second
    /// time, as loaders in Python require.
    #[error("it comes a second time in Python, and is not found to be the same")]
    UnequalFunction,
    /// The library declares two gradients for a function.
    #[error("the library names two functions as its gradient")]
    SecondGradient,
    /// The node is colocated with a node that does not exist. Found when the node is visited, after
    /// the diagnostics of earlier nodes.
    #[error("it is to be placed beside a node that is not in the graph (attribute _class)")]
    UnknownColocation,
    /// The node calls a function that cannot be built. Found when the node is visited.
    #[error("it calls a function that cannot be built")]
    CalledFunction,
    /// The node begins a loop, and more than one of its data inputs comes from outside the loop.
    /// Found when the second of these is visited.
    #[error(
        "it begins a loop and has more than one input from outside of it, which makes the importer crash"
    )]
    LoopInputs,
    /// The node can never run, because its inputs depend on it.
    #[error("it is part of a cycle, or depends on one")]
    Cycle,
}

impl StructureDiagnosticKind {
    /// Returns true if the importer finds the diagnostic only while it visits the nodes, or
    /// afterwards.
    pub fn is_found_on_the_way(self) -> bool {
        matches!(
            self,
            Self::UnknownColocation | Self::CalledFunction | Self::LoopInputs | Self::Cycle
        )
    }

    /// Names the part of a graph that has the diagnostic.
    fn whose(self) -> &'static str {
        match self {
            Self::DuplicateFunction | Self::UnequalFunction | Self::SecondGradient => "function",
            _ => "node",
        }
    }
}

/// A diagnostic of a function that a node calls.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("function \"{function}\"{}: {kind}", show_part(part))]
pub struct BodyDiagnostic {
    /// The function that has the diagnostic: the called one, or one that it calls; its name cut to
    /// 256 bytes.
    pub function: String,
    /// The node, argument or result that has it; empty for the function itself.
    pub part: String,
    /// The kind of the diagnostic.
    pub kind: BodyDiagnosticKind,
}

fn show_part(part: &str) -> String {
    if part.is_empty() { String::new() } else { format!(", \"{part}\"") }
}

/// The kinds of diagnostics of a function that a node calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyDiagnosticKind {
    /// A node, argument or result has a name that is invalid for nodes.
    #[error("its name is empty or has characters that no node name can have")]
    Name,
    /// Another node, argument or result has the same name.
    #[error("another node, argument or result of the function has the same name")]
    Duplicate,
    /// A node has no operation.
    #[error("it names no operation")]
    NoOperation,
    /// A data input follows a control input.
    #[error("a data input comes after a control input")]
    InputOrder,
    /// An input names neither an argument nor an output of a node.
    #[error(
        "an input names nothing in the function; inside of functions, outputs are called NODE:OUTPUT:NUMBER"
    )]
    UnknownInput,
    /// An argument or a result has no type, in a function whose name is the operation of a node.
    #[error("it has no type")]
    NoType,
    /// A result has no returned value.
    #[error("the function does not say what it returns as this result")]
    NoResult,
    /// The returned value of a result does not exist.
    #[error("what the function returns as this result is not in it")]
    UnknownResult,
    /// A result is an argument of another type.
    #[error("it is returned from an argument of another type")]
    ResultType,
    /// The node that calls the function has fewer inputs than the function has arguments.
    #[error("it has more arguments than the call has inputs")]
    FewInputs,
    /// The node that calls the function has fewer outputs than the function has results.
    #[error("it has more results than the call has outputs")]
    FewOutputs,
    /// The function can never run, because its inputs depend on it.
    #[error("it is part of a cycle, or depends on one")]
    Cycle,
    /// A function calls itself, directly or through others: the importer follows the calls until
    /// the process ends.
    #[error("it calls itself, at once or through others, which makes the importer crash")]
    Recursion,
}

impl BodyDiagnosticKind {
    /// Returns true if a graph can have the same diagnostic outside functions.
    pub fn is_of_graphs(self) -> bool {
        matches!(
            self,
            Self::Name
                | Self::Duplicate
                | Self::NoOperation
                | Self::InputOrder
                | Self::Cycle
                | Self::Recursion
        )
    }
}

/// A part of a function, by its number among those of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// The function itself.
    Function,
    Node(u32),
    Argument(u32),
    Result(u32),
}

/// A diagnostic of a part of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartDiagnostic {
    pub part: Part,
    pub kind: BodyDiagnosticKind,
}
