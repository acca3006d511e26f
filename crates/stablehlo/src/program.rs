//! A program with its features, and the versions that can read it.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use super::{
    Need, ProgramBridge, StableHloError, StableHloVersion,
    bytecode::{Bytecode, Operation},
    catalogue::{self, VHLO, attribute_code},
    change::{Change, What},
    custom_calls,
    mesh::MeshSymbols,
    older, rewrite,
    sorts::{Sorts, SortsFound},
};

/// The version of a custom call that uses the typed FFI.
const TYPED: u64 = 4;

/// Limit on the length of a bridge's answer, as a multiple of the length of its input.
const LONGEST_ANSWER: usize = 16;

/// A program, read as far as needed to determine its readers.
#[derive(Clone, Debug)]
pub struct Program<'a> {
    bytes: &'a [u8],
    file: Bytecode<'a>,
    needs: Vec<Need>,
    changes: Vec<Change>,
    custom_calls: BTreeSet<Option<&'a str>>,
    operation_dialects: BTreeSet<&'a str>,
    operations: BTreeSet<&'a str>,
    sorts: Sorts<'a>,
}

impl<'a> Program<'a> {
    /// Reads a portable artifact.
    ///
    /// # Errors
    /// If the bytes are not a portable artifact, have another encoding, or are inconsistent.
    pub fn read(bytes: &'a [u8]) -> Result<Self, StableHloError> {
        let file = Bytecode::read(bytes)?;
        let mut survey = Survey::default();
        file.walk(|operation| survey.note(&file, operation))?;
        let calls = survey.custom_calls.iter().copied();
        let dictionaries = survey.dictionaries_of_calls.iter().copied();
        let custom_calls = custom_calls::targets(&file, calls, dictionaries);
        let operation_dialects =
            survey.dialects.iter().map(|dialect| file.dialect(*dialect)).collect();
        let operations =
            survey.operations.keys().map(|operation| file.operation_name(*operation).1).collect();
        let sorts = survey.sorts.read(&file, &survey.owners);
        let mut program = Self {
            bytes,
            sorts,
            file,
            needs: Vec::new(),
            changes: Vec::new(),
            custom_calls,
            operation_dialects,
            operations,
        };
        program.judge_operations(&survey);
        program.judge_types(&survey);
        program.judge_attributes(&survey);
        if program.version().release() > StableHloVersion::NEWEST_KNOWN {
            program.needs.push(Need {
                feature: format!("rules after {}", StableHloVersion::NEWEST_KNOWN),
                since: None,
                otherwise: None,
            });
        }
        Ok(program)
    }

    /// Returns the program for a reader of version `reader`: unchanged, if the reader knows
    /// everything in it or the program cannot be read; else converted here; else converted by
    /// `bridge`.
    ///
    /// Without a bridge, a reader before [`StableHloVersion::OLDEST_TARGET`] gets the program
    /// unchanged, because its features are not known.
    ///
    /// # Errors
    /// [`StableHloError::Inexpressible`] if there is no bridge; [`StableHloError::Bridge`] with the
    /// message of the bridge, or with the defect of its answer.
    pub fn for_reader(
        bytes: &'a [u8],
        reader: StableHloVersion,
        bridge: Option<&dyn ProgramBridge>,
    ) -> Result<Cow<'a, [u8]>, StableHloError> {
        // The reader is to refuse what is not an artifact, or is damaged.
        let Ok(program) = Self::read(bytes) else { return Ok(Cow::Borrowed(bytes)) };
        if program.version() <= reader || program.lowest_as_it_is() <= Some(reader) {
            return Ok(Cow::Borrowed(bytes));
        }
        let refusal = match program.written_for(reader) {
            Ok(written) => return Ok(Cow::Owned(written)),
            Err(refusal) => refusal,
        };
        let Some(bridge) = bridge else {
            let is_unknown = matches!(refusal, StableHloError::TargetTooOld { .. });
            return if is_unknown { Ok(Cow::Borrowed(bytes)) } else { Err(refusal) };
        };
        let version = program.version();
        let refused = |words: String| StableHloError::Bridge { version, target: reader, words };
        let answer = bridge.write_for(bytes, version, reader).map_err(refused)?;
        if answer.len() / LONGEST_ANSWER > bytes.len() {
            return Err(refused(format!(
                "the answer has {} bytes, the program {}",
                answer.len(),
                bytes.len()
            )));
        }
        let unknown = match Program::read(&answer) {
            Ok(check) => check.unknown_to(reader).next().map(Need::to_string),
            Err(error) => return Err(refused(format!("in the answer {error}"))),
        };
        match unknown {
            Some(need) => Err(refused(format!("the answer still has {need}"))),
            None => Ok(Cow::Owned(answer)),
        }
    }

    /// Returns the version in which the program was written.
    pub fn version(&self) -> StableHloVersion {
        self.file.version
    }

    /// Returns the features newer than [`StableHloVersion::OLDEST_TARGET`], and those that are not
    /// known.
    pub fn needs(&self) -> &[Need] {
        &self.needs
    }

    /// Returns the names of the dialects in the program. Dialects other than `vhlo` and `builtin`
    /// have their own versions.
    pub fn dialects(&self) -> impl Iterator<Item = &'a str> + '_ {
        (0..self.file.tables.dialects.len()).map(|dialect| self.file.dialect(dialect))
    }

    /// Returns the oldest version that knows everything in the program, at least
    /// [`StableHloVersion::OLDEST_TARGET`]; `None` if a feature is not known.
    pub fn lowest_as_it_is(&self) -> Option<StableHloVersion> {
        lowest(self.needs.iter().map(Need::since))
    }

    /// Returns the oldest version for which [`written_for`](Self::written_for) can write the
    /// program.
    pub fn lowest_rewritten(&self) -> Option<StableHloVersion> {
        lowest(self.needs.iter().map(Need::oldest))
    }

    /// Returns the file with its tables.
    pub(super) fn file(&self) -> &Bytecode<'a> {
        &self.file
    }

    /// Returns the targets of its custom calls, each once, sorted; `None` stands for targets that
    /// cannot be read.
    pub fn custom_calls(&self) -> impl Iterator<Item = Option<&'a str>> + '_ {
        self.custom_calls.iter().copied()
    }

    /// Returns the dialects of its operations, each once, sorted; a name that is not UTF-8 is
    /// empty.
    pub fn operation_dialects(&self) -> impl Iterator<Item = &'a str> + '_ {
        self.operation_dialects.iter().copied()
    }

    /// Returns the names of its VHLO operations, such as `add_v1`, each once, sorted; a name that
    /// is not UTF-8 is empty.
    pub fn operations(&self) -> impl Iterator<Item = &'a str> + '_ {
        self.operations.iter().copied()
    }

    /// Returns the names of the operations in the comparators of its sorts, in the form of
    /// [`operations`](Self::operations).
    pub fn comparator_operations(&self) -> impl Iterator<Item = &'a str> + '_ {
        self.sorts.operations.iter().copied()
    }

    /// Returns true if a sort is not stable, or cannot be read.
    pub fn has_unstable_sorts(&self) -> bool {
        self.sorts.unread.is_some() || !self.sorts.unstable.is_empty()
    }

    /// Returns true if every custom call to this target names at least one function, and its
    /// functions only test which of two arguments is smaller or greater.
    pub fn compares_plainly(&self, target: &str) -> bool {
        self.sorts.compares_plainly(&self.file, target)
    }

    /// Returns the program with all of its sorts made stable; `None` if they already are.
    ///
    /// A sort that is not stable may order equal elements in any way, so the stable order is one of
    /// its permitted results.
    ///
    /// # Errors
    /// [`StableHloError::Malformed`] for a sort that cannot be read.
    pub fn with_stable_sorts(&self) -> Result<Option<Vec<u8>>, StableHloError> {
        if let Some(at) = self.sorts.unread {
            let expected = "a sort with a dimension, stable or not, in properties of its own";
            return Err(StableHloError::Malformed { at, expected });
        }
        if self.sorts.unstable.is_empty() {
            return Ok(None);
        }
        let changes: Vec<What> = self
            .sorts
            .unstable
            .iter()
            .map(|properties| What::Stable { properties: *properties })
            .collect();
        rewrite::write(&self.file, changes.iter(), self.version()).map(Some)
    }

    fn unknown_to(&self, reader: StableHloVersion) -> impl Iterator<Item = &Need> {
        self.needs.iter().filter(move |need| !need.is_known_to(reader))
    }

    /// Returns the program for a reader of `target`: the same operations and values, with newer
    /// forms replaced by older ones. It is unchanged if it is not newer than `target`.
    ///
    /// # Errors
    /// [`StableHloError::TargetTooOld`], or [`StableHloError::Inexpressible`] with every feature
    /// that the older version cannot express.
    pub fn written_for(&self, target: StableHloVersion) -> Result<Vec<u8>, StableHloError> {
        if self.version() <= target {
            return Ok(self.bytes.to_vec());
        }
        if target < StableHloVersion::OLDEST_TARGET {
            return Err(StableHloError::TargetTooOld { target });
        }
        let is_beyond = |need: &&Need| need.oldest().is_none_or(|oldest| oldest > target);
        let needs: Vec<Need> = self.needs.iter().filter(is_beyond).cloned().collect();
        if !needs.is_empty() {
            let version = self.version();
            return Err(StableHloError::Inexpressible { version, target, needs });
        }
        let changes = self.changes.iter().filter(|change| change.since > target);
        rewrite::write(&self.file, changes.map(|change| &change.what), target)
    }

    /// Records a feature; `change`, if given, expresses it in versions from an older one.
    fn need(
        &mut self,
        feature: String,
        since: Option<StableHloVersion>,
        change: Option<(What, StableHloVersion)>,
    ) {
        let mut otherwise = None;
        if let (Some((what, from)), Some(since)) = (change, since) {
            otherwise = Some(from);
            self.changes.push(Change { since, what });
        }
        self.needs.push(Need { feature, since, otherwise });
    }

    fn judge_operations(&mut self, survey: &Survey) {
        for (operation, uses) in &survey.operations {
            let (dialect, name) = self.file.operation_name(*operation);
            if dialect != VHLO {
                continue;
            }
            let since = catalogue::operation(name);
            if since != Some(StableHloVersion::OLDEST_TARGET) {
                let change = self.renamed(*operation, name, uses, survey);
                self.need(format!("operation vhlo.{}", shortened(name)), since, change);
            }
        }
        let is_other = |dialect: &&str| !matches!(*dialect, VHLO | "builtin" | "sdy");
        let others: Vec<&str> = self.operation_dialects().filter(is_other).collect();
        for dialect in others {
            let feature = format!("operations of the dialect {}", shortened(dialect));
            self.need(feature, Some(catalogue::OTHER_DIALECTS), None);
        }
    }

    /// Returns the earlier form of an operation, if all its uses can be expressed in it, with the
    /// version that introduced that form.
    fn renamed(
        &self,
        operation: usize,
        name: &str,
        uses: &Uses,
        survey: &Survey,
    ) -> Option<(What, StableHloVersion)> {
        let to = older::of(name)?;
        let is_used_so = match to.uses {
            older::Uses::Any => true,
            older::Uses::OfOneOperand => uses.is_unary,
            older::Uses::WithoutRegions => uses.most_regions == 0,
        };
        is_used_so.then_some(())?;
        let mut properties = BTreeSet::new();
        if !to.left_out.is_empty() {
            for number in &uses.properties {
                // Properties that are shared with another operation cannot be cut for this one
                // alone.
                let is_own = survey.owners.get(number) == Some(&Some(operation));
                (is_own || to.has_no_properties()).then_some(())?;
                let index = usize::try_from(*number).ok()?;
                to.holds_in(&self.file, self.file.properties.get(index)?).then_some(())?;
                properties.insert(index);
            }
            // An operation without properties has its attributes in a dictionary, which is not
            // read.
            uses.always_has_properties.then_some(())?;
        }
        Some((What::Rename { operation, to, properties }, to.since()?))
    }

    fn judge_types(&mut self, survey: &Survey) {
        let codes = self.file.types.iter().map(|entry| {
            (entry.is_encoded || self.file.dialect(entry.dialect) != VHLO)
                .then(|| self.file.code(entry, VHLO).map(|(code, _)| code))
        });
        // Each code once; a text entry has no code and is not known.
        let codes: BTreeSet<Option<u64>> = codes
            .filter_map(|code| match code {
                Some(Some(code)) => Some(Some(code)),
                Some(None) => None,
                None => Some(None),
            })
            .collect();
        for code in codes {
            let since = code.and_then(catalogue::of_type);
            if since != Some(StableHloVersion::OLDEST_TARGET) {
                self.need(named("type", code), since, None);
            }
            if code == Some(catalogue::FUTURE_TYPE) && !survey.custom_calls.is_empty() {
                let since = Some(catalogue::CUSTOM_CALLS_TAKE_FUTURES);
                self.need("futures and custom calls".to_owned(), since, None);
            }
        }
    }

    fn judge_attributes(&mut self, survey: &Survey) {
        let mut symbols = MeshSymbols::new(&self.file, &survey.meshes);
        let mut others: BTreeSet<Option<u64>> = BTreeSet::new();
        let mut listed = Vec::new();
        let mut has_typed_calls = false;
        for (attribute, entry) in self.file.attributes.iter().enumerate() {
            if self.file.dialect(entry.dialect) != VHLO {
                continue;
            }
            match self.file.code(entry, VHLO) {
                Some((attribute_code::REPLICA_GROUP_MESH_AXES, contents)) => {
                    let groups = symbols.replica_groups(contents);
                    let list = groups.map(|groups| What::List { attribute, groups });
                    listed.push(list.map(|list| (list, StableHloVersion::OLDEST_TARGET)));
                }
                Some((attribute_code::CUSTOM_CALL_VERSION, mut contents)) => {
                    has_typed_calls |= contents.varint() == Ok(TYPED);
                }
                // These describe a mesh or its axes, and are used for groups only.
                Some((code, _)) if attribute_code::PARTS_OF_MESHES.contains(&code) => {}
                code => {
                    others.insert(code.map(|(code, _)| code));
                }
            }
        }
        for code in others {
            let since = code.and_then(catalogue::attribute);
            if since != Some(StableHloVersion::OLDEST_TARGET) {
                self.need(named("attribute", code), since, None);
            }
        }
        if has_typed_calls {
            let feature = "custom calls of the typed interface".to_owned();
            self.need(feature, Some(catalogue::TYPED_CUSTOM_CALLS), None);
        }
        let since = catalogue::attribute(attribute_code::REPLICA_GROUP_MESH_AXES);
        for change in listed {
            self.need("replica groups by the axes of a mesh".to_owned(), since, change);
        }
    }
}

/// Returns the newest of the versions, at least the oldest target; `None` if one is not known.
fn lowest(
    mut versions: impl Iterator<Item = Option<StableHloVersion>>,
) -> Option<StableHloVersion> {
    versions.try_fold(StableHloVersion::OLDEST_TARGET, |lowest, version| Some(lowest.max(version?)))
}

fn named(what: &str, code: Option<u64>) -> String {
    match code {
        Some(code) => format!("{what} {code} of vhlo"),
        None => format!("{what} of vhlo as text"),
    }
}

/// Returns a name from an untrusted program, cut to the longest name of an operation.
fn shortened(name: &str) -> String {
    name.chars().take(64).flat_map(char::escape_debug).collect()
}

/// Facts that hold for all uses of an operation.
#[derive(Clone, Debug)]
struct Uses {
    most_regions: u64,
    is_unary: bool,
    always_has_properties: bool,
    properties: BTreeSet<u64>,
}

/// The result of one walk over the operations.
#[derive(Clone, Debug, Default)]
struct Survey {
    /// VHLO operations, by the number of their names.
    operations: BTreeMap<usize, Uses>,
    /// The operation that owns each set of properties; `None` if several share it.
    owners: BTreeMap<u64, Option<usize>>,
    /// Operations that may define a mesh.
    meshes: Vec<Operation>,
    /// The properties of custom calls.
    custom_calls: BTreeSet<Option<u64>>,
    dictionaries_of_calls: BTreeSet<u64>,
    /// The numbers of the dialects.
    dialects: BTreeSet<usize>,
    sorts: SortsFound,
}

impl Survey {
    fn note(&mut self, file: &Bytecode<'_>, operation: &Operation) {
        self.sorts.note(file, operation);
        if let Some(properties) = operation.properties {
            let owner = self.owners.entry(properties).or_insert(Some(operation.name));
            if *owner != Some(operation.name) {
                *owner = None;
            }
        }
        self.dialects
            .extend(file.tables.operation_names.get(operation.name).map(|entry| entry.dialect));
        let (dialect, name) = file.operation_name(operation.name);
        if dialect != VHLO {
            if name == "mesh" {
                self.meshes.push(*operation);
            }
            return;
        }
        if custom_calls::is_one(name) {
            self.custom_calls.insert(operation.properties);
            self.dictionaries_of_calls.extend(operation.attributes);
        }
        let uses = self.operations.entry(operation.name).or_insert_with(|| Uses {
            most_regions: 0,
            is_unary: true,
            always_has_properties: true,
            properties: BTreeSet::new(),
        });
        uses.most_regions = uses.most_regions.max(operation.regions);
        uses.is_unary &= operation.operands == 1;
        uses.always_has_properties &= operation.properties.is_some();
        uses.properties.extend(operation.properties);
    }
}
