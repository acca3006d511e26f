//! Parser of addresses.

use std::{
    io,
    path::{Path, PathBuf},
};

use object_store::path::Path as Key;

/// The kinds of object storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Scheme {
    /// S3 and compatible services.
    S3,
    /// Google Cloud Storage.
    Google,
    /// Azure Blob Storage.
    Azure,
}

/// A parsed address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Address {
    /// An object, or a prefix of objects, of a bucket.
    Object {
        /// Kind of storage.
        scheme: Scheme,
        /// The bucket, or container.
        bucket: String,
        /// The key as written: nothing in it is decoded.
        key: Key,
    },
    /// A path of the file system.
    File(PathBuf),
    /// A page of the web.
    Web(http::Uri),
}

impl Address {
    /// Parses an address; `None` for a path of the file system.
    ///
    /// # Errors
    /// If the path starts like an address and is invalid.
    pub(super) fn of(path: &Path) -> Option<io::Result<Self>> {
        let text = path.to_str()?;
        if let Some(scheme) = text.strip_suffix(':').filter(|scheme| scheme_of(scheme).is_some()) {
            // A path into a folder of this name would be taken for a bucket.
            let reason = format!(
                "the address names no bucket; expected {scheme}://bucket/key, and ./{scheme}: for a \
                 folder of this name"
            );
            return Some(Err(invalid(&reason)));
        }
        let (scheme, rest) = text.split_once(":/")?;
        // Path libraries collapse two slashes to one.
        let whole = rest.strip_prefix('/');
        let rest = whole.unwrap_or(rest);
        if let Some(kind) = scheme_of(scheme) {
            return Some(object(kind, scheme, rest));
        }
        match (scheme.to_ascii_lowercase().as_str(), whole) {
            ("file", Some(rest)) => Some(file(rest)),
            ("http" | "https", Some(_)) => Some(web(text)),
            _ => None,
        }
    }
}

/// Returns the kind of object storage of a scheme.
fn scheme_of(text: &str) -> Option<Scheme> {
    match text.to_ascii_lowercase().as_str() {
        "s3" | "s3a" => Some(Scheme::S3),
        "gs" | "gcs" => Some(Scheme::Google),
        "az" | "azure" => Some(Scheme::Azure),
        _ => None,
    }
}

fn invalid(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, reason)
}

fn object(scheme: Scheme, written: &str, rest: &str) -> io::Result<Address> {
    let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._$".contains(&byte);
    let begins = bucket.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '$');
    if !begins || !bucket.bytes().all(is_name) {
        let reason = format!("the address names no bucket; expected {written}://bucket/key");
        return Err(invalid(&reason));
    }
    let key = Key::parse(key).map_err(|_| {
        invalid("the key of the address has an empty part, `.`, `..` or a control character")
    })?;
    Ok(Address::Object { scheme, bucket: bucket.to_owned(), key })
}

/// Parses `file:///path` and `file://localhost/path`.
fn file(rest: &str) -> io::Result<Address> {
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    if !host.is_empty() && !host.eq_ignore_ascii_case("localhost") {
        return Err(invalid("files of other machines cannot be read; expected file:///path"));
    }
    let path = decoded(&format!("/{path}")).ok_or_else(|| {
        invalid("the address has a percent sign without two hexadecimal digits, or is no UTF-8")
    })?;
    Ok(Address::File(PathBuf::from(path)))
}

/// Decodes percent-encoded characters such as `%2F`.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('%') {
        bytes.extend_from_slice(before.as_bytes());
        let digits = behind.get(..2).filter(|digits| !digits.contains(['+', '-']))?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = behind.get(2..)?;
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8(bytes).ok()
}

fn web(text: &str) -> io::Result<Address> {
    let text = text.split('#').next().unwrap_or_default();
    if text.split_once("://").is_some_and(|(_, rest)| rest.is_empty() || rest.starts_with('/')) {
        return Err(invalid("the address names no host; expected https://host/path"));
    }
    let wrong = || invalid("the address is none of the web; write what is not ASCII as %C3%BC");
    if !text.is_ascii() {
        return Err(wrong());
    }
    let uri: http::Uri = text.parse().map_err(|_| wrong())?;
    match uri.authority() {
        Some(host) if host.as_str().contains('@') => {
            Err(invalid("the address has a name or password in it, which is not sent"))
        }
        Some(_) => Ok(Address::Web(uri)),
        None => Err(invalid("the address names no host")),
    }
}

/// Returns a web address without its query, which may be secret.
pub(super) fn shown(uri: &http::Uri) -> String {
    let (scheme, host) = (uri.scheme_str().unwrap_or_default(), uri.host().unwrap_or_default());
    let port = uri.port_u16().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{scheme}://{host}{port}{}", uri.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<Result<Address, String>> {
        Address::of(Path::new(text)).map(|found| found.map_err(|error| error.to_string()))
    }

    fn object(scheme: Scheme, bucket: &str, key: &str) -> Option<Result<Address, String>> {
        let key = Key::parse(key).unwrap();
        Some(Ok(Address::Object { scheme, bucket: bucket.to_owned(), key }))
    }

    #[test]
    fn address_is_known_by_its_scheme_and_the_rest_are_paths() {
        assert_eq!(of("s3://b/runs/7.sds"), object(Scheme::S3, "b", "runs/7.sds"));
        assert_eq!(of("S3://b"), object(Scheme::S3, "b", ""));
        assert_eq!(of("gs://b/dir/"), object(Scheme::Google, "b", "dir"));
        assert_eq!(of("az://my-container/a b%20"), object(Scheme::Azure, "my-container", "a b%20"));
        // The path that `pathlib` makes from the address.
        assert_eq!(of("s3:/b/runs/7.sds"), object(Scheme::S3, "b", "runs/7.sds"));
        for path in ["a.sds", "/a/b", "C:/x", "a:/b", "s3", "http:/x", "file:/x", "-", "x://y"] {
            assert_eq!(of(path), None, "{path}");
        }
    }

    #[test]
    fn a_file_is_a_path_of_this_machine() {
        let path = |text: &str| Some(Ok(Address::File(PathBuf::from(text))));
        assert_eq!(of("file:///a/b%20c"), path("/a/b c"));
        assert_eq!(of("file://localhost/a"), path("/a"));
        for wrong in ["file://host/a", "file:///a%2", "file:///a%+1", "file:///%ff"] {
            assert!(matches!(of(wrong), Some(Err(_))), "{wrong}");
        }
    }

    #[test]
    fn an_address_that_leads_nowhere_says_what_is_expected() {
        for (empty, expected) in [
            ("s3://", "s3://bucket/key"),
            ("gs://.index", "gs://bucket/key"),
            ("https://", "https://host/path"),
        ] {
            let error = of(empty).unwrap().unwrap_err();
            assert!(error.contains("names no") && error.contains(expected), "{empty}: {error}");
        }
        for wrong in ["s3://", "s3:///key", "s3://b/a//b", "s3://b/../x", "s3://me:pass@b/x"] {
            assert!(matches!(of(wrong), Some(Err(_))), "{wrong}");
        }
        assert!(matches!(of("https://me:pass@host/x"), Some(Err(_))));
        assert!(matches!(of("https://host/\u{fc}"), Some(Err(_))));
    }

    #[test]
    fn a_scheme_alone_is_no_folder_whose_files_would_be_addresses() {
        for scheme in ["s3", "S3", "s3a", "gs", "az"] {
            let error = of(&format!("{scheme}:")).unwrap().unwrap_err();
            assert!(error.contains(&format!("./{scheme}:")), "{error}");
            assert_eq!(of(&format!("./{scheme}:")), None);
            assert_eq!(of(&format!("./{scheme}:/a.sds")), None);
        }
        for path in ["C:", "file:", "https:", ":"] {
            assert_eq!(of(path), None, "{path}");
        }
    }

    #[test]
    fn the_query_of_an_address_is_never_shown() {
        let uri = "https://host:8443/a/b?X-Amz-Signature=secret".parse().unwrap();
        assert_eq!(shown(&uri), "https://host:8443/a/b");
    }
}
