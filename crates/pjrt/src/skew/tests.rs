//! Tests of the verdicts on cases that users reported, and on measurements with real plug-ins.

use serdes_abi::pjrt::Minor;

use super::*;

fn plugin(minor: u32) -> PluginVersion {
    PluginVersion::new(Minor::new(minor))
}

fn framework(minor: u32) -> Framework {
    Framework::new(format!("framework-0.{minor}"), Minor::new(minor))
}

/// Returns the first reason, which is the one that a user sees.
fn first(fit: &Fit) -> (SkewRule, Step) {
    let first = &fit.reasons()[0];
    (first.rule(), first.step())
}

#[test]
fn a_framework_that_demands_its_own_minor_refuses_every_other() {
    // (plug-in, framework) of jax#22416, pytorch/xla#6949, intel-extension-for-openxla#27 and
    // flax#4122.
    for (theirs, own) in [(54, 51), (47, 40), (38, 40), (47, 54)] {
        let equal = framework(own).with_gate(Gate::Equal);
        let fit = equal.fit(&plugin(theirs));
        assert_eq!(first(&fit), (SkewRule::MinorsDiffer, Step::Load), "{theirs} {own}");
        let said = fit.reasons()[0].message();
        assert!(
            said.contains(&format!("0.{theirs}")) && said.contains(&format!("0.{own}")),
            "{said}"
        );
        assert!(equal.fit(&plugin(own)).fits());
    }
    // The two cases whose frameworks are not jaxlib, with releases of jaxlib of the same minor and
    // check.
    for (theirs, release) in [(47, "jaxlib-0.4.23"), (38, "jaxlib-0.4.24")] {
        let framework = Framework::named(release).unwrap();
        assert_eq!((framework.minor(), framework.gate()), (Minor::new(40), Gate::Equal));
        assert_eq!(first(&framework.fit(&plugin(theirs))), (SkewRule::MinorsDiffer, Step::Load));
    }
    // The release of jax#22416.
    let jaxlib = Framework::named("jaxlib-0.4.28").unwrap();
    assert_eq!((jaxlib.minor(), jaxlib.gate()), (Minor::new(51), Gate::Equal));
    assert_eq!(first(&jaxlib.fit(&plugin(54))), (SkewRule::MinorsDiffer, Step::Load));
}

#[test]
fn a_size_that_was_put_right_breaks_every_older_framework() {
    // weathernext#185, tpu-inference#1109, docker-python#1499: 32 bytes expected, 24 given.
    for (own, theirs) in [(70, 71), (67, 80), (68, 117)] {
        let fit = framework(own).fit(&plugin(theirs));
        assert_eq!(first(&fit), (SkewRule::StructTooShort, Step::DescribeClient), "{own} {theirs}");
        let said = fit.reasons()[0].message();
        for part in ["PJRT_Plugin_Attributes_Args", "24 bytes", "at least 32"] {
            assert!(said.contains(part), "{said}");
        }
    }
    let jaxlib = Framework::named("jaxlib-0.6.2").unwrap();
    assert_eq!(jaxlib.minor(), Minor::new(70));
    assert!(!jaxlib.fit(&plugin(81)).fits() && jaxlib.fit(&plugin(70)).fits());
    // In the other direction it is not a break.
    assert!(framework(71).fit(&plugin(70)).fits());
}

#[test]
fn a_function_that_a_framework_cannot_do_without_is_named() {
    // iree#19223: no attributes, and the framework ends the process.
    let iree = plugin(38).without(["PJRT_Plugin_Attributes"]);
    let fit = framework(57).fit(&iree);
    assert_eq!(first(&fit), (SkewRule::FunctionMissing, Step::DescribeClient));
    assert!(fit.reasons()[0].message().contains("PJRT_Plugin_Attributes"));
    // iree#20907: memories became mandatory with jax 0.5.1.
    let iree = plugin(40).without(["PJRT_Device_DefaultMemory"]);
    let before = Framework::named("jaxlib-0.5.0").unwrap();
    let after = Framework::named("jaxlib-0.5.1").unwrap();
    assert!(before.fit(&iree).fits());
    assert_eq!(first(&after.fit(&iree)), (SkewRule::FunctionMissing, Step::DescribeClient));
    // A plug-in that has them fits both.
    assert!(after.fit(&plugin(40)).fits());
}

#[test]
fn a_plug_in_of_a_time_in_which_slots_moved_is_never_called() {
    // openxla-pjrt-plugin#262: 0.13.
    let fit = framework(13).with_gate(Gate::Equal).fit(&plugin(13));
    assert_eq!(first(&fit), (SkewRule::SlotsMoved, Step::Load));
    let fit = Framework::named("jaxlib-0.10.2").unwrap().fit(&plugin(28));
    assert_eq!(first(&fit), (SkewRule::PluginTooOld, Step::Load));
    assert!(fit.reasons()[0].message().contains("0.29"));
    assert_eq!(fit.reasons()[1].rule(), SkewRule::SlotsMoved);
}

#[test]
fn plugin_with_equal_size_rule_takes_no_other_size() {
    // aws-neuron-sdk#1095.
    let strict = plugin(54).with_size_rule(SizeRule::Equal);
    let fit = framework(71).fit(&strict);
    assert!(fit.reasons().iter().all(|reason| reason.rule() == SkewRule::StructSizeDiffers));
    assert!(fit.reasons().iter().any(|reason| reason.message().contains("PJRT_ExecuteOptions")));
    assert!(framework(54).fit(&strict).fits());
    assert!(framework(71).fit(&plugin(54)).fits());
}

#[test]
fn plugin_with_a_since_rule_fits_older_frameworks() {
    let lenient = |oldest| plugin(80).with_size_rule(SizeRule::Since(Minor::new(oldest)));
    for release in ["jaxlib-0.4.33", "jaxlib-0.5.3", "jaxlib-0.7.2", "jaxlib-0.12.0.1"] {
        let framework = Framework::named(release).unwrap();
        assert!(framework.fit(&lenient(29)).fits(), "{release}");
    }
    let framework = Framework::named("jaxlib-0.5.3").unwrap();
    assert!(!framework.fit(&plugin(80)).fits());
    let fit = framework.fit(&lenient(71));
    assert_eq!(fit.reasons()[0].rule(), SkewRule::StructTooShort);
    assert!(fit.reasons()[0].message().contains("at least 32"), "{:?}", fit.reasons());
}

#[test]
fn pairs_that_were_measured_fit() {
    for own in [81, 90, 106, 114] {
        for theirs in [81, 106, 115, 116, 117] {
            let fit = framework(own).fit(&plugin(theirs));
            assert!(fit.fits(), "{own} {theirs}: {:?}", fit.reasons());
        }
    }
}

#[test]
fn older_hosts_fail_where_they_were_seen_to() {
    let reason = |own: u32, theirs: u32, step: Step| {
        let fit = framework(own).fit(&plugin(theirs));
        let found = fit.reasons().iter().find(|reason| reason.step() == step);
        found.map(|reason| reason.message().to_owned()).unwrap_or_default()
    };
    for theirs in [81, 106, 115, 116, 117] {
        for (own, given) in [(62, 72), (72, 80)] {
            let said = reason(own, theirs, Step::Execute);
            let (given, least) = (format!("{given} bytes"), "at least 112");
            assert!(said.contains(&given) && said.contains(least), "{own} {theirs}: {said}");
        }
        for own in [40, 54] {
            let said = reason(own, theirs, Step::CreateClient);
            assert!(said.contains("72 bytes") && said.contains("at least 88"), "{own}: {said}");
        }
    }
}

#[test]
fn rarely_used_function_is_a_warning() {
    // Memory statistics have grown since; arrays and programs still work.
    let fit = framework(81).fit(&plugin(114));
    assert!(fit.fits());
    let warned = fit.warnings().iter().map(Mismatch::message).collect::<String>();
    assert!(warned.contains("PJRT_Device_MemoryStats_Args"), "{warned}");
    assert!(framework(114).fit(&plugin(114)).warnings().is_empty());
}

#[test]
fn shorter_size_seen_accepted_is_no_warning() {
    // 64 of 72 bytes, 185 of 201, 112 of 120: the least that libtpu 0.0.52 takes.
    assert!(!framework(112).fit(&plugin(113)).warnings().is_empty());
    for own in [110, 112, 116] {
        let fit = framework(own).fit(&plugin(117));
        assert!(fit.fits() && fit.warnings().is_empty(), "{own}: {:?}", fit.warnings());
    }
    // It accepts no shorter ones: the arguments of 0.89 have 49 bytes, and 72 are required.
    let fit = framework(89).fit(&plugin(117));
    let warned = fit.warnings().iter().map(Mismatch::message).collect::<String>();
    assert!(warned.contains("PJRT_Device_PoisonExecution_Args"), "{warned}");
}

#[test]
fn plugin_newer_than_the_table_is_taken_for_the_newest_minor() {
    let fit = framework(117).fit(&plugin(118));
    assert!(fit.fits());
    assert_eq!(fit.warnings()[0].rule(), SkewRule::UnknownMinor);
    assert!(fit.warnings()[0].message().contains("0.118"));
    assert!(framework(117).fit(&plugin(117)).warnings().is_empty());
}

#[test]
fn torch_xla_fails_where_users_saw_it_fail() {
    let torch_xla = |release: &str| Framework::named(&format!("torch_xla-{release}")).unwrap();
    // tpu-inference#1109, docker-python#1499: 2.8 with libtpu 0.0.23, which has 0.75.
    let fit = torch_xla("2.8.0").fit(&plugin(75));
    assert_eq!(first(&fit), (SkewRule::StructTooShort, Step::DescribeClient));
    assert!(fit.reasons()[0].message().contains("at least 32"), "{:?}", fit.reasons());
    assert!(torch_xla("2.9.0").fit(&plugin(75)).fits());
    // pytorch/xla#6949: 0.47, and a framework of 0.40 that requires its own minor.
    let fit = torch_xla("2.2.0").fit(&plugin(47));
    assert_eq!(first(&fit), (SkewRule::MinorsDiffer, Step::Load));
}

#[test]
fn programs_must_have_a_version_that_both_know() {
    let jaxlib = Framework::named("jaxlib-0.10.2").unwrap();
    let plugin = plugin(112);
    assert!(jaxlib.fit(&plugin.clone().with_stablehlo([0, 9, 0], [1, 13, 3])).fits());
    let fit = jaxlib.fit(&plugin.clone().with_stablehlo([9, 0, 0], [9, 1, 0]));
    assert_eq!(first(&fit), (SkewRule::StableHlo, Step::Compile));
    assert!(fit.reasons()[0].message().contains("9.0.0"));
    assert!(!jaxlib.fit(&plugin.with_stablehlo([0, 1, 0], [0, 8, 9])).fits());
}

#[test]
fn every_release_of_the_table_is_found_by_its_name() {
    let names: Vec<String> = Framework::names().collect();
    assert!(names.len() > 30, "{names:?}");
    let mut before = Minor::OLDEST;
    for name in &names {
        let found = Framework::named(name).unwrap();
        assert!(found.minor() >= before, "{name}: minors never went back");
        before = found.minor();
        // A plug-in of the same minor always fits.
        let fit = found.fit(&plugin(found.minor().number()));
        assert!(fit.fits(), "{name}: {:?}", fit.reasons());
    }
    let mut before = Minor::OLDEST;
    for name in Framework::torch_xla_names() {
        let found = Framework::named(&name).unwrap();
        assert!(found.minor() >= before, "{name}: minors never went back");
        before = found.minor();
    }
    // A framework without a name is given by its minor.
    let any = Framework::named("pjrt-0.70").unwrap();
    assert_eq!((any.minor(), any.gate()), (Minor::new(70), Gate::AtLeast(Minor::new(29))));
    for name in ["jaxlib-9.9.9", "jax-0.9.1", "0.9.1", "", "pjrt-70", "pjrt-1.70"] {
        assert_eq!(Framework::named(name), None);
    }
}

#[test]
fn structs_and_functions_that_are_judged_by_are_in_the_table() {
    for (_, structs) in steps::STRUCTS {
        for name in *structs {
            assert!(serdes_abi::pjrt::structure(name).is_some(), "{name}");
        }
    }
    for need in steps::NEEDS {
        assert!(serdes_abi::pjrt::function(need.function).is_some(), "{}", need.function);
    }
}
