//! Tests of `serdes.toml` and `serdes config`: which values take effect, and where they come from.

use std::{fs, path::Path, process::Output};

use serde_json::{Value, json};

use crate::testkit::{command, copy_model, data, objects, printed, serdes, status, text};

fn serdes_in(folder: &Path, arguments: &[&str]) -> Output {
    command().args(arguments).current_dir(folder).output().unwrap()
}

/// Creates a folder with a model, `deep/er` and this configuration.
fn project(configuration: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    copy_model("sm_tf2_bad_consumers_V", &folder.path().join("models/m"));
    fs::create_dir_all(folder.path().join("deep/er")).unwrap();
    fs::write(folder.path().join("serdes.toml"), configuration).unwrap();
    folder
}

fn value(found: &Output, key: &str) -> (Value, String) {
    let object = &objects(found)[0];
    let setting = &object["check"][key];
    (setting["value"].clone(), setting["from"].as_str().unwrap_or_default().to_owned())
}

#[test]
fn the_file_says_what_is_checked_and_for_whom() {
    let text = "[check]\npaths = ['models']\ntensorflow = ['2.20', '2.21']\n";
    let project = project(text);
    let checked = serdes_in(project.path(), &["check", "--json"]);
    assert_eq!(status(&checked), 1, "{checked:?}");
    let releases = objects(&checked).into_iter().find(|one| one["releases"].is_object()).unwrap();
    assert_eq!(releases["releases"].as_object().unwrap().len(), 2, "{releases}");
    // From a subfolder, with paths relative to the configuration file.
    let checked = serdes_in(&project.path().join("deep/er"), &["check", "--json"]);
    assert_eq!(status(&checked), 1, "{checked:?}");
    assert_eq!(objects(&checked)[0]["path"], "../../models/m");
    // The command line wins.
    let checked = serdes_in(project.path(), &["check", "--tensorflow", "2.20", "--json"]);
    assert_eq!(status(&checked), 0, "{checked:?}");
    let nothing = serdes_in(project.path(), &["check", "--no-config"]);
    assert_eq!(status(&nothing), 2);
    assert!(String::from_utf8_lossy(&nothing.stderr).contains("no PATH to check"), "{nothing:?}");
}

#[test]
fn config_prints_each_value_with_its_place() {
    let project =
        project("[check]\npaths = ['models']\n\nstrict = true\n[check.levels]\nempty = 'deny'\n");
    let found = serdes_in(project.path(), &["config", "--json", "--tensorflow", "2.16"]);
    assert_eq!(status(&found), 0, "{found:?}");
    assert_eq!(value(&found, "paths"), (json!(["models"]), "serdes.toml:2".to_owned()));
    assert_eq!(value(&found, "strict"), (json!(true), "serdes.toml:4".to_owned()));
    assert_eq!(value(&found, "levels.empty"), (json!("deny"), "serdes.toml:6".to_owned()));
    assert_eq!(value(&found, "tensorflow"), (json!(["2.16"]), "command line".to_owned()));
    assert_eq!(value(&found, "jax"), (json!([]), "default".to_owned()));
    assert_eq!(objects(&found)[0]["file"], "serdes.toml");
    let people = printed(&serdes_in(project.path(), &["config"]));
    assert!(people.contains("serdes.toml:4"), "{people}");
    let schema = printed(&serdes_in(project.path(), &["config", "--schema"]));
    let schema: Value = serde_json::from_str(&schema).unwrap();
    assert_eq!(schema["title"], "serdes.toml");
}

#[test]
fn a_file_that_is_wrong_is_bad_usage_with_its_line() {
    for (configuration, words) in [
        (
            "[check]\ntensorflw = 'all'\n",
            "serdes.toml:2: unknown key \"tensorflw\" in [check]; did you mean tensorflow?",
        ),
        ("[check]\nstrict = 1\n", "serdes.toml:2: strict is a number; expected true or false"),
        ("[check\n", "serdes.toml:1: "),
        ("[check.levels]\nempty = 'maybe'\n", "expected deny, warn or allow"),
    ] {
        let project = project(configuration);
        for command in ["check", "config"] {
            let output = serdes_in(project.path(), &[command]);
            assert_eq!(status(&output), 2, "{output:?}");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(said.contains(words), "{said}");
        }
    }
}

#[test]
fn named_configuration_has_paths_beside_it() {
    let project = project("[check]\npaths = ['models']\ntensorflow = '2.20'\n");
    let elsewhere = tempfile::tempdir().unwrap();
    let file = project.path().join("serdes.toml");
    let named = serdes_in(elsewhere.path(), &["check", "--config", text(&file), "--json"]);
    assert_eq!(status(&named), 0, "{named:?}");
    assert_eq!(objects(&named)[0]["path"], text(&project.path().join("models/m")));
    assert_eq!(status(&serdes_in(elsewhere.path(), &["check", "--config", "none.toml"])), 2);
}

#[test]
fn flags_of_the_file_are_taken_back() {
    let configuration = "[check]\npaths = ['models']\nstrict = true\nrequire-known = true\n";
    let project = project(configuration);
    fs::remove_dir_all(project.path().join("models/m")).unwrap();
    // Zero bytes are a graph, with a warning.
    fs::write(project.path().join("models/empty.pb"), "").unwrap();
    fs::write(project.path().join("models/notes.txt"), "notes").unwrap();
    let run = |more: &[&str]| status(&serdes_in(project.path(), &[&["check"], more].concat()));
    assert_eq!(run(&[]), 2);
    assert_eq!(run(&["--no-require-known"]), 1);
    assert_eq!(run(&["--no-strict"]), 2);
    assert_eq!(run(&["--no-require-known", "--no-strict"]), 0);
    // The last of the two options takes effect.
    assert_eq!(run(&["--no-require-known", "--no-strict", "--strict"]), 1);
    assert_eq!(run(&["--no-require-known", "--strict", "--no-strict"]), 0);
    let found = serdes_in(project.path(), &["config", "--no-strict", "--json"]);
    assert_eq!(value(&found, "strict"), (json!(false), "command line".to_owned()));
    assert_eq!(value(&found, "require-known"), (json!(true), "serdes.toml:4".to_owned()));
}

#[test]
fn strict_on_the_command_line_denies_what_the_file_allows() {
    let project = project("[check]\npaths = ['models']\n[check.levels]\nempty = 'warn'\n");
    fs::remove_dir_all(project.path().join("models/m")).unwrap();
    fs::write(project.path().join("models/empty.pb"), "").unwrap();
    let run = |more: &[&str]| status(&serdes_in(project.path(), &[&["check"], more].concat()));
    assert_eq!(run(&[]), 0);
    assert_eq!(run(&["--strict"]), 1);
    assert_eq!(run(&["--strict", "--warn", "empty"]), 0);
    assert_eq!(run(&["--strict", "--no-strict"]), 0);
    let found = serdes_in(project.path(), &["config", "--strict", "--json"]);
    assert_eq!(value(&found, "levels.empty"), (json!("deny"), "command line".to_owned()));
    let configuration =
        "[check]\npaths = ['models']\nstrict = true\n[check.levels]\nempty = 'allow'\n";
    fs::write(project.path().join("serdes.toml"), configuration).unwrap();
    assert_eq!(run(&[]), 0, "the file's own levels count beside its own strict");
    assert_eq!(run(&["--strict"]), 1);
}

#[test]
fn unknown_release_in_the_file_is_told_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("serdes.toml");
    let model = data("tensorflow/sm/tf2");
    for (key, release) in [("tensorflow", "2.99"), ("jax", "jaxlib-99.1")] {
        fs::write(&file, format!("[check]\nstrict = false\n{key} = \"{release}\"\n")).unwrap();
        let check = ["check", text(&model), "--config", text(&file)];
        let output = serdes(&check);
        assert_eq!(status(&output), 2, "{output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(&format!("serdes.toml:3: {key}: ")), "{said}");
        // The command line overrides the file.
        let known = ["--tensorflow", "2.21", "--jax", "jaxlib-0.9.1"];
        assert_eq!(status(&serdes(&[&check[..], &known].concat())), 0);
    }
}
