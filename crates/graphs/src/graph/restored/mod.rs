//! Finds the parts of a SavedModel that loaders restore from its checkpoint: the tensors that the
//! saver of its meta graph reads, the objects that are its variables, and the assets that are read
//! while it is loaded.
//!
//! The nodes that a loader runs are found by name, in a few walks over the file. Programs unlike
//! those that exporters write (computed strings, operations of the first releases) count as
//! unknown, and are not judged.
//!
//! Depends on the graph and the object graph, but not on checkpoints.

mod assets;
mod body;
mod find;
mod input;
mod node;
mod objects;
mod program;
mod saver;
mod table_paths;
mod tensors;

use std::collections::{HashMap, HashSet};

use prost::Message as _;

use self::{find::Names, input::node_name, program::Program, table_paths::TablePaths};
pub use self::{
    node::TableLines,
    objects::{Name, ObjectValue, RestoredObjects},
    table_paths::PathVariable,
    tensors::{Fit, RestoredTable, RestoredTensor, RestoredTensors, TableShape},
};
use super::{
    Form, GraphError, Message, MetaGraph,
    references::{ASSETS, Referring, TensorReference, init_name},
    source::Source,
};
use crate::files::ReadAt;

/// The tensors, objects and files that loaders restore.
#[derive(Clone, Debug, Default)]
pub struct Restored {
    /// The tensors that the saver reads; `None` if unknown.
    pub by_saver: Option<RestoredTensors>,
    /// The objects of a model in the TF2 format, if they are known.
    pub objects: Option<RestoredObjects>,
    /// True if the graph has its variables in a collection, where Python finds them.
    pub collects_variables: bool,
    /// The files of the assets.
    pub assets: Vec<RestoredAsset>,
    /// The paths of files that initialize tables and are not assets.
    pub elsewhere: Vec<String>,
    /// The variables from which such paths are read although nothing certainly sets them first.
    pub path_variables: Vec<PathVariable>,
}

/// A file of a model, named by the model's graph.
#[derive(Clone, Debug)]
pub struct RestoredAsset {
    /// Its path in the folder of assets.
    pub file: String,
    /// True if it is read while the model is loaded.
    pub is_read: bool,
    /// The lines that tables read from it then.
    pub lines: Vec<TableLines>,
    /// True if an earlier asset is fed to the same tensor.
    pub is_repeated: bool,
    /// True if a later asset is fed to the same tensor.
    pub is_replaced: bool,
}

/// Finds what loaders restore of the meta graph `number`, which must have no diagnostic.
///
/// # Errors
/// [`GraphError`], if the system cannot read the file.
pub fn restored(
    bytes: &dyn ReadAt,
    form: Form,
    number: usize,
    meta_graph: &MetaGraph,
    release: i32,
) -> Result<Restored, GraphError> {
    let source = Source::new(bytes, Message::SavedModel, form);
    let referring = meta_graph.references.read(source, release)?;
    let mut program = Program::new(source, number, release)?;
    let run = match &referring.saver {
        Some(saver) => {
            let fed = node_name(saver.filename.as_bytes());
            let run = program.gather(node_name(saver.restore.as_bytes()), fed)?;
            Some(run).filter(|_| !program.is_unclear)
        }
        None => Some(Names::default()),
    };
    let saver = run.as_ref().filter(|_| referring.saver.is_some());
    let by_saver = saver.and_then(|run| saver::restored(&program, run));
    let Assets { assets, elsewhere, path_variables } =
        assets_of(&mut program, &referring, run.as_ref())?;
    let objects = match meta_graph.objects.parts() {
        Some(parts) => objects::read(source, parts, release)?,
        None => None,
    };
    let variables = referring.collections.get("variables");
    let collects_variables = variables.is_some_and(|variables| !variables.values.is_empty());
    Ok(Restored { by_saver, objects, collects_variables, assets, elsewhere, path_variables })
}

/// The assets of a model, and the other files that its tables are filled from.
struct Assets {
    assets: Vec<RestoredAsset>,
    elsewhere: Vec<String>,
    path_variables: Vec<PathVariable>,
}

/// Returns the assets of a model, each with whether the nodes that run after the variables are
/// restored read it, and the paths of other files that tables are filled from. `restored` are the
/// nodes that restore the variables.
fn assets_of(
    program: &mut Program<'_>,
    referring: &Referring,
    restored: Option<&Names>,
) -> Result<Assets, GraphError> {
    let named = named_assets(referring);
    let names: HashSet<&[u8]> = named.iter().map(|(name, _)| name.as_slice()).collect();
    let init = init_name(referring);
    let mut run = None;
    if let Some(init) = init.as_ref().filter(|_| !names.is_empty()) {
        run = Some(program.gather(node_name(init.as_bytes()), b"")?);
    }
    let read = run.as_ref().map(|run| assets::read_while_loaded(program, run, &names));
    let read = read.unwrap_or_default();
    let mut last: HashMap<&[u8], usize> = HashMap::new();
    for (position, (name, _)) in named.iter().enumerate() {
        last.insert(name, position);
    }
    let mut seen = HashSet::new();
    let assets = named.iter().enumerate().map(|(position, (name, file))| RestoredAsset {
        file: file.clone(),
        is_read: read.contains_key(name),
        lines: read.get(name).cloned().unwrap_or_default(),
        is_repeated: !seen.insert(name),
        is_replaced: last.get(name.as_slice()).is_some_and(|last| *last > position),
    });
    let assets = assets.collect();
    let paths = TablePaths::read(program, &names)?;
    let mut path_variables = Vec::new();
    if let Some(init) = init.filter(|_| paths.has_variables()) {
        let run = match run {
            Some(run) => run,
            None => program.gather(node_name(init.as_bytes()), b"")?,
        };
        path_variables = paths.variables(program, &run, restored);
    }
    let elsewhere = paths.elsewhere.iter().map(|path| String::from_utf8_lossy(path).into_owned());
    let elsewhere = elsewhere.collect();
    Ok(Assets { assets, elsewhere, path_variables })
}

/// Returns the nodes that take the paths of assets, each with the file in the folder of assets. The
/// meta graph lists them; in older models a collection does.
fn named_assets(referring: &Referring) -> Vec<(Vec<u8>, String)> {
    let name = |asset: &TensorReference| match asset {
        TensorReference::Name(text) => node_name(text.as_bytes()).to_vec(),
        _ => Vec::new(),
    };
    let in_graph = referring.assets.iter().map(name).zip(referring.asset_files.iter().cloned());
    let collected = referring.collections.get(ASSETS).filter(|_| referring.assets.is_empty());
    let collected = collected.into_iter().flat_map(|one| &one.values);
    let collected = collected.filter_map(|bytes| AssetFileDef::decode(bytes.as_slice()).ok());
    let collected = collected.map(|asset| {
        let tensor = asset.tensor_info.unwrap_or_default();
        (node_name(tensor.name.as_bytes()).to_vec(), asset.filename)
    });
    in_graph.chain(collected).collect()
}

/// `tensorflow.AssetFileDef`, with the fields that are needed here.
#[derive(Clone, PartialEq, prost::Message)]
struct AssetFileDef {
    #[prost(message, optional, tag = "1")]
    tensor_info: Option<TensorInfo>,
    #[prost(string, tag = "2")]
    filename: String,
}

/// `tensorflow.TensorInfo`, with the field that is needed here.
#[derive(Clone, PartialEq, prost::Message)]
struct TensorInfo {
    #[prost(string, tag = "1")]
    name: String,
}
