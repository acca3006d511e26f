//! Tests of `serdes plugin` over PJRT plug-ins: verdicts before and after loading, and that a
//! faulty plug-in does not harm the command. The plug-ins are test doubles in C
//! (`tests/plugins/pjrt_table.c`).

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::{Value, json};

/// A plug-in whose file is removed on drop.
struct Double {
    folder: tempfile::TempDir,
}

impl Double {
    /// Compiles a plug-in of the minor `minor`, with a table of `size` bytes and these fault
    /// switches.
    fn new(minor: u32, size: usize, switches: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let double = Self { folder };
        let source = "../../tests/plugins/pjrt_table.c";
        let compiled = Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".to_owned()))
            .args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Wno-unused-variable"])
            .args(["-Wno-pedantic", "-Werror", "-shared", "-fPIC", "-o"])
            .arg(double.path())
            .args([format!("-DMINOR={minor}"), format!("-DSIZE={size}")])
            .args(switches.iter().map(|switch| format!("-D{switch}")))
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(source))
            .output()
            .unwrap();
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        double
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("plugin.so")
    }

    fn serdes(&self, command: &str, more: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_serdes"))
            .args(["plugin", command])
            .arg(self.path())
            .args(more)
            .current_dir(self.folder.path())
            .output()
            .unwrap()
    }

    /// Returns the status and the object of `plugin check`.
    fn check(&self, more: &[&str]) -> (i32, Value) {
        answer(&self.serdes("check", &[more, &["--json"]].concat()))
    }

    /// Returns true if the framework fits, and all the reasons why not.
    fn fits(&self, framework: &str) -> (bool, String) {
        let (status, object) = self.check(&["--for", framework]);
        let fit = &object["for"];
        assert_eq!(fit["framework"], framework, "{object}");
        let fits = fit["fits"].as_bool().unwrap_or_else(|| panic!("{object}"));
        assert_eq!(status, if fits { 0 } else { 1 }, "{object}");
        (fits, words(&fit["reasons"]))
    }
}

fn answer(output: &Output) -> (i32, Value) {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(text.lines().count(), 1, "{output:?}");
    (output.status.code().unwrap(), serde_json::from_str(&text).unwrap())
}

fn words(list: &Value) -> String {
    list.as_array()
        .unwrap()
        .iter()
        .map(|word| word.as_str().unwrap())
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn a_library_is_inspected_without_loading_it() {
    let double = Double::new(81, 984, &["LOADED=ABORT"]);
    let (status, object) = answer(&double.serdes("inspect", &["--json"]));
    assert_eq!((status, &object["api"]), (0, &"pjrt".into()), "{object}");
    assert_eq!((&object["pjrt_version"], &object["struct_size"]), (&"0.81".into(), &984.into()));
    assert_eq!(object["exports"], serde_json::json!(["GetPjrtApi"]));
    let people = double.serdes("inspect", &[]);
    let text = String::from_utf8(people.stdout).unwrap();
    assert!(text.contains("a PJRT plug-in") && text.contains("PJRT 0.81"), "{text}");
    // Facts that no pattern finds are unknown, which is not an error.
    let hidden = Double::new(81, 984, &["IN_CODE", "LOADED=ABORT"]);
    let (status, object) = answer(&hidden.serdes("inspect", &["--json"]));
    assert_eq!((status, &object["pjrt_version"]), (0, &Value::Null), "{object}");
}

#[test]
fn first_error_of_a_client_is_a_warning_with_its_text() {
    // jax#13763: the error was swallowed, and a later one misled.
    let (status, object) = Double::new(81, 984, &[]).check(&[]);
    assert_eq!((status, &object["accepted"]), (0, &true.into()), "{object}");
    assert_eq!((&object["pjrt_version"], &object["struct_size"]), (&"0.81".into(), &984.into()));
    assert_eq!((&object["devices"], &object["addressable_devices"]), (&0.into(), &0.into()));
    assert!(words(&object["warnings"]).contains("there is no chip"), "{object}");
    assert_eq!(object["attributes"]["stablehlo_current_version"], serde_json::json!([1, 13, 0]));
    assert_eq!((&object["platform"], object.get("for")), (&Value::Null, None));
    // With options, and with the kind given by name.
    let double = Double::new(81, 984, &["CLIENT=GIVEN"]);
    let plugin = format!("pjrt:{}:chips=1,name=x", double.path().display());
    let output = Command::new(env!("CARGO_BIN_EXE_serdes"))
        .args(["plugin", "check", &plugin, "--json"])
        .output()
        .unwrap();
    let (status, object) = answer(&output);
    assert_eq!((status, &object["devices"]), (0, &1.into()), "{object}");
    assert_eq!(object["platform"], "table");
}

#[test]
fn framework_that_demands_its_minor_refuses_reported_plugins() {
    // jax#22416 with jaxlib 0.4.28 (0.51) and NVIDIA's plug-in of 0.54; flax#4122 with jaxlib
    // 0.4.30 (0.54) and a plug-in of 0.47.
    let (fits, reasons) = Double::new(54, 808, &[]).fits("jaxlib-0.4.28");
    assert!(!fits && reasons.contains("0.54") && reasons.contains("0.51"), "{reasons}");
    let (fits, reasons) = Double::new(47, 808, &[]).fits("jaxlib-0.4.30");
    assert!(!fits && reasons.contains("0.47") && reasons.contains("0.54"), "{reasons}");
    assert!(Double::new(54, 808, &[]).fits("jaxlib-0.4.30").0);
    // pytorch/xla#6949: a framework of 0.40 and a plug-in of 0.47; intel-extension-for-openxla#27:
    // one of 0.40 and Intel's of 0.38. jaxlib 0.4.23 and 0.4.24 are of 0.40, and have the same
    // check.
    for (minor, framework) in [(47, "jaxlib-0.4.23"), (38, "jaxlib-0.4.24")] {
        // Reported before anything is loaded: this plug-in would end the process.
        let double = Double::new(minor, 808, &["LOADED=ABORT"]);
        let (fits, reasons) = double.fits(framework);
        let words = [format!("0.{minor}"), "takes only its own, 0.40".to_owned()];
        assert!(!fits && words.iter().all(|word| reasons.contains(word)), "{reasons}");
        assert!(Double::new(40, 808, &[]).fits(framework).0, "{framework}");
    }
}

#[test]
fn a_size_that_was_put_right_refuses_every_older_framework() {
    // weathernext#185, tpu-inference#1109, docker-python#1499: libtpu 0.0.23 is of 0.75.
    let double = Double::new(75, 960, &["LOADED=ABORT"]);
    for framework in ["jaxlib-0.6.2", "pjrt-0.70"] {
        // Reported before anything is loaded: this plug-in would end the process.
        let (fits, reasons) = double.fits(framework);
        assert!(!fits, "{framework}");
        for part in ["PJRT_Plugin_Attributes_Args", "24 bytes", "at least 32"] {
            assert!(reasons.contains(part), "{reasons}");
        }
    }
    assert!(Double::new(70, 944, &[]).fits("jaxlib-0.6.2").0);
}

#[test]
fn facts_of_the_loaded_plugin_decide_too() {
    // iree#19223: the plug-in of 0.38 has no attributes, and the framework ended the process.
    let (fits, reasons) = Double::new(38, 808, &["NO_ATTRIBUTES"]).fits("jaxlib-0.4.36");
    assert!(!fits && reasons.contains("PJRT_Plugin_Attributes"), "{reasons}");
    // A plug-in that returns an empty list has the function, and the framework continues.
    let empty = Double::new(38, 808, &["EMPTY_ATTRIBUTES"]);
    assert!(empty.fits("jaxlib-0.4.36").0);
    let (_, object) = empty.check(&[]);
    assert_eq!((&object["unimplemented"], &object["missing_optional"]), (&json!([]), &json!([])));
    assert!(words(&object["warnings"]).contains("its list of attributes is empty"), "{object}");
    let verified = empty.serdes("verify", &["--json"]);
    let text = String::from_utf8(verified.stdout).unwrap();
    let line = text.lines().find(|line| line.contains("pjrt_attributes")).unwrap();
    assert!(line.contains("\"pass\"") && line.contains("says nothing of itself"), "{line}");
    // iree#20907: memories became mandatory with jaxlib 0.5.1.
    let iree = Double::new(64, 920, &["CLIENT=GIVEN"]);
    assert!(iree.fits("jaxlib-0.5.0").0);
    let (fits, reasons) = iree.fits("jaxlib-0.5.1");
    assert!(!fits && reasons.contains("PJRT_Device_DefaultMemory"), "{reasons}");
    // aws-neuron-sdk#1095: the plug-in refuses any size other than its own, even a longer one.
    let (status, object) = Double::new(54, 808, &["STRICT"]).check(&["--for", "pjrt-0.71"]);
    assert_eq!((status, &object["size_rule"]), (1, &"equal".into()), "{object}");
    assert!(words(&object["for"]["reasons"]).contains("demands exactly 24"), "{object}");
    assert!(Double::new(54, 808, &[]).fits("pjrt-0.71").0);
    // The plug-in reads none of the framework's programs.
    let (fits, reasons) = Double::new(112, 1144, &["STABLEHLO=9,0,0,9,1,0"]).fits("jaxlib-0.10.2");
    assert!(!fits && reasons.contains("StableHLO"), "{reasons}");
}

#[test]
fn plugin_from_when_slots_moved_is_refused_and_never_called() {
    // openxla-pjrt-plugin#262.
    let (status, object) = Double::new(13, 640, &["CLIENT=ABORT"]).check(&[]);
    assert_eq!((status, &object["accepted"]), (1, &false.into()), "{object}");
    assert_eq!(object["pjrt_version"], "0.13");
    assert!(words(&object["reasons"]).contains("functions moved"), "{object}");
    let (fits, reasons) = Double::new(13, 640, &[]).fits("jaxlib-0.10.2");
    assert!(!fits && reasons.contains("0.29"), "{reasons}");
}

#[test]
fn every_release_is_asked_at_once() {
    let double = Double::new(81, 984, &[]);
    let (status, object) = double.check(&["--for", "all"]);
    let fits = object["for"].as_array().unwrap();
    // The question is which of them fit, and some do.
    assert_eq!(status, 0);
    assert!(fits.len() > 30, "{object}");
    let of = |name: &str| fits.iter().find(|fit| fit["framework"] == name).unwrap();
    assert_eq!(of("jaxlib-0.6.2")["fits"], false);
    assert_eq!(of("jaxlib-0.6.2")["rules"][0], "struct_too_short");
    assert_eq!(
        (&of("jaxlib-0.8.1")["fits"], &of("jaxlib-0.8.1")["pjrt_version"]),
        (&true.into(), &"0.81".into())
    );
    // Two of them are a list as well, and the status is 0 if all of them fit.
    let (status, object) = double.check(&["--for", "jaxlib-0.8.1", "--for", "pjrt-0.90"]);
    assert_eq!((status, object["for"].as_array().unwrap().len()), (0, 2), "{object}");
    let people = double.serdes("check", &["--for", "all"]);
    let text = String::from_utf8(people.stdout).unwrap();
    // Releases with the same answer share one line, and the reason names its rule.
    let mut lines = text.lines().filter(|line| line.starts_with("jaxlib-"));
    assert!(lines.clone().count() < 12, "{text}");
    assert!(lines.any(|line| line.contains(" to ") && line.contains("does not fit (")), "{text}");
    assert!(text.contains("[struct_too_short]"), "{text}");
    let (status, object) = Double::new(20, 984, &[]).check(&["--for", "all"]);
    assert_eq!(status, 1, "none of them fits: {object}");
    // An unknown framework is bad usage, and so is a question about the other kind of plug-in.
    let (status, object) = double.check(&["--for", "jaxlib-9.9.9"]);
    assert_eq!(status, 2);
    assert!(object["error"].as_str().unwrap().contains("jaxlib-0.12.0.1"), "{object}");
    let other = Command::new(env!("CARGO_BIN_EXE_serdes"))
        .args(["plugin", "check", "host", "--for", "jaxlib-0.8.1", "--json"])
        .output()
        .unwrap();
    assert_eq!(answer(&other).0, 2);
}

#[test]
fn plugin_that_ends_the_process_is_an_answer_with_earlier_steps() {
    for (switch, part) in [("CLIENT=EXIT", "exit status 0"), ("CLIENT=ABORT", "SIGABRT")] {
        let (status, object) = Double::new(81, 984, &[switch]).check(&[]);
        assert_eq!((status, &object["accepted"]), (1, &false.into()), "{switch}: {object}");
        let reasons = words(&object["reasons"]);
        assert!(reasons.contains(part) && reasons.contains("a client"), "{switch}: {reasons}");
        assert_eq!(object["pjrt_version"], "0.81", "{switch}");
    }
    for (switch, part) in [("LOADED=EXIT", "exit status 0"), ("LOADED=ABORT", "SIGABRT")] {
        let double = Double::new(81, 984, &[switch]);
        let (status, object) = double.check(&[]);
        assert_eq!((status, &object["accepted"]), (1, &false.into()), "{switch}: {object}");
        assert!(words(&object["reasons"]).contains(part), "{switch}: {object}");
        let verify = double.serdes("verify", &["--json"]);
        let (status, object) = answer(&verify);
        assert_eq!((status, &object["behaviour"]), (1, &"pjrt_load".into()), "{switch}: {object}");
    }
}

#[test]
fn plugin_call_that_does_not_return_is_given_up() {
    let limit = ["--time-limit", "1"];
    let (status, object) = Double::new(81, 984, &["CLIENT=HANG"]).check(&limit);
    assert_eq!((status, &object["devices"]), (0, &0.into()), "{object}");
    assert!(words(&object["warnings"]).contains("PJRT_Client_Create did not return"), "{object}");
    let double = Double::new(81, 984, &["LOADED=HANG"]);
    let (status, object) = double.check(&limit);
    assert_eq!(status, 2, "{object}");
    assert!(object["error"].as_str().unwrap().contains("dlopen did not return"), "{object}");
    // The file alone answers the question as far as possible.
    let (status, object) = double.check(&[&["--for", "jaxlib-0.8.1"], &limit[..]].concat());
    assert_eq!((status, &object["accepted"]), (0, &Value::Null), "{object}");
    assert!(words(&object["warnings"]).contains("dlopen did not return"), "{object}");
}

#[test]
fn a_plug_in_that_changes_the_process_changes_no_answer() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("loaded");
    let switch = format!("MARK=\"{}\"", mark.display());
    let double = Double::new(81, 984, &["UNSETTLES", "CLIENT=GIVEN", &switch]);
    for more in [&["plugin.so"][..], &["plugin.so", "--in-process"]] {
        // By a path relative to this folder.
        let output = Command::new(env!("CARGO_BIN_EXE_serdes"))
            .args(["plugin", "check", "--json"])
            .args(more)
            .current_dir(double.folder.path())
            .output()
            .unwrap();
        let (status, object) = answer(&output);
        assert_eq!((status, &object["devices"]), (0, &1.into()), "{object}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("the plug-in speaks"));
    }
    assert!(fs::remove_file(&mark).is_ok());
    let verify = double.serdes("verify", &["--json"]);
    let text = String::from_utf8(verify.stdout).unwrap();
    let objects: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(objects[0]["behaviour"], "pjrt_load");
    assert!(objects.len() > 60, "{}", objects.len());
    // The plug-in is not loaded if its file decides.
    fs::remove_file(&mark).unwrap();
    assert!(!double.fits("jaxlib-0.6.2").0);
    assert!(!mark.exists());
}

#[test]
fn the_behaviours_of_the_suite_are_listed_and_explained() {
    let serdes = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_serdes")).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let listed = serdes(&["plugin", "verify", "--list", "pjrt:"]);
    assert!(listed.lines().all(|line| line.starts_with("pjrt_")), "{listed}");
    assert!(listed.lines().count() > 70, "{listed}");
    assert!(!serdes(&["plugin", "verify", "--list"]).contains("pjrt_"));
    assert!(serdes(&["explain", "pjrt_on_ready"]).contains("called once"));
    let double = Double::new(81, 984, &[]);
    assert_eq!(serdes(&["plugin", "verify", "--list", double.path().to_str().unwrap()]), listed);
}

#[test]
fn a_missing_function_is_named() {
    let (status, object) = Double::new(81, 984, &["NULL_SLOT=10"]).check(&[]);
    assert_eq!(
        (status, &object["missing_required"]),
        (1, &serde_json::json!(["PJRT_Client_Create"]))
    );
    let (status, object) = Double::new(81, 984, &["NULL_SLOT=6"]).check(&[]);
    assert_eq!(
        (status, &object["missing_optional"]),
        (0, &serde_json::json!(["PJRT_Event_IsReady"]))
    );
    assert_eq!(object["accepted"], true);
}

#[test]
fn a_library_of_another_system_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plugin.dylib");
    // The magic numbers of a library for one processor and for several, and of Windows.
    for (head, part) in [
        (&[0xcf, 0xfa, 0xed, 0xfe][..], "Mach-O"),
        (&[0xca, 0xfe, 0xba, 0xbe], "Mach-O"),
        (b"MZ\x90\0", "PE"),
    ] {
        fs::write(&path, [head, &[0; 60]].concat()).unwrap();
        for arguments in [["plugin", "inspect"], ["plugin", "check"]] {
            let output = Command::new(env!("CARGO_BIN_EXE_serdes"))
                .args(arguments)
                .args([path.to_str().unwrap(), "--json"])
                .output()
                .unwrap();
            let (status, object) = answer(&output);
            assert_eq!(status, 2, "{object}");
            assert!(object["error"].as_str().unwrap().contains(part), "{object}");
        }
    }
}

/// Facts from the name of a symbol need no loading, also where loading is not possible.
#[test]
fn plugin_of_the_sdk_is_judged_by_the_sizes_in_its_file() {
    let upstream = Double::new(80, 984, &["LOADED=ABORT"]);
    assert!(!upstream.fits("jaxlib-0.6.2").0);
    let sdk = Double::new(80, 984, &["SYMBOL=serdes_oldest_framework_minor_29"]);
    let (status, object) = answer(&sdk.serdes("inspect", &["--json"]));
    assert_eq!((status, &object["oldest_framework"]), (0, &json!("0.29")), "{object}");
    let (_, object) = answer(&upstream.serdes("inspect", &["--json"]));
    assert_eq!(object["oldest_framework"], Value::Null);
    // A library that it needs is missing: the file alone decides.
    let switches =
        ["SYMBOL=serdes_oldest_framework_minor_29", "NEEDS=function_of_a_library_that_is_not_here"];
    let double = Double::new(80, 984, &switches);
    let (status, object) = double.check(&["--for", "jaxlib-0.6.2", "--for", "jaxlib-0.4.31"]);
    assert_eq!((status, &object["accepted"]), (1, &Value::Null), "{object}");
    assert_eq!(
        (&object["for"][0]["fits"], &object["for"][1]["fits"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(object["for"][1]["rules"], json!(["minors_differ"]));
    assert_eq!(
        (&object["size_rule"], &object["missing_optional"]),
        (&json!("since 0.29"), &json!([]))
    );
    // A symbol that does not end with a number says nothing.
    for symbol in ["serdes_oldest_framework_minor_", "serdes_oldest_framework_minor_2x"] {
        let double = Double::new(80, 984, &[&format!("SYMBOL={symbol}")]);
        assert!(!double.fits("jaxlib-0.6.2").0, "{symbol}");
    }
}
