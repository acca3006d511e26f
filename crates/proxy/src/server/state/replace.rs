//! Stores arrays of an open session in the state, in place of others, atomically.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Arc, Weak},
};

use serdes::codec::Status;

use super::{
    kept::Contents,
    kept_array::{Kept, NameReservation},
    kept_arrays::address,
    names::{Names, Owner, name_bytes},
    plan,
    store::State,
};
use crate::{server::arrays::Array, status::status};

/// Maximum bytes of names and owners of all arrays for storing more: most of the file's header. A
/// client that filled it would prevent the arrays of all clients from being saved.
const NAMES: usize = 64 << 20;

/// Maximum number of arrays that may leave the state during a save by replacements: the save
/// remembers them.
const DELETED: usize = 1 << 16;

/// Reserves a name within the limits of a client, its bytes in the file's header, and bytes for an
/// array that has another name.
pub(crate) type Reserve<'a> =
    dyn Fn(&str, usize, Option<u64>) -> Result<NameReservation, Status> + 'a;

/// Arrays that are to be stored.
pub(crate) struct Replacing<'a> {
    /// Prefix of all names, before a `/`: arrays below it are replaced.
    pub(crate) below: String,
    /// Handles and names, with the arrays.
    pub(crate) arrays: Vec<(u64, String, Arc<Array>)>,
    /// Another owner whose arrays may be replaced.
    pub(crate) previous: Option<Owner>,
    /// Reserves a name, and the bytes of an array that the state has already.
    pub(crate) reserve: &'a Reserve<'a>,
}

impl State {
    /// Stores arrays of a session in place of those below the same name. They are in the state at
    /// once, and outlive the session.
    ///
    /// # Errors
    /// FAILED_PRECONDITION without a state file, and for arrays whose data have not arrived;
    /// INVALID_ARGUMENT for names that are not below the prefix, or duplicates; ALREADY_EXISTS for
    /// names of another client; RESOURCE_EXHAUSTED if a limit of the client, the file or the
    /// current save is exceeded. On error nothing changes.
    pub(crate) fn replace(&self, names: &Names, replacing: Replacing<'_>) -> Result<(), Status> {
        let Replacing { below, arrays, previous, reserve } = replacing;
        if !self.is_kept() {
            return Err(status!(
                FailedPrecondition,
                "this server keeps no arrays; start it with a file for its state"
            ));
        }
        let begin = format!("{below}/");
        check(&below, &begin, &arrays)?;
        // Held until the arrays are stored: no session gets their names meanwhile.
        let mut contents = self.contents();
        self.check_claims(names, &below, &arrays)?;
        let owner = names.owner_of(&below);
        let is_foreign =
            |of: &Owner| !owner.may_delete(of) && previous.as_ref().is_none_or(|known| known != of);
        let before = contents.below(&begin);
        if let Some((name, _)) = before.clone().find(|(_, kept)| is_foreign(&kept.owner)) {
            return Err(taken(name));
        }
        let before: Vec<String> = before.map(|(name, _)| name.clone()).collect();
        contents.check_limits(&before, &owner, &arrays)?;
        let reservations = contents.reserve_names(&before, &owner, &arrays, reserve)?;
        let mut saved = contents.take_out(before);
        let mut shown = names.shown();
        for ((handle, name, array), reservation) in arrays.into_iter().zip(reservations) {
            shown.insert(handle, name.clone());
            let saved = saved.remove(&name).flatten();
            let (owner, array, _reservation) = (owner.clone(), Some(array), Some(reservation));
            contents.arrays.insert(name, Kept { owner, array, saved, _reservation });
        }
        Ok(())
    }

    /// # Errors
    /// ALREADY_EXISTS for names of another client's open session.
    fn check_claims(
        &self,
        names: &Names,
        below: &str,
        arrays: &[(u64, String, Arc<Array>)],
    ) -> Result<(), Status> {
        let claims = self.claims();
        if claims.has_rival(names, below) {
            return Err(taken(below));
        }
        let rival = arrays.iter().find(|(_, name, _)| claims.has_rival_array(names, name));
        rival.map_or(Ok(()), |(_, name, _)| Err(taken(name)))
    }
}

impl Contents {
    /// Returns the arrays with this prefix of names.
    fn below(&self, begin: &str) -> impl Iterator<Item = (&String, &Kept)> + Clone {
        let from = self.arrays.range(begin.to_owned()..);
        from.take_while(move |(name, _)| name.starts_with(begin))
    }

    /// Returns the arrays of these names.
    fn with_names<'a>(
        &'a self,
        names: &'a [String],
    ) -> impl Iterator<Item = (&'a String, &'a Kept)> {
        names.iter().filter_map(|name| Some((name, self.arrays.get(name)?)))
    }

    /// Checks the limits for storing arrays in place of those named in `before`.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if the names of all arrays exceed the file's limit, or the current save
    /// would have to remember too many.
    fn check_limits(
        &self,
        before: &[String],
        owner: &Owner,
        arrays: &[(u64, String, Arc<Array>)],
    ) -> Result<(), Status> {
        if self.deleted.as_ref().is_some_and(|deleted| deleted.len() >= DELETED) {
            return Err(status!(
                ResourceExhausted,
                "the state is being saved, and {DELETED} of its arrays were replaced meanwhile; keep yours when it is saved"
            ));
        }
        let leave = self.with_names(before).map(|(name, kept)| name_bytes(name, &kept.owner));
        let stay = self.arrays.name_bytes().saturating_sub(leave.sum());
        let new = arrays.iter().map(|(_, name, _)| name_bytes(name, owner));
        let bytes = new.fold(stay, usize::saturating_add);
        if bytes > NAMES {
            return Err(status!(
                ResourceExhausted,
                "the names of the arrays would have {bytes} bytes in the state of this server, and at most {NAMES} are kept; take fewer or shorter ones"
            ));
        }
        Ok(())
    }

    /// Reserves the names of these arrays, which replace those named in `before`, within the limits
    /// of the client.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if a limit is exceeded.
    fn reserve_names(
        &self,
        before: &[String],
        owner: &Owner,
        arrays: &[(u64, String, Arc<Array>)],
        reserve: &Reserve<'_>,
    ) -> Result<Vec<Arc<NameReservation>>, Status> {
        let mut leaving: HashMap<usize, usize> = HashMap::new();
        for array in self.with_names(before).filter_map(|(_, kept)| kept.array.as_ref()) {
            *leaving.entry(address(array)).or_default() += 1;
        }
        let mut new = HashSet::with_capacity(arrays.len());
        let reservations = arrays.iter().map(|(_, name, array)| {
            let leaving = leaving.get(&address(array)).copied().unwrap_or(0);
            let stays = self.arrays.name_count(array) > leaving;
            let is_known = !new.insert(address(array)) || stays;
            let bytes = is_known.then(|| bytes(array));
            reserve(name, name_bytes(name, owner), bytes).map(Arc::new)
        });
        reservations.collect()
    }

    /// Removes arrays; returns the arrays under which the file has them.
    fn take_out(&mut self, names: Vec<String>) -> BTreeMap<String, Option<Weak<Array>>> {
        let mut saved = BTreeMap::new();
        for name in names {
            let Some(kept) = self.arrays.remove(&name) else { continue };
            if let (Some(deleted), Some(array)) = (&mut self.deleted, &kept.array) {
                deleted.push((name.clone(), Arc::downgrade(array)));
            }
            saved.insert(name, kept.saved);
        }
        saved
    }
}

/// Returns the size of an array's shards in bytes.
fn bytes(array: &Array) -> u64 {
    let shards = array.shards.iter().filter_map(|shard| shard.buffer.now()?.ok());
    shards.map(|memory| memory.size()).fold(0, u64::saturating_add)
}

fn taken(name: &str) -> Status {
    status!(
        AlreadyExists,
        "`{}` is the name of another client's arrays in the state of this server; give yours another",
        name.escape_debug()
    )
}

/// # Errors
/// INVALID_ARGUMENT for names that are not below `begin`, or duplicates; FAILED_PRECONDITION for an
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
