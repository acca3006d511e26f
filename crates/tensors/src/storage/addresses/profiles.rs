//! AWS profiles: settings from the user's files that the environment lacks.
//!
//! The files are those of the AWS tools, `~/.aws/config` and `~/.aws/credentials`, in which
//! `AWS_PROFILE` selects a section. Keys in the files, the region and the endpoint are used. Other
//! sources of keys (roles, single sign-on, programs) are refused with a message, since a user who
//! names such a profile must not get the credentials of the machine. Messages contain no values of
//! a file.

use std::{
    env,
    fs::File,
    io::{self, Read},
    path::PathBuf,
};

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey as Key};

/// Maximum size of a file in bytes; a longer one is no such file.
const LONGEST: u64 = 1 << 20;

/// Settings for other sources of keys.
const ELSEWHERE: [&str; 7] = [
    "role_arn",
    "source_profile",
    "credential_source",
    "credential_process",
    "sso_session",
    "sso_start_url",
    "web_identity_token_file",
];

/// Settings of a profile.
#[derive(Debug, Default, PartialEq, Eq)]
struct Profile {
    access_key_id: Option<String>,
    secret_access_key: Option<String>,
    session_token: Option<String>,
    region: Option<String>,
    endpoint_url: Option<String>,
    /// The setting for another source of keys, if there is one.
    elsewhere: Option<&'static str>,
}

impl Profile {
    fn set(&mut self, name: &str, value: &str) {
        let slot = match name {
            "aws_access_key_id" => &mut self.access_key_id,
            "aws_secret_access_key" => &mut self.secret_access_key,
            "aws_session_token" => &mut self.session_token,
            "region" => &mut self.region,
            "endpoint_url" => &mut self.endpoint_url,
            _ => {
                let known = ELSEWHERE.into_iter().find(|setting| *setting == name);
                self.elsewhere = self.elsewhere.or(known);
                return;
            }
        };
        *slot = Some(value.to_owned());
    }

    /// Takes the settings of a file's section, replacing earlier ones; returns false without the
    /// section.
    fn take(&mut self, text: &str, is_section: impl Fn(&str) -> bool) -> bool {
        let (mut inside, mut seen) = (false, false);
        for line in text.trim_start_matches('\u{feff}').lines() {
            // Indented lines belong to the setting above, and are ignored.
            if line.starts_with([' ', '\t', '#', ';']) {
                continue;
            }
            let line = line.trim_end();
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
                inside = is_section(name.trim());
                seen |= inside;
            } else if let Some((name, value)) = line.split_once('=').filter(|_| inside) {
                self.set(&name.trim().to_ascii_lowercase(), value.trim());
            }
        }
        seen
    }

    /// Returns the profile of this name from the texts of both files; `None` if neither has it.
    fn of(name: &str, config: &str, credentials: &str) -> Option<Self> {
        let mut profile = Self::default();
        let in_config = profile.take(config, |section| {
            let words = section.split_once(char::is_whitespace);
            match words {
                Some(("profile", rest)) => rest.trim() == name,
                _ => section == "default" && name == "default",
            }
        });
        // Keys in the credentials file take precedence.
        let in_credentials = profile.take(credentials, |section| section == name);
        (in_config || in_credentials).then_some(profile)
    }
}

/// Completes a client's builder with settings from the profile that the environment lacks.
///
/// # Errors
/// If the profile that the environment names is missing, or uses another source of keys.
pub(super) fn complete(builder: AmazonS3Builder) -> io::Result<AmazonS3Builder> {
    let variable = |name| env::var(name).ok().filter(|value| !value.is_empty());
    let named = variable("AWS_PROFILE").or_else(|| variable("AWS_DEFAULT_PROFILE"));
    let text = |variable_name, name| text_of(variable(variable_name), name, named.is_some());
    let config = text("AWS_CONFIG_FILE", "config")?;
    let credentials = text("AWS_SHARED_CREDENTIALS_FILE", "credentials")?;
    fill(builder, named.as_deref(), &config, &credentials)
}

/// Reads a file of the user; returns an empty text if it is missing, or unreadable and not
/// explicitly requested.
fn text_of(path: Option<String>, name: &str, asked: bool) -> io::Result<String> {
    let home = || env::var_os("HOME").or_else(|| env::var_os("USERPROFILE")).map(PathBuf::from);
    let path = match path {
        Some(path) => match path.strip_prefix("~/").zip(home()) {
            Some((rest, home)) => home.join(rest),
            None => path.into(),
        },
        None => match home() {
            Some(home) => home.join(".aws").join(name),
            None => return Ok(String::new()),
        },
    };
    let mut text = String::new();
    let read = File::open(&path).and_then(|file| file.take(LONGEST).read_to_string(&mut text));
    match read {
        Ok(_) => Ok(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound || !asked => Ok(String::new()),
        Err(error) => {
            let reason = format!("the file of profiles {} cannot be read: {error}", path.display());
            Err(io::Error::new(error.kind(), reason))
        }
    }
}

fn fill(
    builder: AmazonS3Builder,
    named: Option<&str>,
    config: &str,
    credentials: &str,
) -> io::Result<AmazonS3Builder> {
    let name = named.unwrap_or("default");
    let Some(profile) = Profile::of(name, config, credentials) else {
        if named.is_none() {
            return Ok(builder);
        }
        let reason = format!(
            "the profile {name:?} of AWS_PROFILE is in neither ~/.aws/config nor \
             ~/.aws/credentials; write it there, or name another"
        );
        return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
    };
    let has = |keys: &[Key]| keys.iter().any(|key| builder.get_config_value(key).is_some());
    let has_keys = has(&[Key::AccessKeyId, Key::SecretAccessKey, Key::WebIdentityTokenFile])
        || builder.get_config_value(&Key::SkipSignature).as_deref() == Some("true");
    let region = profile.region.clone().filter(|_| !has(&[Key::Region]));
    let has_endpoint = has(&[Key::Endpoint, Key::S3Endpoint]);
    let endpoint = profile.endpoint_url.clone().filter(|_| !has_endpoint);
    let in_container =
        has(&[Key::ContainerCredentialsRelativeUri, Key::ContainerCredentialsFullUri]);

    let mut builder = builder;
    // The default profile does not override the keys of the machine.
    let is_left_out = named.is_none() && in_container && profile.elsewhere.is_some();
    if !has_keys && !is_left_out {
        builder = with_keys(builder, name, profile)?;
    }
    if let Some(region) = region {
        builder = builder.with_region(region);
    }
    if let Some(endpoint) = endpoint {
        builder = builder.with_endpoint(endpoint);
    }
    Ok(builder)
}

/// Sets the keys of a profile in a client's builder, if it has any.
fn with_keys(
    builder: AmazonS3Builder,
    name: &str,
    profile: Profile,
) -> io::Result<AmazonS3Builder> {
    let reason = match (profile.access_key_id, profile.secret_access_key, profile.elsewhere) {
        (Some(id), Some(secret), _) => {
            let builder = builder.with_access_key_id(id).with_secret_access_key(secret);
            return Ok(match profile.session_token {
                Some(token) => builder.with_token(token),
                None => builder,
            });
        }
        (None, None, None) => return Ok(builder),
        (None, None, Some(setting)) => format!(
            "the profile {name:?} of AWS gets its keys by `{setting}`, which is not done here; set \
             AWS_ACCESS_KEY_ID and its like to what `aws configure export-credentials` prints"
        ),
        (Some(_), None, _) | (None, Some(_), _) => format!(
            "the profile {name:?} of AWS has one of aws_access_key_id and aws_secret_access_key; \
             expected both"
        ),
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, reason))
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*, sample::select};

    use super::*;

    const CONFIG: &str = "\u{feff}# of the tools\r
[default]\r
region = eu-central-1\r
[profile lab]
region=us-west-2
s3 =
    endpoint_url = http://nested
endpoint_url = http://lab:9000
[profile role]
role_arn = arn:aws:iam::1:role/x
source_profile = lab
[services lab]
region = nowhere
";
    const CREDENTIALS: &str = "[default]
aws_access_key_id = one
aws_secret_access_key = a=b/c+d
[lab]
AWS_ACCESS_KEY_ID=two
aws_secret_access_key=secret
aws_session_token = token
[half]
aws_access_key_id = three
";

    fn filled(named: Option<&str>, builder: AmazonS3Builder) -> io::Result<[Option<String>; 5]> {
        let builder = fill(builder, named, CONFIG, CREDENTIALS)?;
        let keys = [Key::AccessKeyId, Key::SecretAccessKey, Key::Token, Key::Region, Key::Endpoint];
        Ok(keys.map(|key| builder.get_config_value(&key)))
    }

    fn texts<const N: usize>(texts: [&str; N]) -> [Option<String>; N] {
        texts.map(|text| (!text.is_empty()).then(|| text.to_owned()))
    }

    #[test]
    fn a_profile_is_in_both_files_and_the_default_one_needs_no_name() {
        let default = filled(None, AmazonS3Builder::new()).unwrap();
        assert_eq!(default, texts(["one", "a=b/c+d", "", "eu-central-1", ""]));
        let lab = filled(Some("lab"), AmazonS3Builder::new()).unwrap();
        assert_eq!(lab, texts(["two", "secret", "token", "us-west-2", "http://lab:9000"]));
    }

    #[test]
    fn environment_goes_before_the_profile() {
        let builder = AmazonS3Builder::new()
            .with_access_key_id("mine")
            .with_secret_access_key("own")
            .with_region("here");
        let found = filled(Some("lab"), builder).unwrap();
        // The user's own keys are not combined with another profile's token.
        assert_eq!(found, texts(["mine", "own", "", "here", "http://lab:9000"]));
        let public = AmazonS3Builder::new().with_skip_signature(true);
        assert_eq!(filled(Some("role"), public).unwrap(), texts([""; 5]));
    }

    #[test]
    fn unsupported_profile_is_refused_without_its_secrets() {
        let refused = |name| filled(Some(name), AmazonS3Builder::new()).unwrap_err().to_string();
        assert!(refused("role").contains("`role_arn`"), "{}", refused("role"));
        assert!(refused("half").contains("expected both"), "{}", refused("half"));
        assert!(!refused("half").contains("three"));
        assert!(refused("nobody").contains("neither"), "{}", refused("nobody"));
        // The sections of the two files are separate.
        assert!(refused("services lab").contains("neither"));
        let container =
            AmazonS3Builder::new().with_config(Key::ContainerCredentialsRelativeUri, "/x");
        let sso = "[default]\nsso_session = corp\n";
        assert!(fill(container.clone(), None, sso, "").is_ok());
        assert!(fill(container, Some("default"), sso, "").is_err());
        assert!(fill(AmazonS3Builder::new(), None, sso, "").is_err());
        assert!(fill(AmazonS3Builder::new(), None, "", "").is_ok());
    }

    /// Generates lines of a file, as people and programs write them and as neither does.
    fn line() -> impl Strategy<Value = String> {
        const NAMES: [&str; 8] = [
            "aws_access_key_id",
            "aws_secret_access_key",
            "AWS_SESSION_TOKEN ",
            "region",
            "endpoint_url",
            "role_arn",
            "sso_session",
            "other",
        ];
        prop_oneof![
            Just("[default]".to_owned()),
            Just("[profile lab]".to_owned()),
            Just("[lab]".to_owned()),
            (select(&NAMES[..]), "[=\\[\\]#; ]{0,3}SECRET[ -~]{0,8}")
                .prop_map(|(name, value)| format!("{name}={value}")),
            "[ \t\\[\\]=#;a-z\u{fc}\u{feff}\r]{0,12}",
        ]
    }

    proptest! {
        #[test]
        fn profile_errors_never_show_values(
            config in vec(line(), 0..12),
            credentials in vec(line(), 0..12),
            name in select(&[None, Some("default"), Some("lab")][..]),
        ) {
            let texts = [config.join("\n"), credentials.join("\r\n")];
            match fill(AmazonS3Builder::new(), name, &texts[0], &texts[1]) {
                Ok(builder) => {
                    let has = |key| builder.get_config_value(&key).is_some();
                    // One key without the other cannot sign, and a token belongs to a pair of keys.
                    prop_assert_eq!(has(Key::AccessKeyId), has(Key::SecretAccessKey));
                    prop_assert!(has(Key::AccessKeyId) || !has(Key::Token));
                }
                Err(error) => prop_assert!(!error.to_string().contains("SECRET"), "{}", error),
            }
        }
    }

    #[test]
    fn binary_profile_file_is_an_error_only_for_a_named_profile() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        std::fs::write(&path, b"\xff\xfe").unwrap();
        let path = Some(path.display().to_string());
        assert_eq!(text_of(path.clone(), "config", false).unwrap(), "");
        assert!(text_of(path, "config", true).unwrap_err().to_string().contains("config"));
        let nowhere = Some(folder.path().join("nothing").display().to_string());
        assert_eq!(text_of(nowhere, "config", true).unwrap(), "");
    }
}
