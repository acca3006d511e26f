//! The rules that reasons and warnings follow from, and what each means.

use std::fmt;
use std::str::FromStr;

use super::Outcome;

/// Why an artifact is refused or warned about; its id is what programs compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Rule {
    /// The producer is below the consumer's min_producer.
    ProducerTooOld,
    /// The data's min_consumer is above the consumer's version.
    MinConsumer,
    /// The consumer's version is among the data's bad_consumers.
    BadConsumer,
    /// A node uses an operation that graphs of its producer may not use.
    DeprecatedOp,
    /// A format version above what this build knows.
    TooNew,
    /// A format version below what this build still reads.
    TooOld,
    /// A type name that no serializer is registered for.
    MissingType,
    /// Bytes that no version explains: a checksum, truncation, a message that no parser takes.
    Corrupt,
    /// A file, tensor or meta graph that is not there.
    NotFound,
    /// Something that this build cannot read, although it may be right.
    Unsupported,
    /// A file of a kind that is recognised and not judged.
    OtherKind,
    /// A shared library that is no StreamExecutor plug-in.
    NotAPlugin,
    /// The producer is so much newer than the consumer that TensorFlow promises nothing. Only ever a warning.
    ForwardCompatibility,
    /// Another loader of the same artifact judges otherwise. Only ever a warning.
    LoaderDiffers,
    /// A graph without anything in it, which TensorFlow takes. Only ever a warning.
    Empty,
}

/// What `serdes explain` says of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// What the rule says.
    pub meaning: &'static str,
    /// A case in which it refuses.
    pub example: &'static str,
    /// What to do.
    pub remedy: &'static str,
}

/// A rule id that does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownRule {
    /// The text found, cut to 60 characters.
    pub found: String,
    /// The rule that was probably meant.
    pub meant: Option<Rule>,
}

impl fmt::Display for UnknownRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no rule \"{}\"; ", self.found)?;
        match self.meant {
            Some(rule) => write!(f, "did you mean {rule}? The rules are ")?,
            None => f.write_str("the rules are ")?,
        }
        f.write_str(&Rule::ALL.map(Rule::id).join(", "))
    }
}

impl std::error::Error for UnknownRule {}

impl Rule {
    /// Every rule.
    pub const ALL: [Self; 15] = [
        Self::ProducerTooOld,
        Self::MinConsumer,
        Self::BadConsumer,
        Self::DeprecatedOp,
        Self::TooNew,
        Self::TooOld,
        Self::MissingType,
        Self::Corrupt,
        Self::NotFound,
        Self::Unsupported,
        Self::OtherKind,
        Self::NotAPlugin,
        Self::ForwardCompatibility,
        Self::LoaderDiffers,
        Self::Empty,
    ];

    /// The id, for programs.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::ProducerTooOld => "producer_too_old",
            Self::MinConsumer => "min_consumer",
            Self::BadConsumer => "bad_consumer",
            Self::DeprecatedOp => "deprecated_op",
            Self::TooNew => "too_new",
            Self::TooOld => "too_old",
            Self::MissingType => "missing_type",
            Self::Corrupt => "corrupt",
            Self::NotFound => "not_found",
            Self::Unsupported => "unsupported",
            Self::OtherKind => "other_kind",
            Self::NotAPlugin => "not_a_plugin",
            Self::ForwardCompatibility => "forward_compatibility",
            Self::LoaderDiffers => "loader_differs",
            Self::Empty => "empty",
        }
    }

    /// The verdict on an artifact for which this is a reason: the answer is no, or nobody can tell.
    #[must_use]
    pub const fn outcome(self) -> Outcome {
        match self {
            Self::Corrupt | Self::NotFound | Self::Unsupported | Self::OtherKind => {
                Outcome::Unreadable
            }
            _ => Outcome::Unacceptable,
        }
    }

    /// What the rule means, an example and the remedy.
    #[must_use]
    pub const fn explain(self) -> Explanation {
        let (meaning, example, remedy) = match self {
            Self::ProducerTooOld => (
                "Every piece of data records the version of its producer, and every consumer knows the oldest producer whose data it \
                 still takes (min_producer). This data was made by an older one: what it relies on has been removed from the consumer.",
                "A graph with `versions { producer: 21 }` and a consumer with min_producer 22.",
                "Write the data anew with a newer producer, for example by loading and saving it with a release in between.",
            ),
            Self::MinConsumer => (
                "The producer of the data has recorded the oldest consumer that understands it (min_consumer), and this consumer is \
                 older.",
                "A graph with `versions { producer: 2475 min_consumer: 2475 }` and TensorFlow 2.21, whose GraphDef version is 2474.",
                "Upgrade the consumer to a release whose version is at least min_consumer, or have the data written for the older one.",
            ),
            Self::BadConsumer => (
                "The producer of the data has listed consumer versions that must not take it because they are known to fail on it \
                 (bad_consumers), and this consumer is one of them.",
                "A graph with `versions { producer: 2480 bad_consumers: 2474 }` and TensorFlow 2.21, whose GraphDef version is 2474.",
                "Upgrade the consumer; any version that is not on the list will do.",
            ),
            Self::DeprecatedOp => (
                "The operation of a node has been deprecated from a GraphDef version on: graphs of that producer or a newer one may not \
                 use it. Older graphs still may. Inside of a function it counts when the function runs, which is a warning here.",
                "A node with op `TopK` (deprecated at 7) in a graph with `versions { producer: 2474 }`.",
                "Replace the operation by the one that the message names and export the graph again.",
            ),
            Self::TooNew => (
                "The artifact records a format version that is newer than the newest one that this build knows. It is not damaged.",
                "A device state of version 3 and a build that knows versions 0 to 2.",
                "Upgrade the reader, or have the artifact written at an older version (`--serdes-version week-4-old`).",
            ),
            Self::TooOld => (
                "The artifact records a format version below the oldest one that this build still reads.",
                "A device state of version 0 and a build whose minimum is 1.",
                "Read it with an older build and write it anew.",
            ),
            Self::MissingType => (
                "The artifact holds a value of a type that nobody has registered a serializer for.",
                "A serialized message whose type name is `my::Sharding`, read by a program without that type.",
                "Register a serializer for the type name, or read the artifact with a program that has one.",
            ),
            Self::Corrupt => (
                "The bytes are not what any version of the format can mean: a checksum does not match, the file ends too early, or no \
                 parser takes it.",
                "A checkpoint whose index ends in the middle of a block.",
                "Fetch the artifact again from where it came from, and compare the sizes and checksums.",
            ),
            Self::NotFound => (
                "Something that is asked for is not there: the file itself, a shard of a checkpoint, or a meta graph with the tags.",
                "A SavedModel with the tags [train], and no `--tags`: the default is `serve`, or the only meta graph.",
                "Check the path and the tags; `serdes inspect` lists what is there.",
            ),
            Self::Unsupported => (
                "This build cannot read the artifact, although it may be right: a form or a feature that it does not know.",
                "A SavedModel that is split into chunks (`saved_model.cpb`).",
                "Convert it with the program that wrote it, or use a build that reads it.",
            ),
            Self::OtherKind => (
                "The file is of a kind that is recognised and not judged: nothing is said of whether its own reader takes it. It is no \
                 graph, checkpoint or state, and nothing says that it is damaged.",
                "An ONNX model, or the login page of a registry that was saved in place of a model.",
                "Look at the file with the program that it was made for; if its content misleads, name its kind.",
            ),
            Self::NotAPlugin => (
                "A shared library is a StreamExecutor plug-in if it exports the function SE_InitPlugin, and this one does not.",
                "The library of a custom operation, which exports TF_InitKernel.",
                "Name the plug-in itself, or export the function (it may be hidden by a linker script).",
            ),
            Self::ForwardCompatibility => (
                "The graph was made by a producer more than three weeks newer than the consumer. TensorFlow promises to load graphs of \
                 producers up to three weeks ahead; later ones may use operations and attributes that the consumer does not know.",
                "A graph with `versions { producer: 2500 }` and TensorFlow 2.21, whose GraphDef version is 2474.",
                "Try it with the consumer in question, or upgrade the consumer.",
            ),
            Self::LoaderDiffers => (
                "TensorFlow has several loaders, and they do not look at the same things. The verdict is that of the graph loader (C++ \
                 and compat.v1); another one, named in the message, judges otherwise.",
                "`tf.saved_model.load` never looks at the versions of a model in the TF2 format.",
                "Find out which loader the consumer uses.",
            ),
            Self::Empty => (
                "There is nothing of a graph in the file: no node, no function, no version. TensorFlow takes it all the same, as a graph \
                 without nodes, because it steps over every field that it does not know.",
                "A file of zero bytes that is called graph.pb, or another protobuf message.",
                "Check that the file was written to its end, and that it is the file that was meant.",
            ),
        };
        Explanation { meaning, example, remedy }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

impl FromStr for Rule {
    type Err = UnknownRule;

    /// Takes an id in letters of any size, with hyphens or spaces for underscores.
    fn from_str(text: &str) -> Result<Self, UnknownRule> {
        let found: String = text.chars().take(60).collect();
        let id = found.trim().to_ascii_lowercase().replace(['-', ' '], "_");
        if let Some(rule) = Self::ALL.into_iter().find(|rule| rule.id() == id) {
            return Ok(rule);
        }
        let nearest = Self::ALL.into_iter().min_by_key(|rule| distance(rule.id(), &id));
        let meant = nearest.filter(|rule| distance(rule.id(), &id) <= rule.id().len() / 3);
        let begun =
            || Self::ALL.into_iter().find(|rule| id.len() > 2 && rule.id().starts_with(&id));
        Err(UnknownRule { found, meant: begun().or(meant) })
    }
}

/// How many letters have to be put in, taken out or changed to make one word of the other.
fn distance(left: &str, right: &str) -> usize {
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (line, a) in left.bytes().enumerate() {
        let mut diagonal = line;
        let mut before = line + 1;
        let (first, rest) = match row.split_first_mut() {
            Some(parts) => parts,
            None => break,
        };
        *first = before;
        for (cell, b) in rest.iter_mut().zip(right.bytes()) {
            let cost = diagonal + usize::from(a != b);
            diagonal = *cell;
            before = cost.min(before + 1).min(diagonal + 1);
            *cell = before;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(feature = "serde")]
impl serde::Serialize for Rule {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.id())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_is_found_by_its_id_and_explained() {
        for rule in Rule::ALL {
            assert_eq!(rule.id().parse(), Ok(rule));
            let Explanation { meaning, example, remedy } = rule.explain();
            assert!(!meaning.is_empty() && !example.is_empty() && !remedy.is_empty());
        }
        let error = "nothing".parse::<Rule>().unwrap_err();
        assert!(error.to_string().contains("min_consumer"), "{error}");
    }

    #[test]
    fn a_rule_is_found_in_letters_of_any_size_and_one_that_is_nearly_right_is_suggested() {
        assert_eq!("MIN_CONSUMER".parse(), Ok(Rule::MinConsumer));
        assert_eq!("Min-Consumer".parse(), Ok(Rule::MinConsumer));
        let meant = |text: &str| text.parse::<Rule>().unwrap_err().meant;
        assert_eq!(meant("min_consumers"), Some(Rule::MinConsumer));
        assert_eq!(meant("depricated_op"), Some(Rule::DeprecatedOp));
        assert_eq!(meant("forward"), Some(Rule::ForwardCompatibility));
        assert_eq!(meant("nosuch"), None);
        assert!(
            "CORUPT".parse::<Rule>().unwrap_err().to_string().contains("did you mean corrupt?")
        );
        assert_eq!(distance("corrupt", "corrupt"), 0);
        assert_eq!(distance("abc", "xbcd"), 2);
    }

    #[test]
    fn what_nobody_can_read_is_unreadable_and_the_rest_unacceptable() {
        assert_eq!(Rule::Corrupt.outcome(), Outcome::Unreadable);
        assert_eq!(Rule::NotFound.outcome(), Outcome::Unreadable);
        assert_eq!(Rule::Unsupported.outcome(), Outcome::Unreadable);
        assert_eq!(Rule::TooNew.outcome(), Outcome::Unacceptable);
    }
}
