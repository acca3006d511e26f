//! Arrays of an open session that take the place of others in the state, all at once.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use serdes::codec::Status;

use super::{
    kept::Kept,
    names::{Names, Owner},
    plan,
    store::State,
};
use crate::{server::arrays::Array, status::status};

/// Arrays that are to be kept.
pub(crate) struct Replacing {
    /// Beginning of all names, before a `/`: what the state has there is replaced.
    pub(crate) below: String,
    /// Handles, names, and the arrays.
    pub(crate) arrays: Vec<(u64, String, Arc<Array>)>,
    /// Another owner whose arrays may be replaced.
    pub(crate) previous: Option<Owner>,
}

impl State {
    /// Keeps arrays of a session in place of those below the same name. No other session sees
    /// them until it is over; the state does from now on, and they outlive the session.
    ///
    /// # Errors
    /// FAILED_PRECONDITION without a file for the state, and for arrays whose data have not
    /// arrived; INVALID_ARGUMENT for names that are not below it, or twice; ALREADY_EXISTS for
    /// names of another client. Nothing changes then.
    pub(crate) fn replace(&self, names: &Names, replacing: Replacing) -> Result<(), Status> {
        let Replacing { below, arrays, previous } = replacing;
        if !self.is_kept() {
            return Err(status!(
                FailedPrecondition,
                "this server keeps no arrays; start it with a file for its state"
            ));
        }
        let begin = format!("{below}/");
        check(&below, &begin, &arrays)?;
        let taken = |name: &str| {
            status!(
                AlreadyExists,
                "`{}` is the name of another client's arrays in the state of this server; give yours another",
                name.escape_debug()
            )
        };
        if self.claims().has_rival(names, &below) {
            return Err(taken(&below));
        }
        let owner = names.owner_of(&below);
        let is_foreign =
            |of: &Owner| !owner.may_delete(of) && previous.as_ref().is_none_or(|known| known != of);
        let mut contents = self.contents();
        let before = contents.arrays.range(begin.clone()..);
        let before = before.take_while(|(name, _)| name.starts_with(&begin));
        if let Some((name, _)) = before.clone().find(|(_, kept)| is_foreign(&kept.owner)) {
            return Err(taken(name));
        }
        let before: Vec<String> = before.map(|(name, _)| name.clone()).collect();
        let mut saved = BTreeMap::new();
        for name in before {
            let Some(kept) = contents.arrays.remove(&name) else { continue };
            if let (Some(deleted), Some(array)) = (&mut contents.deleted, &kept.array) {
                deleted.push((name.clone(), Arc::downgrade(array)));
            }
            saved.insert(name, kept.saved);
        }
        let mut shown = names.shown();
        for (handle, name, array) in arrays {
            shown.insert(handle, name.clone());
            let saved = saved.remove(&name).flatten();
            let kept = Kept { owner: owner.clone(), array: Some(array), saved };
            contents.arrays.insert(name, kept);
        }
        Ok(())
    }
}

/// # Errors
/// INVALID_ARGUMENT for names that are not below `begin`, or twice; FAILED_PRECONDITION for an
/// array whose data have not arrived.
fn check(below: &str, begin: &str, arrays: &[(u64, String, Arc<Array>)]) -> Result<(), Status> {
    if below.is_empty() {
        return Err(status!(InvalidArgument, "arrays are kept below a name; found none"));
    }
    let mut known = HashSet::with_capacity(arrays.len());
    for (handle, name, array) in arrays {
        if !name.starts_with(begin) || name.len() == begin.len() {
            return Err(status!(
                InvalidArgument,
                "array {handle} is called `{}`; expected a name that begins with `{}`",
                name.escape_debug(),
                begin.escape_debug()
            ));
        }
        if !known.insert(name) {
            return Err(status!(
                InvalidArgument,
                "two arrays are called `{}`; give each its own name",
                name.escape_debug()
            ));
        }
        if plan::parts(array).is_err() {
            return Err(status!(
                FailedPrecondition,
                "the data of array {handle} have not arrived; wait for it, and keep it then"
            ));
        }
    }
    Ok(())
}
