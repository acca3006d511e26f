//! User messages for a store's errors.
//!
//! Answers of stores repeat signed text and key ids, and requests carry tokens in their addresses.
//! The message keeps only the status, the code and the message text.

use std::error::Error;

use object_store::Error as StoreError;

/// Longest message of a store that is repeated, in characters.
const LONGEST: usize = 300;

/// Returns the message for an error of a store: the answer of the server, and what to do about it.
pub(super) fn message_of(error: &StoreError) -> String {
    let detail = answer_of(error).unwrap_or_else(|| clean(&error.to_string()));
    match error {
        StoreError::NotFound { .. } => format!("not found ({detail})"),
        error if is_refusal(error) => {
            format!("the store refuses the credentials of the environment ({detail})")
        }
        StoreError::Unauthenticated { .. } => format!(
            "the store wants credentials that the environment does not have, or refuses them ({detail})"
        ),
        // Keys from the caller are valid paths: only a listing returns others.
        StoreError::InvalidPath { source } => format!(
            "{}: no path leads to such a key, which has an empty part, as `a//b`, or `.` or `..`, and \
             the store's listing ends there; rename that object, or remove it",
            clean(&source.to_string())
        ),
        _ => detail,
    }
}

/// Returns true if the store refuses the credentials. For a listing only the server's answer shows
/// it, not the error's kind.
pub(super) fn is_refusal(error: &StoreError) -> bool {
    match error {
        StoreError::PermissionDenied { .. } => true,
        StoreError::Generic { source, .. } => {
            let answer = with_causes(&**source);
            let status = answer.split_once("status code: ").map(|(_, status)| status);
            status.is_some_and(|status| status.starts_with("403 "))
        }
        _ => false,
    }
}

/// Returns the server's answer or the connection's message, without the request.
fn answer_of(error: &StoreError) -> Option<String> {
    let mut source = error.source();
    while let Some(found) = source {
        source = found.source();
        // This message has the method, the address and the time; the answer is its source.
        if found.to_string().starts_with("Error performing ") {
            return source.map(|answer| summary_of_answer(&with_causes(answer)));
        }
    }
    None
}

/// Returns the message of an error, followed by those of its causes that it does not contain:
/// errors of stores do not print their causes.
pub fn with_causes(error: &(dyn Error + 'static)) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(found) = cause {
        let detail = found.to_string();
        if !message.contains(&detail) {
            message = format!("{message}: {detail}");
        }
        cause = found.source();
    }
    message
}

/// Summarizes an answer by its status, and the code and first line of the message in its body: `404
/// Not Found, NoSuchKey: The specified key does not exist.`
fn summary_of_answer(answer: &str) -> String {
    let Some((_, answer)) = answer.split_once("status code: ") else { return clean(answer) };
    let (status, body) = answer.split_once(": ").unwrap_or((answer, ""));
    let code = between(body, "<Code>", "</Code>").or_else(|| between(body, "\"status\": \"", "\""));
    let sentence = between(body, "<Message>", "</Message>")
        .or_else(|| between(body, "\"message\": \"", "\""))
        .map(|sentence| sentence.lines().next().unwrap_or_default());
    let details: Vec<String> = [code, sentence].into_iter().flatten().map(clean).collect();
    match details.is_empty() {
        true => clean(status),
        false => format!("{}, {}", clean(status), details.join(": ")),
    }
}

/// Returns the text between the first `begin` and the next `end`, if there is any.
fn between<'a>(text: &'a str, begin: &str, end: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(begin)?;
    rest.split_once(end).map(|(found, _)| found).filter(|found| !found.is_empty())
}

/// Removes control characters, and queries and user names from addresses; cuts the text after
/// [`LONGEST`] characters.
fn clean(text: &str) -> String {
    let plain: String =
        text.chars().filter(|letter| !letter.is_control() || letter.is_whitespace()).collect();
    let words = plain.split_whitespace().map(|word| match word.split_once("://") {
        Some((scheme, rest)) => {
            let rest = rest.split(['?', '#']).next().unwrap_or_default();
            let (host, path) = rest.split_once('/').map_or((rest, None), |(a, b)| (a, Some(b)));
            let host = host.rsplit('@').next().unwrap_or_default();
            path.map_or(format!("{scheme}://{host}"), |path| format!("{scheme}://{host}/{path}"))
        }
        None => word.to_owned(),
    });
    let mut text = words.collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = text.char_indices().nth(LONGEST) {
        text.truncate(end);
        text.push('\u{2026}');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_its_status_its_code_and_its_sentence() {
        let answer = "Server returned non-2xx status code: 403 Forbidden: <?xml version=\"1.0\"?>\
            <Error><Code>SignatureDoesNotMatch</Code><Message>It does not match.</Message>\
            <AWSAccessKeyId>AKIASECRET</AWSAccessKeyId><StringToSign>AWS4 x</StringToSign></Error>";
        let words = summary_of_answer(answer);
        assert_eq!(words, "403 Forbidden, SignatureDoesNotMatch: It does not match.");
        let json = "Server returned non-2xx status code: 401 Unauthorized: {\"error\": {\"code\": 401, \
            \"message\": \"Invalid Credentials\", \"token\": \"ya29.secret\"}}";
        assert_eq!(summary_of_answer(json), "401 Unauthorized, Invalid Credentials");
        let html =
            "Server returned non-2xx status code: 502 Bad Gateway: <html>token=secret</html>";
        assert_eq!(summary_of_answer(html), "502 Bad Gateway");
        assert_eq!(
            summary_of_answer("Server returned non-2xx status code: 404 Not Found: "),
            "404 Not Found"
        );
    }

    #[test]
    fn a_refusal_is_one_whatever_was_asked() {
        let generic = |answer: &str| StoreError::Generic {
            store: "S3",
            source: format!("Error performing list request: {answer}").into(),
        };
        let refused = generic("Server returned non-2xx status code: 403 Forbidden: <Code>x</Code>");
        assert!(is_refusal(&refused));
        assert!(
            message_of(&refused).contains("refuses the credentials"),
            "{}",
            message_of(&refused)
        );
        let down = generic("Server returned non-2xx status code: 503 Service Unavailable: 403 ");
        assert!(!is_refusal(&down));
        assert!(!message_of(&down).contains("credentials"), "{}", message_of(&down));
    }

    #[test]
    fn a_key_that_no_path_leads_to_is_named_with_what_to_do() {
        let error = object_store::path::Path::parse("run//x").unwrap_err();
        let words = message_of(&StoreError::from(error));
        assert!(words.contains("\"run//x\"") && words.contains("rename that object"), "{words}");
    }

    #[test]
    fn addresses_lose_their_queries_and_their_users() {
        let text = "GET https://me:secret@host:1/a/b?X-Amz-Signature=secret#x failed\nwith\u{7} 3";
        assert_eq!(clean(text), "GET https://host:1/a/b failed with 3");
        assert!(!clean("https://host?sig=secret").contains("secret"));
        // A store's text does not control a terminal, wherever it stands in a message.
        assert_eq!(clean("\u{1b}]0;x\u{7}s3://bucket/\u{1b}[2Jkey"), "]0;xs3://bucket/[2Jkey");
        assert!(clean(&"x ".repeat(10_000)).chars().count() <= LONGEST + 1);
    }
}
