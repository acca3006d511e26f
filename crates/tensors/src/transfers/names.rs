//! Names of a state's tensors in other files: a state has aliases in its metadata, which most
//! formats cannot hold.

use std::collections::HashMap;

use serdes_device_state::{Reader, Tensor, matches_any};

use super::plan::{check_growth, total};
use crate::{Error, Metadata, TensorInfo, aliases};

/// Returns the tensors of `state` with a name or alias that matches one of `patterns`, in the order
/// of the file; all tensors if there is no pattern.
///
/// # Errors
/// [`serdes_device_state::Error::NoSuchTensor`] for a pattern without a match; an error for a spec
/// that cannot be decoded.
pub fn select(
    state: &Reader,
    patterns: &[String],
) -> Result<Vec<Tensor>, serdes_device_state::Error> {
    let (others, _) = OtherNames::of(state);
    let mut tensors = state.tensors_in_file_order()?;
    let matches = |patterns: &[String], tensor: &Tensor| {
        others.all(tensor).any(|name| matches_any(patterns, name))
    };
    for pattern in patterns {
        let one = std::slice::from_ref(pattern);
        if !tensors.iter().any(|tensor| matches(one, tensor)) {
            return Err(serdes_device_state::Error::no_such_tensor(pattern, state.len()));
        }
    }
    tensors.retain(|tensor| patterns.is_empty() || matches(patterns, tensor));
    Ok(tensors)
}

/// A tensor under one of its names.
pub(super) struct Named {
    pub(super) info: TensorInfo,
    /// Position of the tensor in the state.
    pub(super) position: usize,
}

/// Selects the `tensors` of `state` with a name that matches one of the patterns, or all. With
/// `keep_aliases`, each appears once under one of its names, and the metadata have the others.
///
/// # Errors
/// If a tensor's size exceeds all file formats, or there are too many names in proportion to the
/// stored bytes.
pub(super) fn named(
    state: &Reader,
    tensors: &[Tensor],
    only: &[String],
    keep_aliases: bool,
) -> Result<(Vec<Named>, Metadata), Error> {
    let (others, metadata) = OtherNames::of(state);
    let (mut found, mut told) = (Vec::with_capacity(tensors.len()), Vec::new());
    for (position, tensor) in tensors.iter().enumerate() {
        let spec = tensor.spec();
        let mut first = None;
        for name in others.all(tensor).filter(|name| only.is_empty() || matches_any(only, name)) {
            match first {
                Some(first) if keep_aliases => told.push((name, first)),
                _ => {
                    first = Some(name);
                    let info = TensorInfo::new(name, spec.dtype(), spec.shape().clone())?;
                    found.push(Named { info, position });
                }
            }
        }
    }
    if let Some(last) = found.last() {
        let written = total(found.iter().map(|named| &named.info));
        check_growth(tensors.iter().map(Tensor::bytes).sum(), written, &last.info.name)?;
    }
    let metadata = match told.len() == others.count {
        // Unchanged, in their order.
        true if keep_aliases => state.metadata().map(<[_]>::to_vec),
        _ => aliases::put(metadata, &told),
    };
    Ok((found, metadata))
}

/// Aliases of tensors, by the name under which each is stored.
struct OtherNames {
    names: HashMap<String, Vec<String>>,
    count: usize,
}

impl OtherNames {
    /// Reads the aliases in the metadata of a state, and returns the rest of the metadata.
    fn of(state: &Reader) -> (Self, Metadata) {
        let mut metadata = state.metadata().map(<[_]>::to_vec);
        let stored: Vec<&str> = state.names().collect();
        let others = aliases::take(&mut metadata, &stored);
        let count = others.len();
        let mut names: HashMap<String, Vec<String>> = HashMap::new();
        for (other, position) in others {
            if let Some(own) = stored.get(position) {
                names.entry((*own).to_owned()).or_default().push(other);
            }
        }
        (Self { names, count }, metadata)
    }

    /// Returns all names of a tensor, its own first.
    fn all<'a>(&'a self, tensor: &'a Tensor) -> impl Iterator<Item = &'a str> {
        let others = self.names.get(tensor.name()).into_iter().flatten();
        std::iter::once(tensor.name()).chain(others.map(String::as_str))
    }
}
