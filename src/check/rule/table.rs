//! The table of rules. A new rule is a row here, its use in the file of the kind that it concerns,
//! and an artifact that breaks it (`tests/rules.rs` says what is missing).

use super::{Explanation, Message, rules};
use crate::check::Outcome;

rules! {
    /// The producer is below the consumer's min_producer.
    ProducerTooOld = "producer_too_old", Unacceptable {
        meaning: "Every piece of data records the version of its producer, and every consumer knows the oldest producer whose data it \
                  still takes (min_producer). This data was made by an older one: what it relies on has been removed from the consumer.",
        example: "A graph with `versions { producer: 21 }` and a consumer with min_producer 22.",
        remedy: "Write the data anew with a newer producer, for example by loading and saving it with a release in between.",
        messages {}
    }

    /// The data's min_consumer is above the consumer's version.
    MinConsumer = "min_consumer", Unacceptable {
        meaning: "The producer of the data has recorded the oldest consumer that understands it (min_consumer), and this consumer is \
                  older.",
        example: "A graph with `versions { producer: 2475 min_consumer: 2475 }` and TensorFlow 2.21, whose GraphDef version is 2474.",
        remedy: "Upgrade the consumer to a release whose version is at least min_consumer, or have the data written for the older one.",
        messages {}
    }

    /// The consumer's version is among the data's bad_consumers.
    BadConsumer = "bad_consumer", Unacceptable {
        meaning: "The producer of the data has listed consumer versions that must not take it because they are known to fail on it \
                  (bad_consumers), and this consumer is one of them.",
        example: "A graph with `versions { producer: 2480 bad_consumers: 2474 }` and TensorFlow 2.21, whose GraphDef version is 2474.",
        remedy: "Upgrade the consumer; any version that is not on the list will do.",
        messages {}
    }

    /// A node uses an operation that graphs of its producer may not use.
    DeprecatedOp = "deprecated_op", Unacceptable {
        meaning: "The operation of a node has been deprecated from a GraphDef version on: graphs of that producer or a newer one may not \
                  use it. Older graphs still may. Inside of a function it counts when the function runs, which is a warning here.",
        example: "A node with op `TopK` (deprecated at 7) in a graph with `versions { producer: 2474 }`.",
        remedy: "Replace the operation by the one that the message names and export the graph again.",
        messages {
            operation_is_deprecated(operation, version, producer, nodes):
                "the operation {operation} is deprecated from GraphDef version {version} on, and the graph's producer is {producer} ({nodes})";
            operation_is_still_allowed(operation, version, producer, nodes):
                "{operation} is deprecated from GraphDef version {version} on; this graph of producer {producer} may still use it ({nodes})";
            function_uses_deprecated(operation, version, nodes, replacement):
                "a function uses {operation}, which is deprecated from GraphDef version {version} on; it fails when the function runs, unless the \
                 graph's producer is older ({nodes}){replacement}";
        }
    }

    /// A format version above what this build knows.
    TooNew = "too_new", Unacceptable {
        meaning: "The artifact records a format version that is newer than the newest one that this build knows. It is not damaged.",
        example: "A device state of version 3 and a build that knows versions 0 to 2.",
        remedy: "Upgrade the reader, or have the artifact written at an older version.",
        messages {
            specs_are_too_new(specs, found, limit):
                "{specs} written at IFRT version {found}, and the consumer reads up to {limit}";
            value_is_too_new(type_name, found, limit):
                "{type_name} records version {found}, and the consumer reads up to {limit}";
        }
    }

    /// A format version below what this build still reads.
    TooOld = "too_old", Unacceptable {
        meaning: "The artifact records a format version below the oldest one that this build still reads.",
        example: "A device state of version 0 and a build whose minimum is 1.",
        remedy: "Read it with an older build and write it anew.",
        messages {}
    }

    /// A type name that no serializer is registered for.
    MissingType = "missing_type", Unacceptable {
        meaning: "The artifact holds a value of a type that nobody has registered a serializer for.",
        example: "A serialized message whose type name is `my::Sharding`, read by a program without that type.",
        remedy: "Register a serializer for the type name, or read the artifact with a program that has one.",
        messages {}
    }

    /// Bytes that no version explains: a checksum, truncation, a message that no parser takes.
    Corrupt = "corrupt", Unreadable {
        meaning: "The bytes are not what any version of the format can mean: a checksum does not match, the file ends too early, or no \
                  parser takes it.",
        example: "A checkpoint whose index ends in the middle of a block.",
        remedy: "Fetch the artifact again from where it came from, and compare the sizes and checksums.",
        messages {
            became_shorter(): "the file became shorter while it was read";
            nodes_do_not_fit(fault): "the nodes of the graph do not fit together: {fault}";
            more_tensors_lost(count): "{count} more tensors cannot be restored";
            more_defects(count): "{count} more defects";
            no_meta_graph_in_zero_bytes(): "the file has zero bytes, and there is no meta graph in it";
        }
    }

    /// A file, tensor or meta graph that is not there.
    NotFound = "not_found", Unreadable {
        meaning: "Something that is asked for is not there: the file itself, a shard of a checkpoint, or a meta graph with the tags.",
        example: "A SavedModel with the tags [train], where no tags are asked for: the default is `serve`, or the only meta graph.",
        remedy: "Check the path and the tags against what is there.",
        messages {
            no_message_of_model(binary, text): "the directory has neither {binary} nor {text}";
            no_such_tags(tags, there): "no meta graph has the tags {tags}; there is {there}";
            index_of_variables_missing():
                "the model has variables, and their index is missing; the C++ loader leaves them uninitialised, and the Python \
                 loaders refuse the model";
            no_artifact_in_directory(): "there is no artifact in this directory";
        }
    }

    /// Something that this build cannot read, although it may be right.
    Unsupported = "unsupported", Unreadable {
        meaning: "This build cannot read the artifact, although it may be right: a form or a feature that it does not know.",
        example: "A SavedModel that is split into chunks (`saved_model.cpb`).",
        remedy: "Convert it with the program that wrote it, or use a build that reads it.",
        messages {
            model_in_chunks():
                "the SavedModel is split into chunks (saved_model.cpb), which this build does not read";
            too_many_meta_graphs(): "there are more meta graphs or tags than any real model has";
            cannot_read_file(error): "cannot read the file: {error}";
            value_is_too_long(size, most): "the value has {size} bytes, and at most {most} are read";
            library_is_no_file(): "a shared library can only be looked at in a file";
            other_architecture(found, this_machine):
                "the library is for {found}, and this machine is {this_machine}";
            no_shared_library(): "the file is an ELF file but no shared library";
            symbol_is_not_served(symbol): "the library needs {symbol}, which this host does not serve";
            tensor_is_refused(name, reason):
                "{name} is whole as far as its header tells, and {reason}";
            more_tensors_refused(count): "{count} more tensors that cannot be moved";
            too_many_directories(depth): "more than {depth} directories inside one another";
        }
    }

    /// A file of a kind that is recognised and not judged.
    OtherKind = "other_kind", Unreadable {
        meaning: "The file is of a kind that is recognised and not judged: nothing is said of whether its own reader takes it. It is no \
                  graph, checkpoint or state, and nothing says that it is damaged.",
        example: "An ONNX model, or the login page of a registry that was saved in place of a model.",
        remedy: "Look at the file with the program that it was made for; if its content misleads, name its kind.",
        messages {
            kind_is_not_judged(kind): "this is {kind}, which is recognised and not judged";
            named_as_another_kind(named, kind): "the file is named as {named}, and holds {kind}";
            file_is_empty(named): "the file is empty; by its name it would be {named}";
            pointer_of_git_lfs():
                "the file is a pointer of git-lfs, and what it points to was not fetched";
            text_like_a_graph(): "the file is a text that begins like a graph in text form";
        }
    }

    /// A shared library that is no StreamExecutor plug-in.
    NotAPlugin = "not_a_plugin", Unacceptable {
        meaning: "A shared library is a StreamExecutor plug-in if it exports the function SE_InitPlugin, and this one does not.",
        example: "The library of a custom operation, which exports TF_InitKernel.",
        remedy: "Name the plug-in itself, or export the function (it may be hidden by a linker script).",
        messages {
            no_plugin_function(): "the library does not export SE_InitPlugin";
        }
    }

    /// The producer is so much newer than the consumer that TensorFlow promises nothing. Only ever
    /// a warning.
    ForwardCompatibility = "forward_compatibility", Unacceptable {
        meaning: "The graph was made by a producer more than three weeks newer than the consumer. TensorFlow promises to load graphs of \
                  producers up to three weeks ahead; later ones may use operations and attributes that the consumer does not know.",
        example: "A graph with `versions { producer: 2500 }` and TensorFlow 2.21, whose GraphDef version is 2474.",
        remedy: "Try it with the consumer in question, or upgrade the consumer.",
        messages {
            producer_is_ahead(producer, ahead, consumer, promised, attributes):
                "the producer {producer} is {ahead} versions (about as many days) ahead of the consumer {consumer}; TensorFlow promises to \
                 load graphs of producers up to {promised} ahead, and an operation or attribute that the consumer does not know \
                 would make the import fail{attributes}";
        }
    }

    /// Another loader of the same artifact judges otherwise. Only ever a warning.
    LoaderDiffers = "loader_differs", Unacceptable {
        meaning: "TensorFlow has several loaders, and they do not look at the same things. The verdict is that of the graph loader (C++ \
                  and compat.v1); another one, named in the message, judges otherwise.",
        example: "`tf.saved_model.load` never looks at the versions of a model in the TF2 format.",
        remedy: "Find out which loader the consumer uses.",
        messages {
            load_refuses(operations):
                "tf.saved_model.load refuses this model, whatever its producer, because its functions use {operations}";
            load_takes():
                "tf.saved_model.load looks neither at the versions nor at the nodes outside of functions of a model in the TF2 \
                 format, and would load this one";
        }
    }

    /// A graph without anything in it, which TensorFlow takes. Only ever a warning.
    Empty = "empty", Unacceptable {
        meaning: "There is nothing of a graph in the file: no node, no function, no version. TensorFlow takes it all the same, as a graph \
                  without nodes, because it steps over every field that it does not know.",
        example: "A file of zero bytes that is called graph.pb, or another protobuf message.",
        remedy: "Check that the file was written to its end, and that it is the file that was meant.",
        messages {
            zero_bytes(): "the file has zero bytes; TensorFlow takes that as a graph without nodes";
            nothing_of_a_graph(size):
                "none of the {size} bytes is a node, a function or a version of a graph; TensorFlow takes such a file as a graph without \
                 nodes, and it is probably another message";
            nodes_without_operations():
                "there are nodes without an operation that anybody could have named, and no version; the file is probably another message";
        }
    }
}
