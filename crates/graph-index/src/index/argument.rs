//! An argument or a result of a function.

use super::names::Name;

/// An argument or a result of a function.
#[derive(Clone, Copy, Debug, Default)]
pub struct Argument {
    pub name: Name,
    /// The name of the node that returns a result.
    pub result: Name,
    pub bad_name: bool,
    /// True if its name is invalid for a node of a graph, whose rules are stricter.
    pub bad_graph_name: bool,
    /// Its type; 0 if it has none.
    pub data_type: i32,
    pub type_attribute: bool,
    pub number_attribute: bool,
    pub list_attribute: bool,
    /// True if it is a resource handle whose contents the signature declares.
    pub has_handle_data: bool,
}

impl Argument {
    /// Returns true if the argument may stand for a list of tensors.
    #[must_use]
    pub fn is_list(self) -> bool {
        self.number_attribute || self.list_attribute
    }

    /// Returns true if neither an attribute nor a type determines the type of the argument.
    #[must_use]
    pub fn is_untyped(self) -> bool {
        self.data_type == 0
            && !self.type_attribute
            && (self.number_attribute || !self.list_attribute)
    }

    /// Returns its type, if it does not depend on the call; 0 for none.
    #[must_use]
    pub fn fixed_type(self) -> Option<i32> {
        let fixed = !self.is_list() && (self.data_type != 0 || !self.type_attribute);
        fixed.then_some(self.data_type)
    }
}
