//! The index of a TensorFlow graph: its nodes, functions and attributes, found in one walk over a
//! file of any size, and TensorFlow's rules for a single name, node or attribute.
//!
//! - -`source` is the file of a graph, and `index` the result of one walk over it.
//! - `raw_nodes` tells which nodes are alike, so that the attributes of a node signature are read
//!   once; `attributes` reads them, `node_at` and `node_search` read what is left in the file.
//! - `rules` and `node_rules` have the rules of one name and of one node, `node_signatures` what
//!   each node signature is in each release, `diagnostic` and `judgement` the diagnostics.
//!
//! This crate does not depend on the order of a loader's checks, and does not judge whole graphs.

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

#[doc(hidden)]
pub mod attributes;
#[doc(hidden)]
pub mod characters;
#[doc(hidden)]
pub mod deprecated_uses;
#[doc(hidden)]
pub mod deprecation;
#[doc(hidden)]
pub mod devices;
#[doc(hidden)]
pub mod diagnostic;
#[doc(hidden)]
pub mod function_attributes;
#[doc(hidden)]
pub mod function_names;
#[doc(hidden)]
pub mod growing;
#[doc(hidden)]
pub mod index;
#[doc(hidden)]
pub mod judgement;
#[doc(hidden)]
pub mod node_at;
#[doc(hidden)]
pub mod node_attributes;
#[doc(hidden)]
pub mod node_rules;
#[doc(hidden)]
pub mod node_search;
#[doc(hidden)]
pub mod node_signatures;
#[doc(hidden)]
pub mod raw_nodes;
#[doc(hidden)]
pub mod release;
#[doc(hidden)]
pub mod rules;
#[doc(hidden)]
pub mod source;
#[doc(hidden)]
pub mod whole_text;

pub use self::{
    deprecated_uses::DeprecatedUse,
    deprecation::{DeprecatedOperation, DeprecatedOperations, DeprecationListError},
    diagnostic::{
        BodyDiagnostic, BodyDiagnosticKind, StructureDiagnostic, StructureDiagnosticKind,
    },
    judgement::{
        IgnoredAttribute, ImportDiagnostic, ImportDiagnosticKind, Judgement, Loader, LoaderVerdict,
    },
    source::{Form, GraphError, Message},
};

use serdes_files as files;
use serdes_graph_format::{data_type, scan, schema, text};
use serdes_operations as ops;
