//! What TensorFlow's importer finds wrong with a graph, in the order in which it looks.
//!
//! Knows the faults and their words. It must never know how a graph is written or walked over.

/// Why the nodes or functions of a graph do not fit together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} \"{node}\": {kind}{}", kind.whose(), show_body(body.as_ref()))]
#[non_exhaustive]
pub struct StructureFault {
    /// The name of the node, or of the function where the fault is one of functions, cut to 256
    /// bytes.
    pub node: String,
    /// What is wrong with it.
    pub kind: StructureFaultKind,
    /// What is wrong with the function that the node calls, where that is what is wrong with the
    /// node.
    pub body: Option<BodyFault>,
}

impl StructureFault {
    pub(super) fn new(kind: StructureFaultKind, node: String) -> Self {
        Self { node, kind, body: None }
    }
}

fn show_body(body: Option<&BodyFault>) -> String {
    body.map_or_else(String::new, |body| format!(" ({body})"))
}

/// What can be wrong with a node or a function; in the order in which TensorFlow's importer looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[non_exhaustive]
pub enum StructureFaultKind {
    /// Not a letter, digit or dot followed by letters, digits and `_.-/`, or several of these
    /// joined by `>`.
    #[error("its name is empty or has characters that no node name can have")]
    Name,
    /// Another node has the same name.
    #[error("another node has the same name")]
    Duplicate,
    /// It names no operation.
    #[error("it names no operation")]
    NoOperation,
    /// An input of data after a control input.
    #[error("a data input comes after a control input")]
    InputOrder,
    /// An input that names no node of the graph.
    #[error("an input names a node that is not in the graph")]
    UnknownInput,
    /// Another function of the library has the same name and is not the same.
    #[error("another function has the same name and does something else")]
    DuplicateFunction,
    /// TensorFlow does not find it equal to itself, and so does not take it a second time, as
    /// loaders in Python ask it to.
    #[error("it comes a second time in Python, and is not found to be the same")]
    UnequalFunction,
    /// The library says of two functions that they are its gradient.
    #[error("the library names two functions as its gradient")]
    SecondGradient,
    /// It is to be on the device of a node that is not there. Found when the node is visited, after
    /// what is wrong with those before it.
    #[error("it is to be placed beside a node that is not in the graph (attribute _class)")]
    UnknownColocation,
    /// It calls a function that cannot be built. Found when the node is visited as well.
    #[error("it calls a function that cannot be built")]
    CalledFunction,
    /// It is where a loop begins, and more than one of its inputs of data come from outside of the
    /// loop. Found when the second of these is visited.
    #[error(
        "it begins a loop and has more than one input from outside of it, which makes the importer crash"
    )]
    LoopInputs,
    /// It can never run, because its inputs depend on it.
    #[error("it is part of a cycle, or depends on one")]
    Cycle,
}

impl StructureFaultKind {
    /// Whether the importer finds it only when it visits the nodes, or has visited them all.
    pub(crate) fn is_found_on_the_way(self) -> bool {
        matches!(
            self,
            Self::UnknownColocation | Self::CalledFunction | Self::LoopInputs | Self::Cycle
        )
    }

    /// What has the fault.
    fn whose(self) -> &'static str {
        match self {
            Self::DuplicateFunction | Self::UnequalFunction | Self::SecondGradient => "function",
            _ => "node",
        }
    }
}

/// What is wrong with a function that a node calls.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("function \"{function}\"{}: {kind}", show_part(part))]
#[non_exhaustive]
pub struct BodyFault {
    /// The function that has the fault: the one that the node calls, or one that this one calls;
    /// its name cut to 256 bytes.
    pub function: String,
    /// The node, argument or result that has it; empty where it is the function itself.
    pub part: String,
    /// What is wrong with it.
    pub kind: BodyFaultKind,
}

fn show_part(part: &str) -> String {
    if part.is_empty() { String::new() } else { format!(", \"{part}\"") }
}

/// What can be wrong with a function that a node calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BodyFaultKind {
    /// A node, argument or result whose name can be that of no node.
    #[error("its name is empty or has characters that no node name can have")]
    Name,
    /// Another node, argument or result has the same name.
    #[error("another node, argument or result of the function has the same name")]
    Duplicate,
    /// A node that names no operation.
    #[error("it names no operation")]
    NoOperation,
    /// An input of data after a control input.
    #[error("a data input comes after a control input")]
    InputOrder,
    /// An input that names neither an argument nor an output of a node.
    #[error(
        "an input names nothing in the function; inside of functions, outputs are called NODE:OUTPUT:NUMBER"
    )]
    UnknownInput,
    /// An argument or a result without a type, in a function whose name is the operation of a node.
    #[error("it has no type")]
    NoType,
    /// A result that nothing is said to return.
    #[error("the function does not say what it returns as this result")]
    NoResult,
    /// A result that is said to be something that is not there.
    #[error("what the function returns as this result is not in it")]
    UnknownResult,
    /// A result that is an argument of another type.
    #[error("it is returned from an argument of another type")]
    ResultType,
    /// The node that calls the function has fewer inputs than the function has arguments.
    #[error("it has more arguments than the call has inputs")]
    FewInputs,
    /// The node that calls the function has fewer outputs than the function has results.
    #[error("it has more results than the call has outputs")]
    FewOutputs,
    /// It can never run, because its inputs depend on it.
    #[error("it is part of a cycle, or depends on one")]
    Cycle,
    /// A function that calls itself, at once or through others: the importer follows the calls
    /// until the process ends.
    #[error("it calls itself, at once or through others, which makes the importer crash")]
    Recursion,
}

impl BodyFaultKind {
    /// Whether it is one of nodes that do not fit together, as in a graph.
    pub(super) fn is_of_graphs(self) -> bool {
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
pub(super) enum Part {
    /// The function itself.
    Function,
    Node(u32),
    Argument(u32),
    Result(u32),
}

/// What is wrong with a part of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PartFault {
    pub(super) part: Part,
    pub(super) kind: BodyFaultKind,
}
