//! Tests of files that JAX writes: `check --jax`, `inspect`, `convert --to-stablehlo`.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::Stdio,
};

use serde_json::json;
use serdes::{codec::ToProto as _, ifrt::DType, version::SerDesVersion};

use crate::testkit::{command, data, objects, objects_of, printed, serdes, status, text};

fn old_export() -> PathBuf {
    data("kinds/f-0.8.0.jaxexport")
}

#[test]
fn every_jaxlib_has_an_object_and_the_path_one_for_all_of_them() {
    let path = old_export();
    let found = serdes(&["check", text(&path), "--jax", "0.10.2..0.11.1", "--json"]);
    assert_eq!(status(&found), 1, "one of them refuses");
    let objects = objects(&found);
    let releases: Vec<_> = objects.iter().filter_map(|object| object["release"].as_str()).collect();
    assert_eq!(releases, ["0.10.2", "0.11.0", "0.11.1"]);
    assert_eq!(objects[0]["warnings"][0]["rule"], "expires");
    assert_eq!(objects[2]["reasons"][0]["rule"], "too_old");
    let all = &objects[3];
    assert_eq!(all["releases"]["0.11.1"], "unacceptable");
    assert_eq!((&all["oldest"], &all["newest"]), (&json!("0.10.2"), &json!("0.11.0")));
    // The text for people, whose help names the release that loads it.
    let said = printed(&serdes(&["check", text(&path), "--jax", "0.11.1", "--jax", "0.11.0"]));
    assert!(said.contains("help: load it with jaxlib 0.11.0 or older"), "{said}");
    assert!(said.contains("it loads up to 0.11.0"), "{said}");
}

#[test]
fn each_option_of_releases_is_about_its_own_artifacts() {
    let folder = tempfile::tempdir().unwrap();
    fs::copy(old_export(), folder.path().join("f.jaxexport")).unwrap();
    fs::write(folder.path().join("graph.pb"), b"\x22\x03\x08\xaa\x13").unwrap();
    let check = |more: &[&str]| {
        let arguments = [&["check", text(folder.path()), "--json"][..], more].concat();
        let objects = objects_of(&arguments);
        let releases = objects.iter().filter_map(|object| object["release"].as_str());
        releases.map(str::to_owned).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(check(&["--jax", "0.10"]), "0.10.2 2.21");
    assert_eq!(
        check(&["--jax", "0.9", "--jax", "0.8.0", "--tensorflow", "2.20..2.21"]),
        "0.8.0 0.9.2 2.20 2.21"
    );
    let newest = check(&["--jax", "latest"]);
    assert_eq!(check(&[]), newest);
    let wrong = serdes(&["check", text(folder.path()), "--jax", "0.7.0"]);
    assert_eq!(status(&wrong), 2);
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("0.8.0, "), "{wrong:?}");
}

#[test]
fn jax_artifact_is_detected_on_standard_input() {
    for (name, kind) in [("f-0.12.0.1.jaxexport", "jax_export"), ("f.mlirbc", "stablehlo")] {
        let mut child = command()
            .args(["check", "-", "--jax", "latest", "--json"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let bytes = fs::read(data("kinds").join(name)).unwrap();
        child.stdin.take().unwrap().write_all(&bytes).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!((status(&output), objects(&output)[0]["kind"].as_str()), (0, Some(kind)));
    }
}

#[test]
fn inspect_says_who_made_an_export_and_who_reads_it() {
    let found = &objects_of(&["inspect", text(&old_export()), "--json"])[0];
    let export = &found["export"];
    assert_eq!(export["platforms"], json!(["cpu"]));
    assert_eq!(export["calling_convention_version"], 10);
    assert_eq!(found["read_by"][0], "0.8.0");
    assert!(export["inputs"][0]["shape"].is_array(), "{export}");
    let said = printed(&serdes(&["inspect", text(&old_export())]));
    assert!(said.contains("argument") && said.contains("read by"), "{said}");
}

#[test]
fn a_program_is_written_for_older_readers_or_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("g.mlirbc");
    let convert = |from: &PathBuf, version: &str| {
        let arguments = ["convert", text(from), "--to-stablehlo", version, "-o", text(&target)];
        serdes(&[&arguments[..], &["--json"]].concat())
    };
    let program = data("programs/cholesky.mlirbc");
    let refused = &objects_of(&["check", text(&program), "--jax", "0.8.0", "--json"])[0];
    assert_eq!(refused["reasons"][0]["rule"], "unknown_op");
    let written = convert(&program, "1.13.1");
    assert_eq!(status(&written), 0, "{written:?}");
    assert_eq!(objects(&written)[0]["read_by"][0], "0.8.0");
    assert_eq!(status(&serdes(&["check", text(&target), "--jax", "all"])), 0);
    fs::remove_file(&target).unwrap();
    assert_eq!(status(&convert(&program, "1.9")), 0);
    fs::remove_file(&target).unwrap();
    let tangent = convert(&data("programs/tan.mlirbc"), "1.2");
    assert_eq!(status(&tangent), 1, "{tangent:?}");
    assert!(String::from_utf8_lossy(&tangent.stderr).contains("vhlo.tan_v2"), "{tangent:?}");
    let too_old = convert(&program, "0.19");
    assert_eq!(status(&too_old), 1, "{too_old:?}");
    assert!(String::from_utf8_lossy(&too_old.stderr).contains("1.0.0"), "{too_old:?}");
    assert_eq!(status(&convert(&old_export(), "1.16")), 2);
    assert_eq!(status(&convert(&program, "one")), 2);
    assert!(!target.exists());
}

#[test]
fn functions_that_a_reader_may_not_have_are_warned_of() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("g.mlirbc");
    let warnings = |program: &Path| {
        let target = text(&target);
        let arguments =
            ["convert", text(program), "--to-stablehlo", "1.13.1", "-o", target, "--json"];
        let written = serdes(&arguments);
        assert_eq!(status(&written), 0, "{written:?}");
        fs::remove_file(target).unwrap();
        objects(&written)[0]["warnings"].clone()
    };
    assert_eq!(warnings(&data("programs/exp.mlirbc")), json!([]));
    let called = warnings(&data("programs/cholesky.mlirbc"));
    assert!(called[0].as_str().unwrap().contains("lapack_spotrf_ffi"), "{called}");
    assert_eq!(called.as_array().unwrap().len(), 1);
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("../jax-artifacts/tests/data/files");
    let sharded = warnings(&files.join("sharded-0.12.0+prodold.mlirbc"));
    assert!(sharded.to_string().contains("dialect sdy"), "{sharded}");
}

#[test]
fn a_bare_message_of_ifrt_is_shown_as_the_type_that_is_named() {
    let message = data("ifrt/golden/serdes3.2x3.xla.ifrt.ShapeProto.binpb");
    let checked = serdes(&["check", text(&message), "--json"]);
    assert_eq!(status(&checked), 2);
    assert_eq!(objects(&checked)[0]["kind"], "ifrt_message");
    assert_eq!(objects(&checked)[0]["reasons"][0]["rule"], "other_kind");
    let shown = &objects_of(&["inspect", text(&message), "--kind", "Shape", "--json"])[0];
    assert_eq!((&shown["type"], &shown["value"]), (&json!("Shape"), &json!([2, 3])));
}

/// Writes the message of an element type that version 4 introduced.
fn six_bit_float(folder: &Path) -> PathBuf {
    let path = folder.join("dtype.binpb");
    fs::write(&path, DType::F6E2M3FN.to_bytes(SerDesVersion::current()).unwrap()).unwrap();
    path
}

#[test]
fn a_bare_message_of_ifrt_is_judged_as_the_type_that_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let message = six_bit_float(folder.path());
    let checked = |extra: &[&str]| {
        let output = serdes(&[&["check", text(&message), "--json"], extra].concat());
        (status(&output), objects(&output)[0].clone())
    };
    let (status_, verdict) = checked(&["--kind", "DType"]);
    assert_eq!((status_, &verdict["kind"]), (0, &json!("ifrt_message")), "{verdict}");
    assert_eq!(verdict["consumer"]["line"], "ifrt_serdes");
    let (status_, verdict) = checked(&["--kind", "DType", "--consumer", "ifrt_serdes=3"]);
    assert_eq!((status_, &verdict["reasons"][0]["rule"]), (1, &json!("too_new")), "{verdict}");
    let (status_, verdict) = checked(&["--kind", "RemapPlan"]);
    assert_eq!((status_, &verdict["reasons"][0]["rule"]), (2, &json!("corrupt")), "{verdict}");
    let unknown = serdes(&["check", text(&message), "--kind", "Nothing"]);
    assert_eq!(status(&unknown), 2);
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("ArraySpec"), "{unknown:?}");
}

#[test]
fn a_message_of_ifrt_is_written_for_readers_of_another_version() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("message.binpb");
    let golden = |name: &str| data("ifrt/golden").join(name);
    let convert = |from: &PathBuf, version: &str, extra: &[&str]| {
        let arguments = ["convert", text(from), "--to-serdes", version, "-o", text(&target)];
        serdes(&[&arguments[..], &["--json"], extra].concat())
    };
    let shape = golden("serdes3.2x3.xla.ifrt.ShapeProto.binpb");
    let written = convert(&shape, "6", &["--kind", "Shape"]);
    assert_eq!(status(&written), 0, "{written:?}");
    assert_eq!(objects(&written)[0]["type"], "Shape");
    let newer = fs::read(&target).unwrap();
    assert_eq!(status(&convert(&target.clone(), "0", &["--kind", "Shape"])), 0);
    let oldest = fs::read(golden("serdes0.2x3.xla.ifrt.ShapeProto.binpb")).unwrap();
    assert_eq!(fs::read(&target).unwrap(), oldest);
    fs::write(&target, newer).unwrap();
    // A value that names its type needs no option.
    let sharding =
        golden("serdes3.ConcreteEvenSharding_dev1_0_even_device.xla.ifrt.Serialized.binpb");
    let written = convert(&sharding, "3", &[]);
    assert_eq!(status(&written), 0, "{written:?}");
    assert_eq!(objects(&written)[0]["type"], "xla::ifrt::ConcreteEvenSharding");
    assert_eq!(fs::read(&target).unwrap(), fs::read(&sharding).unwrap());
    fs::remove_file(&target).unwrap();
    let untold = convert(&shape, "3", &[]);
    assert_eq!(status(&untold), 2);
    assert!(String::from_utf8_lossy(&untold.stderr).contains("--kind ArraySpec"), "{untold:?}");
    let dtype = six_bit_float(folder.path());
    let refused = convert(&dtype, "3", &["--kind", "DType"]);
    assert_eq!(status(&refused), 1);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("F6E2M3FN") && said.contains("version 4"), "{said}");
    assert_eq!(status(&convert(&dtype, "99", &["--kind", "DType"])), 2);
    assert!(!target.exists());
}
