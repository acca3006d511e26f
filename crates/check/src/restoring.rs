//! Checks the other files of a SavedModel for each loader: the checkpoint from which it restores
//! variables, and the assets that it reads.
//!
//! Decides which files each loader opens. Does not depend on the formats of checkpoints.

use std::{
    cell::OnceCell,
    path::{Component, Path},
    rc::Rc,
    sync::Arc,
};

use serdes_checkpoints::tensor_bundle::Bundle;
use serdes_files::ReadAt;
use serdes_graphs::graph::{Form, Graphs, MetaGraph, Restored, RestoredAsset, restored};

use super::{
    Loader, Reason, Remedy, Rule, Warning, checkpoint_v1,
    opened::{Bytes, Located, ModelFiles, with_suffix},
    rule::messages,
    table_file, tensor_bundle,
};
use crate::restore::{Checkpoint, RestoreError, by_graph_names, by_objects, by_saver};

/// Limit on the reasons that are listed; further ones are only counted.
const LISTED: usize = 20;

/// The place of the checkpoint in messages.
const VARIABLES: &str = "variables/variables";

/// Returns the folder of a model; `None` if only its message is known.
fn directory_of(model: &ModelFiles) -> Option<Located> {
    match model {
        ModelFiles::Directory(located) => Some(located.clone()),
        ModelFiles::Message(Bytes { tree, path, .. }) => {
            let path = path.as_deref()?.parent()?.to_owned();
            Some(Located { tree: Arc::clone(tree), path })
        }
    }
}

/// Returns the checkpoint that belongs to a SavedModel, by its prefix.
pub(super) fn variables_of(model: &ModelFiles) -> Option<Located> {
    let Located { tree, path } = directory_of(model)?;
    Some(Located { tree, path: path.join(VARIABLES) })
}

/// Returns true if a checkpoint has an index.
pub(super) fn has_index(checkpoint: &Located) -> bool {
    checkpoint.tree.has_file(&with_suffix(&checkpoint.path, ".index"))
}

/// The checkpoint of a model.
enum Variables {
    /// Its location is unknown.
    Unknown,
    Missing,
    Broken(Box<Reason>),
    Open(Box<Checkpoint>),
}

/// The other files of a model, as the loaders of one meta graph use them. Each is read when it is
/// first needed.
pub(super) struct Beside<'m> {
    model: &'m ModelFiles,
    source: Arc<dyn ReadAt>,
    form: Form,
    graphs: Rc<Graphs>,
    number: usize,
    release: i32,
    restored: OnceCell<Restored>,
    variables: OnceCell<Variables>,
    by_saver: OnceCell<Vec<Reason>>,
    by_objects: OnceCell<Vec<Reason>>,
    /// The results for loaders that use the last of several assets for one tensor, and for the one
    /// that uses the first.
    assets: [OnceCell<(Vec<Reason>, Vec<Warning>)>; 2],
}

impl<'m> Beside<'m> {
    /// Creates the files of a model, for the meta graph with this number.
    pub(super) fn new(
        model: &'m ModelFiles,
        (source, form): (Arc<dyn ReadAt>, Form),
        graphs: &Rc<Graphs>,
        number: usize,
        release: i32,
    ) -> Self {
        Self {
            model,
            source,
            form,
            graphs: Rc::clone(graphs),
            number,
            release,
            restored: OnceCell::new(),
            variables: OnceCell::new(),
            by_saver: OnceCell::new(),
            by_objects: OnceCell::new(),
            assets: [OnceCell::new(), OnceCell::new()],
        }
    }

    /// Returns true if the files were created for this meta graph.
    pub(super) fn is_of(&self, graphs: &Rc<Graphs>, number: usize) -> bool {
        Rc::ptr_eq(&self.graphs, graphs) && self.number == number
    }

    fn meta_graph(&self) -> Option<&MetaGraph> {
        self.graphs.meta_graphs.get(self.number)
    }

    /// Returns the reasons of a loader against the files; `by_objects` if it restores the objects
    /// of the TF2 format.
    pub(super) fn reasons(&self, loader: Loader, by_objects: bool) -> Vec<Reason> {
        let Some(meta_graph) = self.meta_graph() else { return Vec::new() };
        let mut reasons = match loader {
            Loader::Load if by_objects => self.object_reasons(),
            _ if !meta_graph.has_saver => Vec::new(),
            // Without an index this loader restores nothing, and continues.
            Loader::Cpp if !self.has_index() => Vec::new(),
            Loader::LoadV1 => self.named_reasons(),
            _ => self.saver_reasons(),
        };
        let runs = meta_graph.has_saver || self.restored().assets.iter().any(|one| one.is_read);
        if loader == Loader::Cpp && runs {
            let repeated = self.restored().assets.iter().filter(|asset| asset.is_repeated);
            let reason = |asset: &RestoredAsset| {
                Reason::from(messages::asset_is_fed_twice()).at(format!("assets/{}", asset.file))
            };
            reasons.extend(repeated.take(LISTED).map(reason));
        }
        reasons.extend_from_slice(&self.assets(by_objects).0);
        reasons
    }

    /// Returns the warnings about the files.
    pub(super) fn warnings(&self, loader: Loader, by_objects: bool) -> Vec<Warning> {
        let mut warnings = self.assets(by_objects).1.clone();
        let has_saver = self.meta_graph().is_some_and(|meta_graph| meta_graph.has_saver);
        if loader == Loader::Cpp && has_saver && matches!(self.variables(), Variables::Missing) {
            let warning = Warning::from(messages::index_of_variables_missing());
            warnings.push(warning.at(format!("{VARIABLES}.index")));
        }
        warnings
    }

    fn has_index(&self) -> bool {
        variables_of(self.model).is_some_and(|variables| has_index(&variables))
    }

    fn restored(&self) -> &Restored {
        self.restored.get_or_init(|| {
            let Some(meta_graph) = self.meta_graph() else { return Restored::default() };
            // A file that can no longer be read is reported by its next reader.
            restored(&self.source, self.form, self.number, meta_graph, self.release)
                .unwrap_or_default()
        })
    }

    fn variables(&self) -> &Variables {
        self.variables.get_or_init(|| {
            let Some(Located { tree, path }) = variables_of(self.model) else {
                return Variables::Unknown;
            };
            let located = Located { tree: Arc::clone(&tree), path: path.clone() };
            let opened = if has_index(&located) {
                Bundle::open_any(tree, &path)
                    .map(|bundle| Checkpoint::V2(Box::new(bundle)))
                    .map_err(RestoreError::from)
            } else if tree.has_file(&path) {
                Checkpoint::open_v1(&*tree, &path)
            } else {
                return Variables::Missing;
            };
            match opened {
                Ok(checkpoint) => Variables::Open(Box::new(checkpoint)),
                Err(error) => Variables::Broken(Box::new(reason(&error))),
            }
        })
    }

    fn saver_reasons(&self) -> Vec<Reason> {
        let reasons = self.by_saver.get_or_init(|| {
            let read = self.restored().by_saver.as_ref();
            let Some(read) = read.filter(|read| !read.tensors.is_empty()) else {
                return Vec::new();
            };
            self.with_checkpoint(|checkpoint| by_saver(read, checkpoint))
        });
        reasons.clone()
    }

    /// Returns the reasons of the loader that can also restore any checkpoint by the names of
    /// variables.
    fn named_reasons(&self) -> Vec<Reason> {
        let checkpoint = match self.variables() {
            // Required even if there is nothing to restore.
            Variables::Missing => return vec![missing()],
            Variables::Open(checkpoint) => Some(checkpoint),
            Variables::Unknown | Variables::Broken(_) => None,
        };
        let reasons = self.saver_reasons();
        let restored = self.restored();
        let lacks_one = reasons.iter().any(|reason| reason.rule == Rule::VariableMismatch);
        let read = restored.by_saver.as_ref().zip(checkpoint);
        let read = read.filter(|_| lacks_one && restored.collects_variables);
        match read.and_then(|(read, checkpoint)| by_graph_names(read, checkpoint)) {
            Some(errors) => listed(&errors),
            None => reasons,
        }
    }

    fn object_reasons(&self) -> Vec<Reason> {
        let reasons = self.by_objects.get_or_init(|| {
            let Restored { objects, by_saver, .. } = self.restored();
            self.with_checkpoint(|checkpoint| match objects {
                Some(objects) => by_objects(objects, by_saver.as_ref(), checkpoint),
                None => Vec::new(),
            })
        });
        reasons.clone()
    }

    fn with_checkpoint(
        &self,
        errors: impl FnOnce(&Checkpoint) -> Vec<RestoreError>,
    ) -> Vec<Reason> {
        match self.variables() {
            Variables::Unknown => Vec::new(),
            Variables::Missing => vec![missing()],
            Variables::Broken(reason) => vec![(**reason).clone()],
            Variables::Open(checkpoint) => listed(&errors(checkpoint)),
        }
    }

    /// Returns the reasons and warnings about the assets. Of several for one tensor, an object uses
    /// the first and the other loaders use the last.
    fn assets(&self, by_objects: bool) -> &(Vec<Reason>, Vec<Warning>) {
        let [last, first] = &self.assets;
        let is_other = |asset: &RestoredAsset| match by_objects {
            true => asset.is_repeated,
            false => asset.is_replaced,
        };
        let known = if by_objects { first } else { last };
        known.get_or_init(|| {
            let (mut reasons, mut warnings) = (Vec::new(), Vec::new());
            let Some(Located { tree, path }) = directory_of(self.model) else {
                return (reasons, warnings);
            };
            let elsewhere = self.restored().elsewhere.iter().take(LISTED);
            warnings
                .extend(elsewhere.map(|path| {
                    Warning::from(messages::table_file_is_no_asset()).at(path.clone())
                }));
            for variable in self.restored().path_variables.iter().take(LISTED) {
                if variable.is_unset {
                    let reason = Reason::from(messages::table_path_is_unset());
                    reasons.push(reason.at(variable.name.clone()));
                } else {
                    let warning = Warning::from(messages::table_path_may_be_unset());
                    warnings.push(warning.at(variable.name.clone()));
                }
            }
            for asset in self.restored().assets.iter().filter(|asset| !is_other(asset)) {
                let file = Path::new(&asset.file);
                if !file.components().all(|part| matches!(part, Component::Normal(_))) {
                    continue;
                }
                let place = format!("assets/{}", asset.file);
                let file = path.join("assets").join(file);
                let size = tree.has_file(&file).then(|| tree.open(&file)?.size());
                match (size, asset.is_read) {
                    (None, true) => {
                        let reason = Reason::from(messages::asset_is_missing());
                        reasons.push(reason.with_remedy(Remedy::CopyWholeModel).at(place));
                    }
                    (None, false) => {
                        warnings.push(Warning::from(messages::asset_is_not_there()).at(place));
                    }
                    (Some(Ok(0)), true) => {
                        let reason = Reason::from(messages::asset_is_empty());
                        reasons.push(reason.with_remedy(Remedy::CopyWholeModel).at(place));
                    }
                    (Some(Ok(_)), true) => {
                        let found = tree.open(&file).ok().and_then(|file| {
                            asset.lines.iter().find_map(|lines| table_file::reason(&*file, lines))
                        });
                        reasons.extend(found.map(|reason| reason.at(place)));
                    }
                    _ => {}
                }
            }
            (reasons, warnings)
        })
    }
}

/// Returns the reason for a missing checkpoint.
fn missing() -> Reason {
    let reason = Reason::from(messages::variables_are_missing());
    reason.with_remedy(Remedy::CopyWholeModel).at(format!("{VARIABLES}.index"))
}

/// Returns the listed reasons, and a count of the others.
fn listed(errors: &[RestoreError]) -> Vec<Reason> {
    let mut reasons: Vec<Reason> = errors.iter().take(LISTED).map(reason).collect();
    if let Some(more) = errors.len().checked_sub(LISTED).filter(|more| *more > 0) {
        let first_is_mismatch = errors.first().is_some_and(RestoreError::is_mismatch);
        reasons.push(match first_is_mismatch {
            true => messages::more_variables_differ(more).into(),
            false => messages::more_tensors_lost(more).into(),
        });
    }
    reasons
}

/// Converts an error of restoring to a reason.
fn reason(error: &RestoreError) -> Reason {
    let reason = match error {
        RestoreError::Bundle(error) => tensor_bundle::reason(error),
        RestoreError::V1(error) => checkpoint_v1::reason(error),
        error if error.is_mismatch() => Reason::new(Rule::VariableMismatch, error.to_string()),
        error => Reason::new(Rule::Corrupt, error.to_string()),
    };
    let reason = match error.numbers() {
        Some((found, expected)) => reason.with_numbers(found, expected),
        None => reason,
    };
    match (reason.place.is_some(), error.place()) {
        (false, Some(place)) => reason.at(place),
        (false, None) => reason.at(VARIABLES),
        (true, _) => reason,
    }
}
