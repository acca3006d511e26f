//! Runs every behaviour of the conformance suite on the plug-ins of this package.

/// Loading is supported only there.
#[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
mod loaded {
    use std::{
        collections::BTreeSet,
        path::{Path, PathBuf},
        process::Command,
    };

    use serdes_pjrt::{ElementType, Minor, conformance, inspect};
    use serdes_stream_executor::conformance::{Conformance, ConformanceOptions};

    /// Returns a library of this package, which cargo builds before its tests.
    fn library(name: &str) -> Option<PathBuf> {
        let test = std::env::current_exe().unwrap();
        let mut found = test.ancestors().skip(1).map(|folder| folder.join(name));
        found.find(|path| path.exists())
    }

    /// Returns the plug-in with the newest table, an example of this package. Cargo builds it
    /// before the tests; it is built here if cargo was asked for this test alone.
    fn newest() -> PathBuf {
        const NAME: &str = "examples/libhost_pjrt_newest.so";
        if let Some(built) = library(NAME) {
            return built;
        }
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--package", "serdes-host-pjrt"]);
        build.args(["--example", "host_pjrt_newest", "--target-dir"]);
        // …/TARGET/PROFILE/deps/this if a target was given, …/PROFILE/deps/this otherwise.
        let test = std::env::current_exe().unwrap();
        let profile = test.ancestors().nth(2).unwrap();
        let above = profile.parent().unwrap();
        let triple = above.file_name().and_then(|name| name.to_str());
        let triple = triple.filter(|name| name.starts_with(std::env::consts::ARCH));
        match triple {
            Some(triple) => build.arg(above.parent().unwrap()).args(["--target", triple]),
            None => build.arg(above),
        };
        if profile.ends_with("release") {
            build.arg("--release");
        }
        assert!(build.status().unwrap().success());
        library(NAME).unwrap()
    }

    /// Behaviours that need programs, which no plug-in over host memory compiles.
    const PROGRAMS: [&str; 5] = [
        "pjrt_compile",
        "pjrt_execute",
        "pjrt_no_program",
        "pjrt_unknown_format",
        "pjrt_no_compile_options",
    ];

    /// Returns true if a plug-in of that minor cannot know the element type of a behaviour.
    fn is_newer(behaviour: &str, minor: Minor) -> bool {
        let Some(name) = behaviour.strip_prefix("pjrt_type_") else { return false };
        let of_type = ElementType::of_name(&name.to_uppercase()).unwrap();
        of_type.number_in(minor).is_none()
    }

    fn every_behaviour_passes_or_cannot_be_asked(path: &Path, minor: Minor) {
        let options = ConformanceOptions::new();
        let outcomes = conformance::verify(path, &[], options, |_| ()).unwrap();
        assert_eq!(outcomes.len(), conformance::behaviours().count());
        let mut tried = BTreeSet::new();
        for outcome in outcomes {
            let behaviour = outcome.behaviour;
            let expected = if PROGRAMS.contains(&behaviour) || is_newer(behaviour, minor) {
                Conformance::Unsupported
            } else {
                Conformance::Pass
            };
            assert_eq!(outcome.result, expected, "{behaviour}: {}", outcome.detail);
            // The outcome has the reason.
            assert!(!outcome.detail.is_empty(), "{behaviour}");
            tried.insert(behaviour);
        }
        assert!(PROGRAMS.iter().all(|name| tried.contains(name)), "{tried:?}");
    }

    #[test]
    fn the_reference_plug_in_conforms() {
        let path = library("libserdes_host_pjrt.so").unwrap();
        every_behaviour_passes_or_cannot_be_asked(&path, Minor::new(80));
    }

    #[test]
    fn the_reference_plug_in_of_the_newest_minor_conforms() {
        let path = newest();
        every_behaviour_passes_or_cannot_be_asked(&path, Minor::NEWEST);
        // The facts in its file, without loading it.
        let found = inspect(path).unwrap();
        assert_eq!(found.oldest_framework(), Some(Minor::new(29)));
    }
}
