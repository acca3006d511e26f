//! Names of mesh axes. JAX has them and IFRT's shardings do not, so they are kept in the metadata
//! of a state.
//!
//! Source: `python/serdes_ml/_meshes.py`.

use std::collections::HashMap;

use serde_json::Value;

/// The metadata key of the meshes of a tree.
const MESHES: &str = "serdes_ml.meshes";

/// An axis of a mesh.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct AxisSummary {
    /// Its name; `None` if the sharding has none.
    pub name: Option<String>,
    /// Number of devices along it.
    pub size: i64,
}

/// The mesh axes over which the tensors of a state were sharded, by tensor name.
#[derive(Debug, Default)]
pub(super) struct MeshNames {
    meshes: Vec<Vec<(String, i64)>>,
    /// The number of the mesh of each tensor.
    tensors: HashMap<String, usize>,
}

impl MeshNames {
    /// Parses the metadata of a state; other metadata gives no names.
    pub(super) fn of(metadata: &[(String, String)]) -> Self {
        let text = metadata.iter().find(|(key, _)| key == MESHES).map(|(_, text)| text);
        text.and_then(|text| Self::parse(text)).unwrap_or_default()
    }

    /// Parses an object with `meshes`, each a list of axes with name and size; `shardings`, each a
    /// list that begins with the number of a mesh; `leaves`, the numbers of shardings by tensor
    /// name.
    fn parse(text: &str) -> Option<Self> {
        let mut recorded: HashMap<String, Value> = serde_json::from_str(text).ok()?;
        let meshes = serde_json::from_value(recorded.remove("meshes")?).ok()?;
        let shardings: Vec<Vec<Value>> =
            serde_json::from_value(recorded.remove("shardings")?).ok()?;
        let leaves: HashMap<String, usize> =
            serde_json::from_value(recorded.remove("leaves")?).ok()?;
        let mesh = |sharding: usize| shardings.get(sharding)?.first()?.as_u64()?.try_into().ok();
        let tensors = leaves.into_iter().filter_map(|(name, at)| Some((name, mesh(at)?)));
        Some(Self { tensors: tensors.collect(), meshes })
    }

    /// Returns the number of the mesh of a tensor, if the mesh has `devices` devices.
    pub(super) fn mesh(&self, tensor: &str, devices: usize) -> Option<usize> {
        let number = *self.tensors.get(tensor)?;
        let axes = self.meshes.get(number)?;
        let size = axes.iter().try_fold(1_i64, |size, (_, axis)| size.checked_mul(*axis))?;
        (usize::try_from(size).ok()? == devices).then_some(number)
    }

    /// Returns the axes of a mesh by its number.
    pub(super) fn axes(&self, mesh: usize) -> Vec<AxisSummary> {
        let axes = self.meshes.get(mesh).into_iter().flatten();
        axes.map(|(name, size)| AxisSummary { name: Some(name.clone()), size: *size }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> MeshNames {
        MeshNames::of(&[(MESHES.to_owned(), text.to_owned())])
    }

    #[test]
    fn a_tensor_has_the_axes_of_its_mesh() {
        let found = names(
            r#"{"meshes":[[["a",8]],[["x",4],["y",2]]],"shardings":[[1,["x",null,["x","y"]]]],"leaves":{"w":0}}"#,
        );
        let mesh = found.mesh("w", 8).unwrap();
        let axes = found.axes(mesh);
        let axes: Vec<_> = axes.iter().map(|axis| (axis.name.as_deref(), axis.size)).collect();
        assert_eq!(axes, [(Some("x"), 4), (Some("y"), 2)]);
        assert_eq!(found.mesh("other", 8), None);
    }

    #[test]
    fn a_mesh_of_other_devices_is_not_taken() {
        let large = i64::MAX;
        let found = names(&format!(
            r#"{{"meshes":[[["x",{large}],["y",{large}]]],"shardings":[[0,[]],[7,[]]],"leaves":{{"w":0,"v":1,"u":9}}}}"#
        ));
        for tensor in ["w", "v", "u"] {
            assert_eq!(found.mesh(tensor, 8), None, "{tensor}");
        }
    }

    #[test]
    fn metadata_of_another_form_name_nothing() {
        for text in ["", "[]", r#"{"meshes":[[["x","y"]]],"shardings":[],"leaves":{}}"#] {
            assert_eq!(names(text).mesh("w", 1), None, "{text}");
        }
    }
}
