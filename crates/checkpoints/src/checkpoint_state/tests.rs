use std::fs;

use serdes_files::FileSystem;

use super::*;

fn read(text: impl AsRef<[u8]>) -> Result<CheckpointState, CheckpointStateError> {
    CheckpointState::read(&text.as_ref().to_vec())
}

#[test]
fn a_state_says_the_newest_all_and_when_they_were_saved() {
    let state = read(
        "model_checkpoint_path: \"ckpt-3\"\nall_model_checkpoint_paths: \"ckpt-2\"\n\
         all_model_checkpoint_paths: \"ckpt-3\"\nall_model_checkpoint_timestamps: 1795714622.5\n\
         all_model_checkpoint_timestamps: 1795714623\nlast_preserved_timestamp: 1e9\n",
    );
    let state = state.unwrap();
    assert_eq!(
        (state.newest.as_str(), state.all),
        ("ckpt-3", vec!["ckpt-2".into(), "ckpt-3".into()])
    );
    assert_eq!(state.timestamps, [1_795_714_622.5, 1_795_714_623.0]);
    assert_eq!(state.last_preserved, Some(1e9));
}

/// Compares the newest checkpoint, or none, with that of tf.train.latest_checkpoint of TensorFlow
/// 2.21 for each text.
#[test]
fn a_state_is_read_as_tensorflow_reads_it() {
    for (text, newest) in [
        ("model_checkpoint_path: \"a\"", Some("a")),
        ("model_checkpoint_path: \"a\"\nmodel_checkpoint_path: \"b\"", Some("b")),
        ("# hello\nmodel_checkpoint_path: \"a\" # x\r\n", Some("a")),
        ("model_checkpoint_path: \"a\"; all_model_checkpoint_paths: [\"b\", \"a\"],", Some("a")),
        ("model_checkpoint_path: \"ck\" 'pt-4'", Some("ckpt-4")),
        ("model_checkpoint_path: \"a\" all_model_checkpoint_timestamps: nan", Some("a")),
        ("", None),
        ("all_model_checkpoint_paths: \"a\"", None),
        ("model_checkpoint_path: \"\"", None),
        ("model_checkpoint_path: \"a\"\nfoo: 1", None),
        ("model_checkpoint_path \"a\"", None),
        ("<html>", None),
    ] {
        let found = read(text).ok().map(|state| state.newest);
        assert_eq!(found.as_deref(), newest, "{text}");
    }
    let error = read(b"model_checkpoint_path: \"\xe9\"").unwrap_err();
    assert!(matches!(error, CheckpointStateError::Text(_)), "{error}");
}

#[test]
fn a_text_that_is_longer_than_any_state_is_not_read() {
    let long = vec![b' '; LONGEST as usize + 1];
    assert!(matches!(read(long), Err(CheckpointStateError::TooLong { .. })));
}

#[test]
fn a_state_is_told_by_its_first_field_and_yaml_is_none() {
    for text in [
        "model_checkpoint_path: \"a\"",
        " all_model_checkpoint_paths :['a']",
        "# x\n\n# y\nmodel_checkpoint_path:'a'",
    ] {
        assert!(begins_like_state(text.as_bytes()), "{text}");
    }
    for text in ["model_checkpoint_path: models/a.pt", "model_checkpoint_path", "#", "", "node {"] {
        assert!(!begins_like_state(text.as_bytes()), "{text}");
    }
}

#[test]
fn checkpoints_of_a_folder_have_an_index_and_data() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["b.index", "b.data-00000-of-00001", "a.index", "c.data-00000-of-00001", "d"] {
        fs::write(folder.path().join(name), "").unwrap();
    }
    assert_eq!(prefixes_in(&FileSystem, folder.path()), [folder.path().join("b")]);
    let found = |name: &str| find(&FileSystem, &folder.path().join(name));
    assert_eq!(found("a"), Some(Found::Bundle));
    assert_eq!((found("d"), found("[d-e]")), (Some(Found::V1), Some(Found::V1)));
    assert_eq!((found("e"), found("[e-f]")), (None, None));
}

#[test]
fn a_prefix_leads_from_no_folder_to_an_address() {
    let at = |folder: &str, prefix: &str| location(&FileSystem, folder.as_ref(), prefix);
    assert_eq!(at("run", "ckpt-1"), Some("run/ckpt-1".into()));
    assert_eq!(at("run", "/old/ckpt-1"), Some("/old/ckpt-1".into()));
    assert_eq!(at("", "s3://a/b"), Some("./s3://a/b".into()));
}
