//! Tests that one cause is one problem, which lists every package that it breaks and has one
//! remedy.

use std::path::Path;

use crate::site::{commands, install, judged, judged_lock, rules, tag, venv, write};

#[test]
fn numpy_that_breaks_several_packages_is_one_problem() {
    let diagnosis = judged_lock(
        "jax==0.10.2\njaxlib==0.10.2\nml-dtypes==0.6.0\nnumpy==1.26.4\norbax-checkpoint==0.11.40\ntensorstore==0.1.84\n",
    );
    assert_eq!(rules(&diagnosis), ["numpy"]);
    let problem = &diagnosis.problems[0];
    assert_eq!(problem.packages[0], "numpy");
    for package in ["jax", "jaxlib", "ml-dtypes"] {
        assert!(problem.packages.iter().any(|one| one == package), "{:?}", problem.packages);
    }
    assert_eq!(commands(&diagnosis), ["pip install 'numpy>=2.0.0'"]);
}

#[test]
fn package_that_is_too_old_and_too_new_has_two_causes() {
    let folder = venv(&[("numpy", "2.0.2")]);
    install(folder.path(), "flax", "0.9.0", "Requires-Dist: numpy>=2.1");
    install(folder.path(), "orbax_checkpoint", "0.6.0", "Requires-Dist: numpy<2");
    let diagnosis = judged(folder.path());
    assert_eq!(rules(&diagnosis).len(), 2);
    let packages: Vec<_> = diagnosis.problems.iter().map(|one| one.packages.clone()).collect();
    assert!(packages.iter().all(|one| one.len() == 2), "{packages:?}");
}

#[test]
fn extra_that_takes_a_package_counts_before_one_that_pins_it() {
    let extras = "Provides-Extra: pinned-tf\nProvides-Extra: tensorflow\n\
        Requires-Dist: tensorflow==2.18.0 ; extra == 'pinned-tf'\n\
        Requires-Dist: tensorflow>=2.11.0 ; extra == 'tensorflow'";
    for (version, found) in [("2.21.0", &[][..]), ("2.10.0", &["requirement"])] {
        let folder = venv(&[("tensorflow", version)]);
        install(folder.path(), "safetensors", "0.8.0", extras);
        assert_eq!(rules(&judged(folder.path())), found, "{version}");
    }
    // A requirement without an extra counts, even if an extra relaxes it.
    let folder = venv(&[("tensorflow", "2.21.0")]);
    let plain = format!("{extras}\nRequires-Dist: tensorflow<2.20");
    install(folder.path(), "safetensors", "0.8.0", &plain);
    assert_eq!(rules(&judged(folder.path())), ["requirement"]);
}

#[test]
fn packages_of_another_python_are_one_problem() {
    let folder = venv(&[("jax", "0.10.2"), ("jaxlib", "0.10.2"), ("safetensors", "0.6.2")]);
    let names = [("jaxlib", "0.10.2"), ("ml_dtypes", "0.5.1"), ("numpy", "2.2.0")];
    for (name, version) in names {
        install(folder.path(), name, version, "");
        tag(folder.path(), name, version, "cp311-cp311-manylinux_2_27_x86_64");
    }
    tag(folder.path(), "jax", "0.10.2", "py3-none-any");
    tag(folder.path(), "safetensors", "0.6.2", "cp38-abi3-manylinux_2_17_x86_64");
    let diagnosis = judged(folder.path());
    assert_eq!(rules(&diagnosis), ["python_abi"]);
    assert_eq!(diagnosis.problems[0].packages, ["jaxlib", "ml-dtypes", "numpy"]);
    assert_eq!(
        commands(&diagnosis),
        [
            "pip install --force-reinstall --no-deps 'jaxlib==0.10.2' 'ml-dtypes==0.5.1' 'numpy==2.2.0'"
        ]
    );
}

#[test]
fn python_below_what_packages_declare_is_one_problem() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "pyvenv.cfg", "home = /usr/bin\nversion = 3.11.9\n");
    for name in ["jax", "jaxlib"] {
        let metadata = format!("Name: {name}\nVersion: 0.11.0\nRequires-Python: >=3.12\n");
        let path = format!("lib/python3.11/site-packages/{name}-0.11.0.dist-info/METADATA");
        write(folder.path(), &path, &metadata);
    }
    let diagnosis = judged(folder.path());
    assert_eq!(rules(&diagnosis), ["python_version"]);
    assert_eq!(diagnosis.problems[0].packages, ["jax", "jaxlib"]);
    assert_eq!(diagnosis.problems[0].expected, ">=3.12");
    assert_eq!(commands(&diagnosis), ["pip install 'jax==0.10.2' 'jaxlib==0.10.2'"]);
}

#[test]
fn wheels_of_another_machine_are_one_problem() {
    let folder = venv(&[("jax", "0.10.2"), ("jaxlib", "0.10.2"), ("numpy", "2.2.0")]);
    tag(folder.path(), "jaxlib", "0.10.2", "cp312-cp312-manylinux_2_27_s390x");
    tag(folder.path(), "numpy", "2.2.0", "cp312-cp312-manylinux2014_s390x");
    let diagnosis = judged(folder.path());
    assert_eq!(rules(&diagnosis), ["architecture"]);
    assert_eq!(diagnosis.problems[0].packages, ["jaxlib", "numpy"]);
    assert_eq!(diagnosis.problems[0].found, "s390x");
}

#[test]
fn pins_of_one_package_on_cuda_libraries_are_one_problem() {
    let folder = venv(&[]);
    let libraries =
        ["cublas", "cufft", "cusolver", "cusparse"].map(|one| format!("nvidia-{one}-cu12"));
    let requires = libraries.iter().map(|name| format!("Requires-Dist: {name}==12.4.5.8\n"));
    install(folder.path(), "torch", "2.6.0", &requires.collect::<String>());
    for name in &libraries {
        install(folder.path(), name, "12.9.1.4", "");
    }
    let diagnosis = judged(folder.path());
    assert_eq!(rules(&diagnosis), ["requirement"]);
    let problem = &diagnosis.problems[0];
    assert_eq!((problem.packages[0].as_str(), problem.packages.len()), ("torch", 5));
    let changes: Vec<usize> = problem.remedies.iter().map(|one| one.changes.len()).collect();
    assert_eq!(changes, [1, 4], "torch moves, or the libraries do");
}

#[test]
fn cuda_libraries_that_are_too_old_are_one_problem() {
    let plugin = "jax==0.9.2\njaxlib==0.9.2\njax-cuda12-plugin==0.9.2\njax-cuda12-pjrt==0.9.2\n";
    let libraries = "nvidia-cublas-cu12==12.1.0.26\nnvidia-cudnn-cu12==9.1.0.70\nnvidia-cufft-cu12==11.4.1.4\nnvidia-cusolver-cu12==11.7.5.82\nnvidia-cusparse-cu12==12.5.10.65\nnvidia-cuda-runtime-cu12==12.9.79\nnvidia-cuda-cupti-cu12==12.9.79\n";
    let diagnosis = judged_lock(&format!("{plugin}{libraries}"));
    assert_eq!(rules(&diagnosis), ["cuda_library_too_old"]);
    let packages = ["nvidia-cudnn-cu12", "nvidia-cublas-cu12", "jax-cuda12-plugin"];
    assert_eq!(diagnosis.problems[0].packages, packages);
    let changes = &diagnosis.problems[0].remedies[0].changes;
    assert_eq!(changes.len(), 2, "{changes:?}");
}

#[test]
fn builds_of_tensorflow_in_one_folder_are_one_problem() {
    let diagnosis =
        judged_lock("tensorflow==2.21.0\ntensorflow-cpu==2.21.0\ntensorflow-gpu==2.12.0\n");
    let same: Vec<_> =
        diagnosis.problems.iter().filter(|one| one.rule.id() == "same_files").collect();
    assert_eq!(same.len(), 1);
    assert_eq!(same[0].packages, ["tensorflow", "tensorflow-cpu", "tensorflow-gpu"]);
}

#[test]
fn plugins_of_one_platform_are_one_problem() {
    let folder = venv(&[("jax", "0.12.0.1"), ("jaxlib", "0.12.0.1")]);
    let plugins = [("xla_rocm60", "0.4.35"), ("xla_rocm7", "0.12.0"), ("xla_rocm10", "0.12.0")];
    for (module, version) in plugins {
        let rest = module.trim_start_matches("xla_");
        for half in ["plugin", "pjrt"] {
            install(folder.path(), &format!("jax_{rest}_{half}"), version, "");
        }
        let library =
            format!("lib/python3.12/site-packages/jax_plugins/{module}/xla_rocm_plugin.so");
        write(folder.path(), &library, "");
    }
    let diagnosis = judged(folder.path());
    let same: Vec<_> =
        diagnosis.problems.iter().filter(|one| one.rule.id() == "plugins_same_platform").collect();
    assert_eq!(same.len(), 1);
    assert_eq!(same[0].packages.len(), 3);
}

#[test]
fn frameworks_beyond_the_tables_are_one_warning() {
    let folder = venv(&[("jax", "99.0"), ("jaxlib", "99.0")]);
    let diagnosis = judged(folder.path());
    let newer: Vec<_> =
        diagnosis.warnings.iter().filter(|one| one.rule.id() == "newer_than_known").collect();
    assert_eq!(newer.len(), 1);
    assert_eq!(newer[0].packages, ["jax", "jaxlib"]);
    assert!(Path::new(&diagnosis.environment.label).is_dir());
}

#[test]
fn package_that_needs_an_older_jax_has_one_cause() {
    let diagnosis = judged_lock("jax==0.6.0\njaxlib==0.6.0\njax-metal==0.1.1\n");
    assert_eq!(rules(&diagnosis), ["undeclared_need"]);
    let commands = commands(&diagnosis);
    assert!(commands.contains(&"pip uninstall -y jax-metal".to_owned()), "{commands:?}");
}

#[test]
fn plugin_beyond_the_bounds_of_an_old_jax_is_told() {
    // This jaxlib does not compare numbers of plug-ins.
    let folder = venv(&[("jaxlib", "0.4.35")]);
    install(
        folder.path(),
        "jax",
        "0.4.35",
        "Provides-Extra: cuda12\nRequires-Dist: jax-cuda12-plugin[with_cuda]<=0.4.35,>=0.4.34; extra == \"cuda12\"",
    );
    for half in ["jax_cuda12_plugin", "jax_cuda12_pjrt"] {
        install(folder.path(), half, "0.5.0", "");
    }
    assert_eq!(rules(&judged(folder.path())), ["requirement"]);
}

#[test]
fn libraries_that_another_package_brings_are_not_of_jaxlib() {
    let text = "jaxlib==0.4.28\nnumpy==1.26.4\nnvidia-cudnn-cu12==9.1.0.70\n";
    assert!(rules(&judged_lock(text)).is_empty());
}

#[test]
fn plugins_of_kernels_that_jaxlib_does_not_list_have_remedies() {
    let plugin = "jax-rocm10-plugin==0.10.2\njax-rocm10-pjrt==0.10.2\n";
    let diagnosis = judged_lock(&format!("jax==0.10.2\njaxlib==0.10.2\n{plugin}"));
    assert_eq!(rules(&diagnosis), ["undeclared_need"]);
    let commands = commands(&diagnosis);
    let removal = "pip uninstall -y jax-rocm10-pjrt jax-rocm10-plugin".to_owned();
    assert!(commands.contains(&removal), "{commands:?}");
}

#[test]
fn cudnn_of_another_cuda_is_not_told_as_what_a_plugin_wants() {
    let with = |cudnn: &str| {
        let folder = venv(&[
            ("jax", "0.9.2"),
            ("jaxlib", "0.9.2"),
            ("jax-cuda12-plugin", "0.9.2"),
            ("jax-cuda12-pjrt", "0.9.2"),
            (cudnn, "9.12.0.46"),
        ]);
        judged(folder.path())
    };
    let other = with("nvidia-cudnn-cu13");
    assert_eq!(rules(&other), ["cuda_library_missing"]);
    assert!(!other.to_string().contains("or newer wanted)"), "{other}");
    assert!(with("nvidia-cudnn-cu12").to_string().contains("cuDNN 9.12.0 (9.8 or newer wanted)"));
}

#[test]
fn cudnn_that_jax_refuses_is_told() {
    let libraries = "nvidia-cublas-cu12==12.9.1.4\nnvidia-cufft-cu12==11.4.1.4\nnvidia-cusolver-cu12==11.7.5.82\nnvidia-cusparse-cu12==12.5.10.65\nnvidia-cuda-runtime-cu12==12.9.79\nnvidia-cuda-cupti-cu12==12.9.79\n";
    let judge = |cudnn: &str| {
        let jax = "jax==0.9.2\njaxlib==0.9.2\njax-cuda12-plugin==0.9.2\njax-cuda12-pjrt==0.9.2\n";
        judged_lock(&format!("{jax}{libraries}nvidia-cudnn-cu12=={cudnn}\n"))
    };
    let refused = judge("9.10.0.56");
    assert_eq!(rules(&refused), ["undeclared_need"]);
    assert_eq!(commands(&refused)[0], "pip install 'nvidia-cudnn-cu12!=9.10.0.*'");
    assert!(rules(&judge("9.10.2.21")).is_empty());
}

#[test]
fn runtime_two_majors_above_generated_code_is_told() {
    let with = |protobuf: &str| {
        let text = format!(
            "tensorflow==2.20.0\nprotobuf=={protobuf}\nnumpy==2.1.3\nkeras==3.12.0\nml-dtypes==0.5.4\n"
        );
        rules(&judged_lock(&text))
    };
    assert_eq!(with("7.34.0"), ["protobuf"]);
    assert!(with("6.33.0").is_empty());
}
