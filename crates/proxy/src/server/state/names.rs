//! Names under which a session's arrays are saved, and the owners of names.
//!
//! Does not depend on the location of arrays' bytes, nor on how a state is written.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use serdes::{
    codec::Status,
    ifrt::{AttributeMap, AttributeValue},
};

use crate::{server::arrays::Array, status::status};

/// Key of the initialization data for the name of the session; followed by a dot and a handle, for
/// the name of an array.
const NAME: &str = "serdes.state.name";

/// Prefix of the names of a session whose client gives none.
const UNNAMED: &str = "session-";

/// Owner of an array of the state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    /// No owner: arrays of unknown clients, in files that the server did not write.
    #[default]
    Unowned,
    /// All sessions of this name, on a server that does not authenticate clients.
    Named(String),
    /// The client of this identity.
    Known(String),
}

impl Owner {
    /// Returns the text for the metadata of a state; `None` for no owner.
    pub(crate) fn to_text(&self) -> Option<String> {
        match self {
            Self::Unowned => None,
            Self::Named(name) => Some(format!("session:{name}")),
            Self::Known(identity) => Some(format!("client:{identity}")),
        }
    }

    /// Parses [`to_text`](Self::to_text). Unknown kinds of owners from newer builds are kept
    /// distinct: no client of this build matches one.
    pub(crate) fn from_text(text: &str) -> Self {
        match text.split_once(':') {
            Some(("session", name)) => Self::Named(name.to_owned()),
            Some(("client", identity)) => Self::Known(identity.to_owned()),
            _ => Self::Known(text.to_owned()),
        }
    }

    const fn is_known(&self) -> bool {
        matches!(self, Self::Known(_))
    }

    /// Returns true if a session of this owner may read the arrays of `other`.
    pub(crate) fn may_read(&self, other: &Self) -> bool {
        !other.is_known() || self == other
    }

    /// Returns true if a session of this owner may save under a name that belongs to `other`.
    pub(crate) fn may_replace(&self, other: &Self) -> bool {
        self == other || (*other == Self::Unowned && !self.is_known())
    }

    /// Returns true if a session of this owner may delete arrays of `other` from the state.
    /// Unauthenticated clients are indistinguishable; each may delete the arrays of any of them.
    pub(crate) fn may_delete(&self, other: &Self) -> bool {
        self == other || !(self.is_known() || other.is_known())
    }
}

/// The names of one session's arrays.
#[derive(Debug)]
pub(crate) struct Names {
    pub(crate) owner: Owner,
    /// Number of the session, for names that the client did not choose.
    pub(crate) number: u64,
    /// Requested names of the session, and of arrays by handle.
    prefix: Option<String>,
    given: BTreeMap<u64, String>,
    /// True once the client's names are granted. Until then, and if they are refused, its arrays
    /// are named as those of a client without requests.
    granted: AtomicBool,
    /// The arrays of the state that the client was shown.
    shown: Mutex<HashMap<u64, String>>,
}

impl Names {
    pub(crate) fn new(
        number: u64,
        initialization: &AttributeMap,
        identity: Option<String>,
    ) -> Self {
        let text = |value: &AttributeValue| match value {
            AttributeValue::String(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
            _ => None,
        };
        let prefix = initialization.get(NAME).ok().and_then(text);
        let given = initialization.iter().filter_map(|(key, value)| {
            let handle = key.strip_prefix(NAME)?.strip_prefix('.')?.parse().ok()?;
            Some((handle, text(value)?))
        });
        let owner = match (identity, &prefix) {
            (Some(identity), _) => Owner::Known(identity),
            (None, Some(name)) => Owner::Named(name.clone()),
            (None, None) => Owner::Unowned,
        };
        Self {
            owner,
            number,
            given: given.collect(),
            prefix,
            granted: AtomicBool::new(false),
            shown: Mutex::default(),
        }
    }

    /// Returns the owner of arrays that the session stores below a name.
    pub(crate) fn owner_of(&self, below: &str) -> Owner {
        match &self.owner {
            Owner::Known(identity) => Owner::Known(identity.clone()),
            Owner::Unowned | Owner::Named(_) => Owner::Named(below.to_owned()),
        }
    }

    /// Returns the number of bytes of the file's header that the names of single arrays need.
    pub(crate) fn given_bytes(&self) -> usize {
        self.given.values().map(|name| name_bytes(name, &self.owner)).sum()
    }

    /// Returns the number of bytes of the file's header that the name of any other array needs,
    /// granted or not.
    pub(crate) fn most_bytes(&self) -> usize {
        let session = unnamed(self.number);
        let session =
            self.prefix.as_ref().filter(|it| it.len() > session.len()).unwrap_or(&session);
        name_bytes(&format!("{session}/{}", u64::MAX), &self.owner)
    }

    /// Returns true if the client requested names.
    pub(crate) fn are_wished(&self) -> bool {
        self.prefix.is_some() || !self.given.is_empty()
    }

    /// Returns true if its names are granted.
    pub(crate) fn is_granted(&self) -> bool {
        self.granted.load(Ordering::Acquire)
    }

    pub(crate) fn grant(&self) {
        self.granted.store(true, Ordering::Release);
    }

    /// Returns the name under which the array of a handle is saved, and true if the client chose
    /// it.
    pub(crate) fn name(&self, handle: u64) -> (String, bool) {
        if self.is_granted() {
            if let Some(name) = self.given.get(&handle) {
                return (name.clone(), true);
            }
            if let Some(prefix) = &self.prefix {
                return (format!("{prefix}/{handle}"), true);
            }
        }
        (format!("{}/{handle}", unnamed(self.number)), false)
    }

    /// Returns true if one of these claims belongs to another session of another client.
    fn has_rival(&self, claims: Option<&Vec<Claim>>) -> bool {
        claims.into_iter().flatten().any(|(number, owner)| {
            *number != self.number && !(owner.is_known() && *owner == self.owner)
        })
    }

    /// Returns the session's arrays with the names under which they are saved.
    pub(crate) fn named(&self, live: Vec<(u64, Arc<Array>)>) -> NamedArrays {
        // Arrays from the server have their names already. A client also leaves the handles of a
        // program's results to the server when the program runs for the first time.
        let shown = self.shown();
        let own = live.into_iter().filter(|(handle, _)| !shown.contains_key(handle));
        let arrays = own.map(|(handle, array)| {
            let (name, is_chosen) = self.name(handle);
            NamedArray { name, array, is_chosen }
        });
        NamedArrays { number: self.number, owner: self.owner.clone(), arrays: arrays.collect() }
    }

    /// Returns the names of the state's arrays that the client has seen, by handle.
    pub(crate) fn shown(&self) -> MutexGuard<'_, HashMap<u64, String>> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks that the names do not conflict.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for a name of two arrays.
    fn check(&self) -> Result<(), Status> {
        let mut names: Vec<&String> = self.given.values().collect();
        names.sort_unstable();
        let twice = names.windows(2).find(|pair| pair.first() == pair.last());
        let taken = self.given.iter().find(|(handle, name)| {
            scope(name).is_some_and(|(scope, number)| {
                Some(scope) == self.prefix.as_deref() && number != **handle
            })
        });
        match (twice.and_then(<[&String]>::first), taken) {
            (Some(name), _) => Err(status!(
                InvalidArgument,
                "the initialization data gives the name `{}` to two arrays; give each its own",
                name.escape_debug()
            )),
            (None, Some((handle, name))) => Err(status!(
                InvalidArgument,
                "the initialization data names array {handle} `{}`, which is the name of another of its arrays; give each its own",
                name.escape_debug()
            )),
            (None, None) => Ok(()),
        }
    }
}

/// The arrays of a session under the names that they are saved with.
#[derive(Debug)]
pub(crate) struct NamedArrays {
    /// Number of the session.
    pub(super) number: u64,
    pub(super) owner: Owner,
    pub(super) arrays: Vec<NamedArray>,
}

/// An array under the name that it is saved with.
#[derive(Debug)]
pub(super) struct NamedArray {
    pub(super) name: String,
    pub(super) array: Arc<Array>,
    /// True if the client chose the name.
    pub(super) is_chosen: bool,
}

fn unnamed(number: u64) -> String {
    format!("{UNNAMED}{number}")
}

/// Splits a name that an array has from its session and its handle.
fn scope(name: &str) -> Option<(&str, u64)> {
    let (scope, digits) = name.rsplit_once('/')?;
    let handle: u64 = digits.parse().ok()?;
    (handle.to_string() == digits).then_some((scope, handle))
}

/// Returns the number of the session without a name that saved an array under `name`.
pub(crate) fn number_of(name: &str) -> Option<u64> {
    scope(name)?.0.strip_prefix(UNNAMED)?.parse().ok()
}

/// A claim to a name: the number of the session, and its owner.
type Claim = (u64, Owner);

/// Names that open sessions have claimed. Two sessions of one authenticated client may share them.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    /// Names of sessions, including those that the server assigned.
    prefixes: HashMap<String, Vec<Claim>>,
    /// Names of arrays.
    names: HashMap<String, Vec<Claim>>,
    /// Claims on the session part of chosen array names.
    scopes: HashMap<String, Vec<Claim>>,
    last_number: u64,
}

impl Claims {
    /// Creates an empty set of claims; sessions are numbered after `last_number`.
    pub(crate) fn after(last_number: u64) -> Self {
        Self { last_number, ..Self::default() }
    }

    /// Returns the next number whose names are free; the session of this number claims them.
    pub(crate) fn take_number(&mut self, is_taken: impl Fn(&str) -> bool) -> u64 {
        loop {
            self.last_number = self.last_number.wrapping_add(1);
            let (number, prefix) = (self.last_number, unnamed(self.last_number));
            if !self.prefixes.contains_key(&prefix)
                && !self.scopes.contains_key(&prefix)
                && !is_taken(&prefix)
            {
                self.prefixes.insert(prefix, vec![(number, Owner::Unowned)]);
                return number;
            }
        }
    }

    /// Claims the requested names for a session; returns one that another session has, if there is
    /// one.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for conflicting requests.
    pub(crate) fn take(&mut self, names: &Names) -> Result<Option<String>, Status> {
        names.check()?;
        let is_rival = |claims| names.has_rival(claims);
        if let Some(prefix) = &names.prefix
            && (is_rival(self.prefixes.get(prefix)) || is_rival(self.scopes.get(prefix)))
        {
            return Ok(Some(prefix.clone()));
        }
        for name in names.given.values() {
            let scope = scope(name).map(|(scope, _)| scope);
            if is_rival(self.names.get(name))
                || scope.is_some_and(|scope| is_rival(self.prefixes.get(scope)))
            {
                return Ok(Some(name.clone()));
            }
        }
        let claim = || (names.number, names.owner.clone());
        if let Some(prefix) = &names.prefix {
            self.prefixes.entry(prefix.clone()).or_default().push(claim());
        }
        for name in names.given.values() {
            self.names.entry(name.clone()).or_default().push(claim());
            if let Some((scope, _)) = scope(name) {
                self.scopes.entry(scope.to_owned()).or_default().push(claim());
            }
        }
        Ok(None)
    }

    /// Returns true if another session of another client has claimed the name `below`, for itself
    /// or for arrays.
    pub(crate) fn has_rival(&self, names: &Names, below: &str) -> bool {
        let claims = [self.prefixes.get(below), self.scopes.get(below)];
        claims.into_iter().any(|claims| names.has_rival(claims))
    }

    /// Returns true if another session of another client saves one of its arrays under `name`.
    pub(crate) fn has_rival_array(&self, names: &Names, name: &str) -> bool {
        let session = scope(name).and_then(|(scope, _)| self.prefixes.get(scope));
        [self.names.get(name), session].into_iter().any(|claims| names.has_rival(claims))
    }

    /// Releases all claims of a session.
    pub(crate) fn release(&mut self, names: &Names) {
        let free = |claims: &mut HashMap<String, Vec<Claim>>, key: &str| {
            if let Some(holders) = claims.get_mut(key) {
                holders.retain(|(number, _)| *number != names.number);
                if holders.is_empty() {
                    claims.remove(key);
                }
            }
        };
        free(&mut self.prefixes, &unnamed(names.number));
        if let Some(prefix) = &names.prefix {
            free(&mut self.prefixes, prefix);
        }
        for name in names.given.values() {
            free(&mut self.names, name);
            if let Some((scope, _)) = scope(name) {
                free(&mut self.scopes, scope);
            }
        }
    }
}

/// Returns the first requested name that belongs to another owner in the state, where `arrays`
/// returns names and owners from a name on.
pub(crate) fn foreign<'a, I>(names: &Names, arrays: impl Fn(&str) -> I) -> Option<String>
where
    I: Iterator<Item = (&'a str, &'a Owner)>,
{
    let is_foreign = |owner: &Owner| !names.owner.may_replace(owner);
    let prefix = names.prefix.as_ref().filter(|prefix| {
        let begin = format!("{prefix}/");
        arrays(&begin).take_while(|(name, _)| name.starts_with(&begin)).any(|(name, owner)| {
            scope(name).is_some_and(|(scope, _)| scope == prefix.as_str()) && is_foreign(owner)
        })
    });
    let given = || {
        names.given.values().find(|wished| {
            arrays(wished)
                .next()
                .is_some_and(|(name, owner)| name == wished.as_str() && is_foreign(owner))
        })
    };
    prefix.or_else(given).cloned()
}

/// Prefix of the metadata keys for the owner of an array, followed by the array's name.
pub(super) const OWNER: &str = "serdes.state.owner/";

/// Returns the number of bytes of the file's header for the owner of an array.
pub(super) fn name_bytes(name: &str, owner: &Owner) -> usize {
    // Two lengths of four bytes, and the owner's kind.
    let owner = match owner {
        Owner::Unowned => 0,
        Owner::Named(name) | Owner::Known(name) => "session:".len() + name.len(),
    };
    OWNER.len() + name.len() + owner + 8
}

#[cfg(test)]
mod tests {
    use super::*;
    use serdes::codec::StatusCode;

    fn names(number: u64, data: &[(&str, &str)], identity: Option<&str>) -> Names {
        let map = data.iter().map(|(key, value)| (*key, AttributeValue::from(*value))).collect();
        Names::new(number, &map, identity.map(str::to_owned))
    }

    #[test]
    fn array_is_named_by_session_and_handle_or_by_the_client() {
        let data = [("serdes.state.name", "model"), ("serdes.state.name.7", "weights")];
        let names = names(3, &data, None);
        assert_eq!(names.name(1), ("session-3/1".to_owned(), false));
        names.grant();
        assert_eq!(names.name(1), ("model/1".to_owned(), true));
        assert_eq!(names.name(7), ("weights".to_owned(), true));
    }

    #[test]
    fn names_of_open_sessions_stay_with_them() {
        let mut claims = Claims::default();
        let first = names(1, &[("serdes.state.name", "a"), ("serdes.state.name.1", "b/2")], None);
        assert_eq!(claims.take(&first), Ok(None));
        for (wish, refused) in [
            (("serdes.state.name", "a"), true),
            (("serdes.state.name", "b"), true),
            (("serdes.state.name.5", "b/2"), true),
            (("serdes.state.name.5", "a/9"), true),
            (("serdes.state.name.5", "a/x"), false),
            (("serdes.state.name.5", "b/3"), false),
            (("serdes.state.name", "c"), false),
        ] {
            let second = names(2, &[wish], None);
            assert_eq!(claims.take(&second).unwrap().is_some(), refused, "{wish:?}");
            claims.release(&second);
        }
        claims.release(&first);
        assert_eq!(claims.take(&names(2, &[("serdes.state.name", "a")], None)), Ok(None));
    }

    #[test]
    fn a_known_client_shares_its_names_with_itself_alone() {
        let mut claims = Claims::default();
        let data = [("serdes.state.name", "a")];
        assert_eq!(claims.take(&names(1, &data, Some("alice"))), Ok(None));
        assert_eq!(claims.take(&names(2, &data, Some("alice"))), Ok(None));
        assert!(claims.take(&names(3, &data, Some("bob"))).unwrap().is_some());
    }

    #[test]
    fn name_of_two_arrays_is_refused() {
        for data in [
            [("serdes.state.name.1", "x"), ("serdes.state.name.2", "x")],
            [("serdes.state.name", "model"), ("serdes.state.name.1", "model/2")],
        ] {
            let refused = Claims::default().take(&names(1, &data, None)).unwrap_err();
            assert_eq!(refused.code(), StatusCode::InvalidArgument, "{data:?}");
        }
    }

    #[test]
    fn numbers_pass_over_names_that_are_taken() {
        let mut claims = Claims::default();
        assert_eq!(claims.take(&names(90, &[("serdes.state.name", "session-2")], None)), Ok(None));
        assert_eq!(claims.take_number(|_| false), 1);
        assert_eq!(claims.take_number(|prefix| prefix == "session-3"), 4);
        assert_eq!(number_of("session-4/17"), Some(4));
        assert_eq!(number_of("session-four/17"), None);
    }

    #[test]
    fn owners_are_read_as_they_were_written() {
        for owner in [Owner::Named("a:b".to_owned()), Owner::Known("token 1".to_owned())] {
            assert_eq!(Owner::from_text(&owner.to_text().unwrap()), owner);
        }
        assert_eq!(Owner::Unowned.to_text(), None);
        // A kind of owner that this build does not know.
        assert!(!Owner::Unowned.may_replace(&Owner::from_text("group:admins")));
    }

    #[test]
    fn owner_decides_who_reads_replaces_and_deletes() {
        let named = |name: &str| Owner::Named(name.to_owned());
        let known = |name: &str| Owner::Known(name.to_owned());
        for (who, whose, read, replace, delete) in [
            (Owner::Unowned, Owner::Unowned, true, true, true),
            (Owner::Unowned, named("a"), true, false, true),
            (Owner::Unowned, known("a"), false, false, false),
            (named("a"), named("a"), true, true, true),
            (named("a"), named("b"), true, false, true),
            (named("a"), Owner::Unowned, true, true, true),
            (known("a"), known("a"), true, true, true),
            (known("a"), known("b"), false, false, false),
            (known("a"), named("a"), true, false, false),
            (known("a"), Owner::Unowned, true, false, false),
        ] {
            let found = (who.may_read(&whose), who.may_replace(&whose), who.may_delete(&whose));
            assert_eq!(found, (read, replace, delete), "{who:?} and what belongs to {whose:?}");
        }
    }
}
