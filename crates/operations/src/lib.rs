//! The operations that each release of TensorFlow has: arguments, attributes, permitted values.
//!
//! ```
//! use serdes_operations::Registry;
//!
//! let older = Registry::tensorflow("2.12")?;
//! let newer = Registry::tensorflow("2.21")?;
//! assert!(older.operation("Conv").is_none());
//! assert_eq!(newer.operation("Conv").unwrap().first_release(), Some("2.14"));
//!
//! // An attribute that came later: a model that sets it loads in 2.12 and means something else there.
//! let mat_mul = older.operation("MatMul").unwrap();
//! assert!(mat_mul.attribute("transpose_a").is_some());
//! assert!(mat_mul.attribute("grad_a").is_none());
//! # Ok::<(), serdes_operations::UnknownRelease>(())
//! ```
//!
//! The built-in registries (2.12 to 2.21) were read from the releases themselves and are kept as
//! one table: an operation has one or more definitions, and a definition the set of releases that
//! have it. A look-up is a binary search without allocation; an entry is decoded as it is accessed.
//! `tests/it/tensorflow_ops.rs` of this crate makes the table from `tests/data/tensorflow/ops`,
//! `tests/interop/tensorflow_ops.py` compares it with an installed TensorFlow. Custom lists
//! ([`Registry::with`]) are kept in the same form.
//!
//! Does not depend on graphs or on the rules for accepting them.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
// No input makes the crate panic: code that could is an exception with its reason.
#![cfg_attr(
    not(test),
    deny(
        clippy::expect_used,
        clippy::get_unwrap,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::string_slice,
        clippy::unreachable,
        clippy::unwrap_used
    )
)]

mod definition;
mod definition_json;
mod display;
mod encode;
mod list;
mod list_error;
mod op_list;
mod operation;
mod registry;
mod table;
mod value;

pub use definition::type_name;
pub use definition::{
    ArgumentDefinition, ArgumentType, AttributeDefinition, AttributeKind, DefinitionError, Element,
    OperationDefinition, ValueDefinition,
};
pub use display::Difference;
pub use encode::{History, ReleaseRecord};
pub use list::{read_list, read_saved_model};
pub use list_error::ListError;
pub use operation::{Argument, ArgumentSource, Attribute, DefinitionId, Operation};
pub use registry::{OperationList, Registry, UnknownRelease};
pub use serdes_graph_format::data_type;
pub use value::{Shape, Value, Values};
