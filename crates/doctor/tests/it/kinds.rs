//! Tests of environments of kinds that the archives in `tests/data` lack, one per rule, and of
//! directories that only look like environments.

use std::{fs, path::Path};

use pep440_rs::Version;
use serdes_doctor::{Comparison, Environment, Libraries, Misfit, Rule, Verdict, diagnose};

use crate::site::{
    SITE, commands, install, judged, judged_lock, rules, tag, venv, warnings, write,
};

/// Readers that give the same answer for every library.
#[derive(Default)]
struct Says {
    minor: Option<u32>,
    comparison: Option<Comparison>,
    missing: Option<Vec<String>>,
}

impl Libraries for Says {
    fn pjrt_minor(&self, _: &Path) -> Option<u32> {
        self.minor
    }

    fn compare(&self, _: &Path, _: &Version) -> Option<Comparison> {
        self.comparison.clone()
    }

    fn missing_symbols(&self, _: &Path, _: &Version) -> Option<Vec<String>> {
        self.missing.clone()
    }
}

/// The other packages that jax installs: a list with them is complete.
const BESIDE: &str = "numpy==2.4.6\nscipy==1.16.3\nml-dtypes==0.6.0\n";

fn plugin(folder: &Path, package: &str, version: &str, module: &str) {
    install(folder, package, version, "Requires-Dist: numpy");
    let metadata = format!("{SITE}/{package}-{version}.dist-info/entry_points.txt");
    write(folder, &metadata, &format!("[jax_plugins]\nx = jax_plugins.{module}\n"));
    write(folder, &format!("{SITE}/jax_plugins/{module}/__init__.py"), "");
    write(folder, &format!("{SITE}/jax_plugins/{module}/plugin.so"), "");
}

#[test]
fn jax_without_jaxlib_wants_that_of_its_version() {
    let diagnosis = judged_lock("jax==0.4.23\nml-dtypes==0.4.1\nnumpy==1.26.4\nscipy==1.12.0\n");
    assert_eq!(rules(&diagnosis), ["jaxlib_missing"]);
    assert_eq!(commands(&diagnosis), ["pip install 'jaxlib==0.4.23'"]);
}

#[test]
fn jaxlib_below_the_minimum_is_too_old_and_above_it_fits() {
    let diagnosis = judged_lock("jax==0.10.2\njaxlib==0.10.0\n");
    assert_eq!(rules(&diagnosis), ["jaxlib_too_old"]);
    assert_eq!(judged_lock("jax==0.10.2\njaxlib==0.10.1\n").verdict(), Verdict::Fits);
    assert_eq!(judged_lock("jax==0.12.0.1\njaxlib==0.11.2\n").verdict(), Verdict::Fits);
    assert_eq!(rules(&judged_lock("jax==0.12.0\njaxlib==0.12.0.1\n")), ["jaxlib_too_new"]);
}

#[test]
fn half_of_a_plugin_wants_the_other_half() {
    let diagnosis =
        judged_lock(&format!("jax==0.9.2\njaxlib==0.9.2\n{BESIDE}jax-cuda12-plugin==0.9.2\n"));
    assert_eq!(rules(&diagnosis), ["plugin_half_installed"]);
    assert_eq!(commands(&diagnosis)[0], "pip install 'jax-cuda12-pjrt==0.9.2'");
}

#[test]
fn module_of_a_plugin_without_its_library_is_told() {
    let folder = venv(&[("jax", "0.9.2"), ("jaxlib", "0.9.2"), ("jax_cuda12_plugin", "0.9.2")]);
    plugin(folder.path(), "jax_cuda12_pjrt", "0.9.2", "xla_cuda12");
    fs::remove_file(folder.path().join(SITE).join("jax_plugins/xla_cuda12/plugin.so")).unwrap();
    assert_eq!(rules(&judged(folder.path())), ["plugin_library_missing"]);
}

#[test]
fn folder_of_caches_alone_is_no_plugin() {
    let folder = venv(&[("jax", "0.9.2"), ("jaxlib", "0.9.2")]);
    let cache = format!("{SITE}/jax_plugins/xla_cuda12/__pycache__/__init__.cpython-312.pyc");
    write(folder.path(), &cache, "");
    assert_eq!(judged(folder.path()).verdict(), Verdict::Fits);
}

#[test]
fn empty_cuda_packages_are_missing_libraries() {
    let plugin =
        "jax==0.10.2\njaxlib==0.10.2\njax-cuda13-plugin==0.10.2\njax-cuda13-pjrt==0.10.2\n";
    let stubs = "nvidia-cublas-cu13==0.0.1\nnvidia-cudnn-cu13==9.14.0.64\n";
    let diagnosis = judged_lock(&format!("{plugin}{BESIDE}{stubs}"));
    assert_eq!(rules(&diagnosis), ["cuda_library_missing"]);
    assert!(diagnosis.problems[0].packages.iter().any(|one| one == "nvidia-cublas"));
    let none = judged_lock(plugin);
    assert_eq!((none.verdict(), warnings(&none)), (Verdict::Fits, vec!["libraries_elsewhere"]));
}

#[test]
fn protobuf_older_than_generated_code_is_refused() {
    let tensorflow = "tensorflow==2.21.0\nkeras==3.10.0\nnumpy==2.2.0\nml-dtypes==0.5.1\n";
    let diagnosis = judged_lock(&format!("{tensorflow}protobuf==5.29.5\n"));
    assert_eq!(rules(&diagnosis), ["protobuf"]);
    assert_eq!(commands(&diagnosis)[0], "pip install 'protobuf>=6.31.1,<8'");
    // Keras 3.10 works, although 3.12 is declared.
    assert_eq!(judged_lock(&format!("{tensorflow}protobuf==7.30.0\n")).verdict(), Verdict::Fits);
}

#[test]
fn emptied_libtpu_nightly_owns_nothing() {
    let same = |nightly: &str| {
        let lock =
            format!("jax==0.4.36\njaxlib==0.4.36\nlibtpu==0.0.5\nlibtpu-nightly=={nightly}\n");
        rules(&judged_lock(&lock)).contains(&"same_files")
    };
    assert!(same("0.1.dev20240916"));
    assert!(!same("0.0"));
}

#[test]
fn torch_xla_wants_torch_of_its_minor() {
    let diagnosis = judged_lock("torch==2.9.0+cpu\ntorch-xla==2.8.0\nlibtpu==0.0.17\n");
    assert_eq!(rules(&diagnosis), ["torch_xla_torch"]);
    assert_eq!(judged_lock("torch==2.8.1+cpu\ntorch-xla==2.8.0\n").verdict(), Verdict::Fits);
}

#[test]
fn version_file_that_decides_is_a_problem_and_else_a_warning() {
    let folder = venv(&[("jax", "0.9.1"), ("jaxlib", "0.9.1")]);
    let file = format!("{SITE}/jaxlib/version.py");
    write(folder.path(), &file, "__version__ = '0.9.2'\n");
    let diagnosis = judged(folder.path());
    assert_eq!(rules(&diagnosis), ["jaxlib_too_new", "metadata_differs"]);
    write(folder.path(), &file, "__version__ = '0.9.0.1'\n");
    write(folder.path(), &format!("{SITE}/jax/version.py"), "_minimum_jaxlib_version = '0.9.0'\n");
    let diagnosis = judged(folder.path());
    assert_eq!((rules(&diagnosis), warnings(&diagnosis)), (vec![], vec!["metadata_differs"]));
}

#[test]
fn plugin_of_tensorflow_without_its_functions_is_told() {
    let folder = venv(&[("tensorflow", "2.20.0")]);
    write(folder.path(), &format!("{SITE}/tensorflow-plugins/libx.so"), "");
    let environment = &Environment::read(folder.path()).unwrap()[0];
    let answer = |missing: &[&str]| {
        let missing = missing.iter().map(|&name| name.to_owned()).collect();
        let says = Says { missing: Some(missing), ..Says::default() };
        rules(&diagnose(environment, &says))
    };
    assert_eq!(answer(&["TF_NewStatus", "TF_Tensor"]), ["symbols_missing"]);
    assert!(answer(&[]).is_empty());
}

#[test]
fn table_of_a_plugin_decides_over_the_releases() {
    let folder = venv(&[("jax", "0.9.2"), ("jaxlib", "0.9.2")]);
    plugin(folder.path(), "acme_pjrt", "1.0", "acme");
    let environment = &Environment::read(folder.path()).unwrap()[0];
    let misfit = Misfit::new(Rule::StructTooShort, "the plug-in demands a longer struct")
        .with_values("0.120", "what jaxlib-0.9.2 takes");
    let comparison = Comparison::new([misfit]);
    let says = Says { comparison: Some(comparison), ..Says::default() };
    let diagnosis = diagnose(environment, &says);
    assert_eq!(rules(&diagnosis), ["struct_too_short"]);
    assert_eq!(diagnosis.problems[0].packages, ["acme-pjrt", "jaxlib"]);
}

#[test]
fn plugin_newer_than_the_table_of_layouts_is_a_warning() {
    let folder = venv(&[("jax", "0.9.2"), ("jaxlib", "0.9.2")]);
    plugin(folder.path(), "acme_pjrt", "1.0", "acme");
    let environment = &Environment::read(folder.path()).unwrap()[0];
    let newer = Some("PJRT 0.130 was taken for 0.117".to_owned());
    let comparison = Comparison::new([]).with_unknown_minor(newer);
    let says = Says { comparison: Some(comparison), ..Says::default() };
    let diagnosis = diagnose(environment, &says);
    assert_eq!(diagnosis.verdict(), Verdict::Fits);
    assert_eq!(warnings(&diagnosis), ["unknown_minor"]);
}

#[test]
fn plugin_that_bounds_nothing_is_old_beside_a_newer_jaxlib() {
    let name = "intel_extension_for_openxla";
    let with = |jaxlib: &str, fields: &str| {
        let folder = venv(&[("jax", jaxlib), ("jaxlib", jaxlib)]);
        plugin(folder.path(), name, "0.7.0", name);
        install(folder.path(), name, "0.7.0", fields);
        warnings(&judged(folder.path()))
    };
    let bounds_nothing = "Requires-Dist: numpy\nRequires-Dist: scipy<1.12";
    assert_eq!(with("0.9.2", bounds_nothing), ["old_plugin"]);
    assert!(with("0.9.2", "Requires-Dist: jax<0.10").is_empty());
    assert!(with("0.4.30", bounds_nothing).is_empty());
}

#[test]
fn metadata_of_two_versions_is_a_warning() {
    let folder = venv(&[("jax", "0.9.2"), ("jaxlib", "0.9.2"), ("jaxlib", "0.9.1")]);
    write(folder.path(), &format!("{SITE}/jaxlib/version.py"), "__version__ = '0.9.2'\n");
    assert!(warnings(&judged(folder.path())).contains(&"duplicate_metadata"));
}

#[test]
fn tag_of_several_platforms_is_good_where_one_is() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(root, "etc/os-release", "ID=rhel\n");
    let site = "usr/lib/python3.12/site-packages";
    let numpy = format!("{site}/numpy-2.2.0.dist-info");
    write(root, &format!("{numpy}/METADATA"), "Name: numpy\nVersion: 2.2.0\n");
    let wheel = "Tag: cp312-cp312-manylinux_2_17_x86_64.manylinux2014_x86_64\n";
    write(root, &format!("{numpy}/WHEEL"), wheel);
    let mut environment = Environment::read(root).unwrap().remove(0);
    environment.glibc = Some((2, 17));
    assert!(rules(&diagnose(&environment, &Says::default())).is_empty());
    environment.glibc = Some((2, 12));
    assert_eq!(rules(&diagnose(&environment, &Says::default())), ["glibc"]);
}

#[test]
fn wheel_for_any_machine_is_for_this_one() {
    let folder = venv(&[("jax", "0.9.2"), ("jaxlib", "0.9.2"), ("keras", "3.10.0")]);
    tag(folder.path(), "keras", "3.10.0", "py3-none-any");
    assert_eq!(judged(folder.path()).verdict(), Verdict::Fits);
}
