//! Reading and writing TensorFlow's artifacts: graphs, SavedModels, checkpoints.
//!
//! Knows the formats and how TensorFlow judges them; what a verdict means for a person or a command
//! it must never know.

mod bans;
#[cfg(feature = "device")]
pub(crate) mod ifrt_types;
#[cfg(feature = "device")]
pub(crate) mod restore;

#[cfg(feature = "device")]
pub(crate) use serdes_checkpoints::patterns;
pub use serdes_checkpoints::{checkpoint_state, checkpoint_v1, slice, table, tensor_bundle};
#[cfg(feature = "device")]
pub(crate) use serdes_graphs::schema::ReleaseDialect;
pub use serdes_graphs::{
    Malformed, StatusCode, TextError, TextFault, WireError, WireFault, data_type, graph, ops,
};

#[cfg(test)]
mod tests {
    use super::{checkpoint_v1, tensor_bundle};
    use crate::version::tensorflow;

    #[test]
    fn default_consumers_are_the_newest_release_of_the_registry() {
        let newest = tensorflow::newest_release().unwrap();
        let of = |line| tensorflow::consumer(newest, line).unwrap();
        assert_eq!(tensor_bundle::default_consumer(), of("tensor_bundle"));
        assert_eq!(checkpoint_v1::default_consumer(), of("checkpoint"));
    }
}
