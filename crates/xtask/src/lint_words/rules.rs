//! The rules of wording, applied to files.

use super::comments::{Comment, Kind, Source};

/// First words of doc comments whose sentence has no subject.
const OPENERS: [&str; 7] = ["What", "Whether", "How", "Where", "Which", "Of", "Those"];

/// First words of the documentation of public functions that name a result, where a verb says what
/// the call does with it.
const NOUNS: [&str; 6] = ["The", "A", "An", "Its", "True", "False"];

/// Words that are too vague for parts of the system or named numbers.
const VAGUE: [(&str, &str); 3] = [
    ("nobody", "name the caller, thread or client that does not"),
    ("whoever", "name the caller, thread or client"),
    ("so many", "say `number of ...`, or name the parameter"),
];

/// A violation of a rule at a line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// Line number from 1.
    pub(crate) line: usize,
    pub(crate) message: String,
}

/// Private words of this project, with the usual term for each.
///
/// A word with an upper-case letter or an underscore is an identifier, and is compared exactly with
/// identifiers of code. Any other is a word or phrase of comments and pages, in any case; a single
/// word is also searched in the parts of identifiers and file names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Terms(pub(crate) Vec<(String, String)>);

impl Terms {
    fn is_identifier(word: &str) -> bool {
        word.contains(|c: char| c.is_uppercase() || c == '_')
    }

    fn identifiers(&self) -> impl Iterator<Item = &(String, String)> {
        self.0.iter().filter(|(word, _)| Self::is_identifier(word))
    }

    fn phrases(&self) -> impl Iterator<Item = (&str, &str)> {
        let own = self.0.iter().filter(|(word, _)| !Self::is_identifier(word));
        VAGUE.into_iter().chain(own.map(|(word, term)| (&**word, &**term)))
    }

    /// Returns the first private word that is a part of `name`: an identifier, or the path of a
    /// file.
    fn in_name(&self, name: &str) -> Option<(&str, &str)> {
        let parts = parts_of_name(name);
        let mut words = self.0.iter().filter(|(word, _)| !Self::is_identifier(word));
        let found = words.find(|(word, _)| parts.contains(word));
        found.map(|(word, term)| (&**word, &**term))
    }

    /// Returns the finding of a file whose path has a private word.
    pub(crate) fn in_path(&self, path: &str) -> Option<Finding> {
        let (word, term) = self.in_name(path)?;
        Some(Finding {
            line: 1,
            message: format!("the name of the file has {}", private(word, term)),
        })
    }

    /// Returns the findings of a Rust file, in the order of its lines.
    pub(crate) fn in_rust(&self, text: &str) -> Vec<Finding> {
        let source = Source::read(text);
        let mut findings = Vec::new();
        let lines: Vec<&str> = text.lines().collect();
        for comment in &source.comments {
            findings.extend(opener(comment).or_else(|| noun(comment, &lines)));
            self.in_prose(&comment.lines, &mut findings);
        }
        for (line, name) in &source.identifiers {
            let own = self.identifiers().find(|(word, _)| word == name);
            let own = own.map(|(word, term)| (&**word, &**term)).or_else(|| self.in_name(name));
            if let Some((word, term)) = own {
                findings.push(Finding { line: *line, message: private(word, term) });
            }
        }
        findings.sort_by_key(|finding| finding.line);
        findings
    }

    /// Returns the findings of a Markdown page, in order of lines. Fenced code is skipped.
    pub(crate) fn in_markdown(&self, text: &str) -> Vec<Finding> {
        let mut is_code = false;
        let lines: Vec<_> = text
            .lines()
            .enumerate()
            .filter(|(_, line)| {
                let is_fence = line.trim_start().starts_with("```");
                is_code ^= is_fence;
                !is_code && !is_fence
            })
            .map(|(index, line)| (index + 1, line.to_owned()))
            .collect();
        let mut findings = Vec::new();
        self.in_prose(&lines, &mut findings);
        findings.sort_by_key(|finding| finding.line);
        findings
    }

    /// Adds the phrases in `lines`, including those across line ends. Code in backquotes counts as
    /// one opaque word.
    fn in_prose(&self, lines: &[(usize, String)], findings: &mut Vec<Finding>) {
        let words = words(lines);
        for (phrase, term) in self.phrases() {
            let parts: Vec<_> = phrase.split(' ').collect();
            for window in words.windows(parts.len()) {
                if window.iter().map(|(_, word)| word).eq(&parts) {
                    let line = window.first().map_or(1, |(line, _)| *line);
                    findings.push(Finding { line, message: private(phrase, term) });
                }
            }
        }
    }
}

fn private(word: &str, term: &str) -> String {
    format!("`{word}`: {term}")
}

/// Splits an identifier or a path into lower-case words: `read_switches`, `SizeRule` and
/// `src/size-rule.rs` have two, two and four.
fn parts_of_name(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    for letter in name.chars() {
        if letter.is_uppercase() || !letter.is_alphanumeric() {
            parts.push(String::new());
        }
        if let Some(part) = parts.last_mut().filter(|_| letter.is_alphanumeric()) {
            part.extend(letter.to_lowercase());
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// Returns a finding for documentation without a subject.
fn opener(comment: &Comment) -> Option<Finding> {
    if comment.kind == Kind::Plain {
        return None;
    }
    let (line, text) = comment.lines.iter().find(|(_, text)| !text.is_empty())?;
    let word = text.split(|c: char| !c.is_alphanumeric()).next()?;
    OPENERS.contains(&word).then(|| Finding {
        line: *line,
        message: format!("the first sentence begins with `{word}`: say what the item is or does"),
    })
}

/// Returns a finding for documentation of a public function that begins with a noun.
fn noun(comment: &Comment, lines: &[&str]) -> Option<Finding> {
    let (last, _) = comment.lines.last()?;
    let (line, text) = comment.lines.iter().find(|(_, text)| !text.is_empty())?;
    let word = text.split(|c: char| !c.is_alphanumeric()).next()?;
    let is_found = comment.kind == Kind::Outer
        && NOUNS.contains(&word)
        && is_public_function(lines.get(*last..)?);
    is_found.then(|| Finding {
        line: *line,
        message: format!(
            "the documentation of a function begins with `{word}`: begin with a verb, such as Returns"
        ),
    })
}

/// Returns true if the first item in `lines`, behind its attributes, is a public function.
fn is_public_function(lines: &[&str]) -> bool {
    let mut is_attribute = false;
    let item = lines.iter().map(|line| line.trim()).find(|line| {
        is_attribute |= line.starts_with("#[");
        let is_item = !is_attribute;
        is_attribute &= !line.ends_with(']');
        is_item
    });
    let Some(item) = item.and_then(|item| item.strip_prefix("pub ")) else { return false };
    let mut words = item.split(' ');
    let qualifiers = ["const", "unsafe", "async", "extern", "\"C\""];
    words.find(|word| !qualifiers.contains(word)) == Some("fn")
}

/// Returns the lower-case words of `lines`, each with its line. Text in backquotes, and parts of
/// paths and URLs, are replaced by a word that matches no phrase.
fn words(lines: &[(usize, String)]) -> Vec<(usize, String)> {
    let mut words = Vec::new();
    for (line, text) in lines {
        for (index, prose) in text.split('`').enumerate() {
            if index % 2 == 1 {
                words.push((*line, "`".to_owned()));
                continue;
            }
            for token in prose.split_whitespace() {
                if token.contains(['/', '_']) {
                    words.push((*line, "/".to_owned()));
                    continue;
                }
                let parts = token.split(|c: char| !c.is_alphanumeric() && c != '\'');
                let parts = parts.filter(|part| !part.is_empty());
                words.extend(parts.map(|part| (*line, part.to_lowercase())));
            }
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms() -> Terms {
        let rows = [("strangers", "untrusted clients"), ("who asks", "profile"), ("Told", "found")];
        Terms(rows.map(|(word, term)| (word.to_owned(), term.to_owned())).into())
    }

    fn lines(findings: &[Finding]) -> Vec<usize> {
        findings.iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_doc_comment_without_a_subject_is_a_finding() {
        for word in OPENERS {
            for mark in ["///", "//!"] {
                let findings = terms().in_rust(&format!("\n{mark} {word} it is.\n"));
                assert_eq!(lines(&findings), [2], "{mark} {word}");
                assert!(findings[0].message.contains(word), "{findings:?}");
            }
        }
        assert_eq!(lines(&terms().in_rust("///\n/// What's there.\n")), [2]);
        assert_eq!(lines(&terms().in_rust("/** How. */\n")), [1]);
    }

    #[test]
    fn documentation_of_a_public_function_begins_with_a_verb() {
        for item in [
            "pub fn f() {}",
            "#[must_use]\n#[expect(\n    dead_code,\n)]\npub const unsafe fn f() {}",
            "pub unsafe extern \"C\" fn f() {}",
        ] {
            for word in NOUNS {
                let text = format!("\n/// {word} number.\n///\n/// # Errors\n/// None.\n{item}\n");
                assert_eq!(lines(&terms().in_rust(&text)), [2], "{text}");
            }
        }
    }

    #[test]
    fn documentation_of_anything_else_may_begin_with_a_noun() {
        for text in [
            "/// The number.\npub struct Number;\n",
            "/// The number.\nfn number() {}\n",
            "/// The number.\npub(crate) fn number() {}\n",
            "/// Returns the number.\npub fn number() {}\n",
            "// The number.\npub fn number() {}\n",
            "/// The number.\n",
            "/// The number.\npub number: u8,\n\n/// Returns it.\npub fn number() {}\n",
        ] {
            assert_eq!(terms().in_rust(text), [], "{text}");
        }
    }

    #[test]
    fn an_opener_counts_only_as_first_word_of_documentation() {
        for text in [
            "// What follows is code.\n",
            "/// True if it is.\n/// What else.\n",
            "/// Whatever, Often, Howl.\n",
            "/// `Of` is a name.\n",
            "let text = \"/// What\";\n",
        ] {
            assert_eq!(terms().in_rust(text), [], "{text}");
        }
    }

    #[test]
    fn vague_and_private_words_are_found_in_all_comments() {
        let text = "/// Nobody.\n//! Whoever.\n// so\n// many\n/* Strangers */\n// who  asks\n";
        assert_eq!(lines(&terms().in_rust(text)), [1, 2, 3, 5, 6]);
    }

    #[test]
    fn words_of_code_and_paths_are_no_prose() {
        for text in [
            "// `strangers`\n",
            "// See .ci/strangers.\n",
            "let text = \"strangers\";\n",
            "// So, `x` many\n",
        ] {
            assert_eq!(terms().in_rust(text), [], "{text}");
        }
    }

    #[test]
    fn private_words_are_found_as_parts_of_identifiers() {
        for text in ["fn all_strangers() {}", "struct OldStrangers;", "let strangers = 1;"] {
            assert_eq!(lines(&terms().in_rust(text)), [1], "{text}");
        }
        for text in ["fn strangersx() {}", "let who_asks = 1;", "struct Estrangers;"] {
            assert_eq!(terms().in_rust(text), [], "{text}");
        }
    }

    #[test]
    fn private_words_are_found_as_parts_of_paths() {
        for path in
            ["tests/strangers.py", ".ci/strangers", "src/old-strangers/mod.rs", "Strangers.md"]
        {
            assert!(terms().in_path(path).is_some(), "{path}");
        }
        for path in ["tests/clients.py", "src/estrangers.rs"] {
            assert_eq!(terms().in_path(path), None, "{path}");
        }
    }

    #[test]
    fn a_private_identifier_is_found_in_code_alone() {
        assert_eq!(lines(&terms().in_rust("// Told\nstruct Told;\nlet told = ToldMore;\n")), [2]);
    }

    #[test]
    fn pages_are_read_without_their_code() {
        let text = "What is it?\nNobody.\n```text\nnobody\n```\nso\nmany\n";
        assert_eq!(lines(&terms().in_markdown(text)), [2, 6]);
    }
}
