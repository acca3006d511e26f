//! An argument or a result of a function.

use super::names::Name;

/// An argument or a result of a function.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Argument {
    pub(in super::super) name: Name,
    /// The name of the node that returns a result.
    pub(in super::super) result: Name,
    pub(in super::super) bad_name: bool,
    /// True if its name is invalid for a node of a graph, where the rules are stricter.
    pub(in super::super) bad_graph_name: bool,
    /// Its type, 0 if it has none.
    pub(in super::super) data_type: i32,
    pub(in super::super) type_attribute: bool,
    pub(in super::super) number_attribute: bool,
    pub(in super::super) list_attribute: bool,
    /// True if it is a resource handle whose contents the signature declares.
    pub(in super::super) has_handle_data: bool,
}
