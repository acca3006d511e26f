//! Tests of `serdes completions`: scripts for shells.

use crate::testkit::{printed, serdes, status};

#[test]
fn each_shell_gets_a_script_that_knows_the_commands() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let output = serdes(&["completions", shell]);
        assert_eq!(status(&output), 0, "{shell}");
        let script = printed(&output);
        for word in ["negotiate", "serdes-version", "verify-data"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    assert_eq!(status(&serdes(&["completions", "dos"])), 2);
}

#[test]
fn values_are_completed_where_shells_complete_any() {
    for shell in ["bash", "fish", "zsh"] {
        let script = printed(&serdes(&["completions", shell]));
        for word in [
            "attribute_dropped",
            "2.16",
            "pjrt_put",
            "saved_model",
            "jaxlib-0.9.1",
            "torch_xla-2.9",
            "safetensors",
            "sarif",
            "week-4-old",
        ] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
}
