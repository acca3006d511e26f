//! Selection of the tensors that are moved from several sources, with their metadata.

use std::collections::{HashMap, HashSet};

use serdes_device_state::matches_any;

use crate::{Error, Metadata, Refused, Source, TensorInfo, aliases};

/// A tensor of a source.
#[derive(Clone, Copy)]
pub(super) struct Planned<'a> {
    pub(super) source: &'a dyn Source,
    pub(super) position: usize,
    pub(super) info: &'a TensorInfo,
}

/// Tensors and metadata to move.
pub(super) struct Plan<'a> {
    pub(super) tensors: Vec<Planned<'a>>,
    /// Metadata of the first source that has any, with the names that are left out because they are
    /// aliases.
    pub(super) metadata: Metadata,
    /// Tensors and values that are left out because they cannot be moved.
    pub(super) skipped: Vec<Refused>,
    /// Properties of moved tensors that are lost.
    pub(super) left_out: Vec<Refused>,
}

/// Announces the tensors to their sources, in the order in which they will be read.
pub(super) fn announce<'a>(
    sources: &[Box<dyn Source>],
    tensors: impl Iterator<Item = &'a Planned<'a>>,
) {
    let address = |source: &dyn Source| std::ptr::from_ref(source).cast::<()>();
    let mut own: HashMap<*const (), Vec<usize>> = HashMap::new();
    for planned in tensors {
        own.entry(address(planned.source)).or_default().push(planned.position);
    }
    for source in sources {
        source.announce(own.get(&address(&**source)).map_or(&[], Vec::as_slice));
    }
}

/// Criteria of the selection.
#[derive(Clone, Copy)]
pub(super) struct Choice<'a> {
    /// Patterns of names; empty for all.
    pub(super) only: &'a [String],
    /// True to leave out tensors and values that cannot be moved.
    pub(super) skip_unsupported: bool,
    /// True to move each tensor once and put its aliases into the metadata.
    pub(super) keep_aliases: bool,
}

/// Limit on the size of all copies of a tensor under its names, as a multiple of the stored size.
const MOST_GROWTH: u64 = 16;

/// Minimum of bytes for all copies, even if little is stored.
const LEAST_GROWTH: u64 = 256 << 20;

/// Checks the limit on copies: returns an error if `written` bytes, the last of them for `last`,
/// are too large a multiple of the `stored` ones.
pub(super) fn check_growth(stored: u64, written: u64, last: &str) -> Result<(), Error> {
    if written <= stored.saturating_mul(MOST_GROWTH).saturating_add(LEAST_GROWTH) {
        return Ok(());
    }
    let reason = format!(
        "tensors have so many names that {written} bytes would be written of {stored}; write a state (.sds), which stores each tensor once"
    );
    Err(Error::refused(last, reason))
}

/// Returns the size of all tensors together in bytes.
pub(super) fn total<'a>(tensors: impl Iterator<Item = &'a TensorInfo>) -> u64 {
    tensors.fold(0, |total, info| total.saturating_add(info.bytes))
}

/// Returns the stored bytes of the sources, each tensor counted once.
fn stored(sources: &[Box<dyn Source>]) -> u64 {
    let own = |source: &dyn Source| {
        let infos = source.tensors().iter().enumerate();
        total(infos.filter(|(at, _)| source.alias_of(*at).is_none()).map(|(_, info)| info))
    };
    sources.iter().fold(0, |total, source| total.saturating_add(own(&**source)))
}

/// Plans a transfer of the tensors of `sources`.
///
/// # Errors
/// [`Error::CannotSave`] for tensors that cannot be moved, unless they may be left out; two tensors
/// of one name; a pattern without a match; names for far more bytes than are stored.
pub(super) fn plan<'a>(
    sources: &'a [Box<dyn Source>],
    choice: Choice<'_>,
) -> Result<Plan<'a>, Error> {
    let Choice { only, skip_unsupported, keep_aliases } = choice;
    let is_chosen = |name: &str| only.is_empty() || matches_any(only, name);
    let all = || sources.iter().flat_map(|source| source.tensors());
    let mut names = HashSet::new();
    if let Some(info) = all().find(|info| !names.insert(info.name.as_str())) {
        return Err(serdes_device_state::Error::duplicate_name(&info.name).into());
    }
    for pattern in only {
        if !all().any(|info| matches_any(&[pattern], &info.name)) {
            let (pattern, count) = (pattern.clone(), all().count());
            return Err(Error::NoMatch { pattern, count });
        }
    }
    let refused = sources.iter().flat_map(|source| source.refused());
    let mut skipped: Vec<Refused> = refused.filter(|one| is_chosen(&one.name)).cloned().collect();
    if !skip_unsupported && !skipped.is_empty() {
        let Refused { name, reason } = skipped.remove(0);
        return Err(Error::CannotSave { name, reason, others: skipped });
    }
    let passed_over = sources.iter().flat_map(|source| source.passed_over());
    let passed_over = passed_over.filter(|one| !one.name.is_empty());
    let left_out = sources.iter().flat_map(|source| source.left_out()).chain(passed_over);
    let mut left_out: Vec<Refused> = left_out.filter(|one| is_chosen(&one.name)).cloned().collect();
    let (mut tensors, mut other_names) = (Vec::new(), Vec::new());
    for source in sources {
        let source = &**source;
        let infos = source.tensors();
        // The first chosen name of a tensor becomes its primary name.
        let mut first: HashMap<usize, &str> = HashMap::new();
        for (position, info) in infos.iter().enumerate().filter(|(_, info)| is_chosen(&info.name)) {
            if keep_aliases {
                let bytes = source.alias_of(position).unwrap_or(position);
                let name = *first.entry(bytes).or_insert(&info.name);
                if name != info.name {
                    other_names.push((&*info.name, name));
                    continue;
                }
            }
            tensors.push(Planned { source, position, info });
        }
    }
    if let Some(last) = tensors.last().filter(|_| !keep_aliases) {
        let written = total(tensors.iter().map(|planned| planned.info));
        check_growth(stored(sources), written, &last.info.name)?;
    }
    let mut told = sources.iter().map(|source| source.metadata()).filter(|told| told.is_some());
    let metadata = told.next().cloned().flatten();
    for name in told.flat_map(aliases::names_of) {
        let reason = "is a value of another source than the first one that has some";
        left_out.push(Refused::new(name, reason));
    }
    Ok(Plan { tensors, metadata: aliases::put(metadata, &other_names), skipped, left_out })
}
