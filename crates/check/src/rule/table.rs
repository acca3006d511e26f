//! The table of rules. A new rule is a row here, its use in the file of the kind that it concerns,
//! and an artifact that breaks it (`tests/it/rules.rs` says what is missing).

use super::{super::Outcome, Explanation, rules};

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
            function_is_built_with_deprecated(operation, version):
                "the operation {operation} is deprecated from GraphDef version {version} on, and what this loader builds counts as made by the \
                 consumer";
            function_uses_deprecated(operation, version, nodes, replacement):
                "a function uses {operation}, which is deprecated from GraphDef version {version} on; it fails when the function runs, unless the \
                 graph's producer is older ({nodes}){replacement}";
        }
    }

    /// A node's operation is not in the release, or lacks what the loader needs of it.
    UnknownOp = "unknown_op", Unacceptable {
        meaning: "The operation of a node is neither in the consumer's release nor a function of the graph. The same rule refuses what a \
                  release has only in part: a function of the graph that has the name of an operation, an operation without a shape \
                  function (imports in C and C++ refuse it), one without a kernel for the CPU (the C++ loader wants one). Of what JAX writes, it \
                  is an operation of VHLO that the jaxlib does not have.",
        example: "A node with op `SegmentMaxV2`, which is there from 2.13 on, and TensorFlow 2.12.",
        remedy: "Load the model with a release that has the operation, or export it with an older operation in its place. An operation of \
                 a library that the consumer loads is to be named as such.",
        messages {
            operation_is_unknown(release, operation, history): "{release} has no operation {operation}{history}";
            function_has_name_of_operation(function, release, since):
                "the function {function} of the graph has the name of an operation of {release}{since}, which refuses such a library";
            operation_has_no_shape_function(operation, release):
                "{release} has no shape function for the operation {operation}, and imports in C and C++ refuse every node of it";
            operation_has_no_kernel(operation, release):
                "{release} has no kernel for the operation {operation} on a CPU, and the loader wants one for every node";
        }
    }

    /// A loader minds an attribute that the release does not know.
    UnknownAttribute = "unknown_attribute", Unacceptable {
        meaning: "A node has an attribute that the consumer's release does not know. Loaders forget such attributes (attribute_dropped says \
                  where it matters), but for one case: of a model without an object graph `tf.saved_model.load` makes functions, and refuses \
                  an attribute whose value is a placeholder.",
        example: "A node with op `NoOp` and an attribute `x` that is the placeholder `T`, in a model of `tf.compat.v1`, and the loader \
                  `tf.saved_model.load`.",
        remedy: "Export the model with `strip_default_attrs=True`, or load it with a release that knows the attribute.",
        messages {
            attribute_is_unknown(attribute, operation, release):
                "{release} does not know the attribute {attribute} of {operation}, and this loader takes no placeholder for it";
        }
    }

    /// An attribute without a default is not there.
    MissingAttribute = "missing_attribute", Unacceptable {
        meaning: "A node lacks an attribute that the consumer's release wants and has no default for.",
        example: "A node with op `CopyToMesh` and the attribute `layout`, as 2.13 has it, and TensorFlow 2.14, which wants `mesh`.",
        remedy: "Load the model with a release that does not want the attribute, or export it with the consumer's release.",
        messages {
            attributes_are_missing(attributes, operation, release):
                "the node has no {attributes}, which {operation} of {release} wants and has no default for";
        }
    }

    /// A value that the release does not take.
    AttributeValue = "attribute_value", Unacceptable {
        meaning: "The value of a node's attribute is none that the consumer's release takes: of another kind, a type that the release does \
                  not have, not among the allowed values, below the minimum, a list that is too short, or a number of inputs that cannot be. \
                  The same rule refuses a device that cannot be; whether one is there is a question to the machine, and it counts as there.",
        example: "A node with op `Placeholder` and `dtype` INT4, which is there from 2.15 on, and TensorFlow 2.12.",
        remedy: "Load the model with a release that takes the value, or export it with a value that the consumer's release takes.",
        messages {
            value_is_refused(release, attribute, operation, found, expected):
                "{release} does not take {found} for the attribute {attribute} of {operation}: expected {expected}";
            device_is_refused(found): "the loader takes no such device: {found}";
            python_refuses(found): "the loader refuses in Python: {found}";
            type_of_object_is_unknown(release, found):
                "{release} does not have a type that the object graph of the model names: {found}";
        }
    }

    /// Another number of inputs than the operation has.
    InputCount = "input_count", Unacceptable {
        meaning: "A node has more or fewer inputs of data than its operation takes in the consumer's release, or its attributes say.",
        example: "A node with op `AddN`, `N` = 3 and two inputs.",
        remedy: "Export the model with the consumer's release.",
        messages {
            inputs_differ_in_number(operation, release, found, expected):
                "{operation} of {release} takes {expected} of data here, and the node has {found}";
        }
    }

    /// An input that is not what the operation takes there.
    InputType = "input_type", Unacceptable {
        meaning: "What comes in by an input is not what the operation takes there, by the definitions of the consumer's release: it is of \
                  another type, of a shape that cannot be, or an output that its node does not have. So it is in a function that is called \
                  and cannot be built. Shapes are followed from constants, placeholders and variables, also into functions that are called; of what only they \
                  make impossible a part is left to TensorFlow, 1 in 200 artifacts of the corpus and 1 in 60 random graphs.",
        example: "`TopKV2` with `index_type` INT64 before a node that takes int64: to TensorFlow 2.12, which does not know the attribute, the \
                  indices are int32.",
        remedy: "Load the model with a release of the one that wrote it, or export it with the consumer's release.",
        messages {
            input_is_of_another_type(input, operation, release, found, expected):
                "input {input} of the node is {found}, and {operation} of {release} takes {expected} there";
            output_is_not_there(input, found, release, expected):
                "input {input} of the node is {found}, which {release} does not have there (it has {expected})";
            function_cannot_be_built(function, release, found): "{release} cannot build the function {function}: {found}";
            shapes_do_not_fit(operation, release, found): "the shapes do not fit {operation} of {release}: {found}";
            object_cannot_be_saved(release):
                "{release} calls the function that saves this object with a text, and the function takes a tensor; TensorFlow 2.13 is the first that makes a tensor of the text";
        }
    }

    /// The release forgets an attribute that matters. Only ever a warning.
    AttributeDropped = "attribute_dropped", Unacceptable {
        meaning: "A node has an attribute that the consumer's release does not know, and its value is not the default of the releases that \
                  do. The release takes the graph, forgets the attribute, and computes something else.",
        example: "A node with op `MatMul` and `grad_a` = true, which is there from 2.16 on, and TensorFlow 2.12.",
        remedy: "Load the model with a release that knows the attribute, or find out whether the default does as well.",
        messages {
            attribute_is_forgotten(release, attribute, operation, since, value, nodes):
                "{release} does not know the attribute {attribute} of {operation} ({since}) and forgets it; its value here is {value}, which is \
                 not the default, so that the graph computes something else ({nodes})";
        }
    }

    /// A format version above what this build knows.
    TooNew = "too_new", Unacceptable {
        meaning: "The artifact records a format version that is newer than the newest one that the consumer knows, or uses what came \
                  with such a version. It is not damaged.",
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
        meaning: "The artifact records a format version below the oldest one that the consumer still reads, or is of a form that it reads \
                  no more.",
        example: "A file that jax 0.8.0 exported, and jaxlib 0.11.1, which refuses what is older than six months.",
        remedy: "Read it with an older build and write it anew.",
        messages {}
    }

    /// A type name that no serializer is registered for.
    MissingType = "missing_type", Unacceptable {
        meaning: "The artifact holds a value of a type without a registered serializer: a value of IFRT, or a node of the trees or \
                  an effect of an exported function.",
        example: "A serialized message whose type name is `my::Sharding`, read by a program without that type.",
        remedy: "Register a serializer for the type name, or read the artifact with a program that has one.",
        messages {}
    }

    /// Bytes that no version explains: a checksum, truncation, a message that no parser takes.
    Corrupt = "corrupt", Unreadable {
        meaning: "The bytes are not what any version of the format can mean: a checksum does not match, the file ends too early, or no \
                  parser takes it. So are the objects of a model in the TF2 format that `tf.saved_model.load` cannot make of any release, \
                  and those that its checkpoint describes; what functions do that run meanwhile is left to TensorFlow.",
        example: "A checkpoint whose index ends in the middle of a block.",
        remedy: "Fetch the artifact again from where it came from, and compare the sizes and checksums.",
        messages {
            became_shorter(): "the file became shorter while it was read";
            nodes_do_not_fit(diagnostic): "the nodes of the graph do not fit together: {diagnostic}";
            objects_do_not_fit(found): "the object graph of the model does not fit together: there is {found}";
            names_do_not_fit(found): "the model names a node or tensor that is not as it says: {found}";
            asset_is_empty(): "an asset is empty, and a table is made of its lines while the model is loaded";
            asset_is_fed_twice(): "two assets of the model are fed to one tensor, which a session of the C++ loader refuses";
            table_has_key_twice(line, key):
                "a table is made of this asset while the model is loaded, and line {line} has the key {key}, which came before with another value";
            table_has_empty_line(line): "a table is made of this asset while the model is loaded, and line {line} is empty";
            table_has_few_columns(line, found, expected):
                "a table is made of this asset while the model is loaded, and line {line} has {found} columns, where the model takes {expected}";
            table_has_few_lines(found, expected):
                "a table is made of this asset while the model is loaded, and it has {found} lines, where the model takes {expected}";
            table_path_is_unset():
                "the path of a table's file is read from this variable before it has a value: the order of the two operations is left open, and a session comes to the reading first";
            table_path_may_be_unset():
                "the path of a table's file is read from this variable, and nothing has it set before: it may have no value yet, or the path on the machine that the model was exported on";
            more_tensors_lost(count): "{count} more tensors cannot be restored";
            more_defects(count): "{count} more defects";
            no_meta_graph_in_zero_bytes(): "the file has zero bytes, and there is no meta graph in it";
            tensors_beside_index(tensors, names):
                "the files have {tensors} that the index does not name ({names}); loaders take them as well";
            header_is_odd(reason): "{reason}";
            entry_is_odd(name, reason): "{name} {reason}";
            more_entries_odd(count): "{count} more entries that the file's own reader takes no notice of";
            total_size_differs(stated, found):
                "the index says that its tensors have {stated} bytes, and they have {found}; loaders do not compare";
        }
    }

    /// A file, tensor or meta graph that is not there.
    NotFound = "not_found", Unreadable {
        meaning: "Something that is asked for is not there: the file itself, a shard of a checkpoint, the variables or an asset of a \
                  model, or a meta graph with the tags.",
        example: "A SavedModel with the tags [train], where no tags are asked for: the default is `serve`, or the only meta graph.",
        remedy: "Check the path and the tags against what is there.",
        messages {
            no_message_of_model(binary, text): "the directory has neither {binary} nor {text}";
            no_such_tags(tags, there): "no meta graph has the tags {tags}; there is {there}";
            variables_are_missing(): "the model restores variables, and there is no checkpoint to restore them from";
            index_of_variables_missing(): "the variables of the model are not there; the C++ loader leaves them uninitialised";
            asset_is_missing(): "an asset is not there, and it is read while the model is loaded";
            asset_is_not_there(): "an asset is not there; nothing reads it while the model is loaded";
            table_file_is_no_asset(): "a table is filled from this file, which is no asset of the model; a loader that fills the table needs it there, on its own machine";
            no_artifact_in_directory(): "there is no artifact in this directory";
            newest_is_missing(prefix):
                "the newest checkpoint is {prefix}, and neither its index nor a V1 checkpoint is there; tf.train.latest_checkpoint gives None";
            newest_is_a_pattern(prefix):
                "tf.train.latest_checkpoint takes {prefix} for a pattern, which matches nothing, and gives None";
            older_is_missing(prefix): "the older checkpoint {prefix} is listed, and is not there";
            more_older_missing(count): "{count} more older checkpoints are listed, and are not there";
        }
    }

    /// A checkpoint in a folder that the file `checkpoint` there does not list. Only ever a warning.
    UnlistedCheckpoint = "unlisted_checkpoint", Unacceptable {
        meaning: "A folder has TensorFlow's file `checkpoint`, which lists checkpoints by their prefixes and says which is the newest, and a \
                  checkpoint that is not among them. Programs that ask `tf.train.latest_checkpoint` or a CheckpointManager never load it.",
        example: "A folder with `ckpt-1` and `ckpt-2`, and a file `checkpoint` that was copied with the first.",
        remedy: "Name the checkpoint by its prefix where it is loaded, or have `tf.train.update_checkpoint_state` write the file anew.",
        messages {
            checkpoint_is_unlisted(found, file, newest): "{found} is not what `{file}` points to, which is {newest}, nor listed there";
            more_checkpoints_unlisted(count, file): "{count} more checkpoints are not what `{file}` points to";
        }
    }

    /// The checkpoint beside a model is that of another one.
    VariableMismatch = "variable_mismatch", Unacceptable {
        meaning: "The checkpoint beside a SavedModel is whole, and it is not that of the model: it lacks a variable that a loader \
                  restores, or has it with another type or shape. `tf.saved_model.load` compares shapes, the other loaders only those of \
                  variables that are no resources.",
        example: "A SavedModel whose folder `variables` was taken from another model.",
        remedy: "Put the checkpoint beside the model that it was saved with, or export the model again.",
        messages {
            more_variables_differ(count): "{count} more variables are not in the checkpoint as the model restores them";
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
            node_is_too_large(found): "a node of the graph has {found}, and so much is not looked at";
            value_is_too_long(size, most): "the value has {size} bytes, and at most {most} are read";
            library_is_no_file(): "a shared library can only be looked at in a file";
            other_architecture(found, this_machine):
                "the library is for {found}, and this machine is {this_machine}";
            no_shared_library(): "the file is an ELF file but no shared library";
            symbol_is_not_served(symbol): "the library needs {symbol}, which this host does not serve";
            index_is_no_file(): "an index names files beside it, and can only be looked at by its path";
            list_is_no_file():
                "a list of checkpoints names what lies beside it, and can only be judged by its path";
            tensor_is_refused(name, reason):
                "{name} is whole as far as its header tells, and {reason}";
            more_tensors_refused(count): "{count} more tensors that cannot be moved";
            too_many_directories(depth): "more than {depth} directories inside one another";
        }
    }

    /// Python objects in a file of arrays, which its own reader refuses.
    PickledObjects = "pickled_objects", Unacceptable {
        meaning: "The file holds Python objects as a pickle, and its reader loads none unless it is told to: `numpy.load` raises ValueError, of an \
                  archive for each array that is one.",
        example: "An array of the type `O`, as `numpy.save` makes it of a dict, or of lists of different lengths.",
        remedy: "Save arrays of numbers or strings in its place. `numpy.load` with `allow_pickle=True` loads it, and runs whatever is in it.",
        messages {
            array_is_pickled(name): "{name} holds Python objects, which numpy.load refuses unless it is told otherwise";
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
            checkpoint_is_unfinished(kind, why): "this is {kind} that was not finished: {why}";
            named_as_another_kind(named, kind): "the file is named as {named}, and holds {kind}";
            file_is_empty(named): "the file is empty; by its name it would be {named}";
            pointer_of_git_lfs():
                "the file is a pointer of git-lfs, and what it points to was not fetched";
            text_like_a_graph(): "the file is a text that begins like a graph in text form";
        }
    }

    /// Something that this release refuses, though it is not damaged.
    ReleaseRefuses = "release_refuses", Unacceptable {
        meaning: "The artifact holds something that the consumer's release refuses, neither for a version nor for an operation: other releases \
                  read it, or write it for a way of loading that this is not.",
        example: "A module with `arith.addf` as jaxlib 0.9.2 writes it, and jaxlib 0.10.1, which wants one more property of it.",
        remedy: "Load it with a release that reads it, or export it again with the consumer's release.",
        messages {}
    }

    /// An exported function that loads, and whose every call is refused. Only ever a warning.
    NotCallable = "not_callable", Unacceptable {
        meaning: "The release reads the exported function, and refuses every call of it: it was exported for another platform, or the release \
                  takes it for one of 0 devices. So does TensorFlow with a module of jax2tf (`XlaCallModule`) whose version it does not run, or \
                  that calls what only jaxlib has: it loads the model, and fails once the function runs.",
        example: "A file of `jax.export` that jax 0.9.1 wrote, and jaxlib 0.8.0, which does not know the field with the number of devices.",
        remedy: "Load it with a newer release, or export it with `platforms=` of the consumer's.",
        messages {
            module_is_not_run(why, remedy): "the model loads, and this function fails once it runs: {why}; {remedy}";
        }
    }

    /// An exported function that loads, and a call of which ends the process. Only ever a warning.
    CallCrashes = "call_crashes", Unacceptable {
        meaning: "The release reads the exported function, and a call of it ends the process: releases before 0.10.0 do not initialize the \
                  functions of LAPACK for a function that was loaded.",
        example: "A file of `jax.export` with a Cholesky factorization on a CPU, and jaxlib 0.9.2.",
        remedy: "Load it with jaxlib 0.10.0 or later, or use jax's linear algebra in the process before the call.",
        messages {}
    }

    /// An exported function that loads, and whose derivative does not. Only ever a warning.
    DerivativeRefused = "derivative_refused", Unacceptable {
        meaning: "The release reads the exported function, and refuses the derivative in the file once it is asked for.",
        example: "A file of `jax.export` with `vjp_order=1` whose derivative uses an operation that the release does not have.",
        remedy: "Export the function again, with the consumer's release if the gradient is wanted.",
        messages {}
    }

    /// A custom call of which jax promises nothing. Only ever a warning.
    CustomCall = "custom_call", Unacceptable {
        meaning: "The exported function calls a target that is none of those that jax keeps for six months: the process that calls the function \
                  must have registered it, and its meaning is not versioned.",
        example: "A function that calls `my_kernel` through `jax.ffi`.",
        remedy: "Register the target before the function is called, and keep what it does.",
        messages {}
    }

    /// A newer release refuses the artifact for its age. Only ever a warning.
    Expires = "expires", Unacceptable {
        meaning: "The release reads the exported function, and a newer one refuses it for its age: jax promises to read what is at most six \
                  months old, and enforces it since 0.11.1.",
        example: "A file that jax 0.8.0 exported, and jaxlib 0.10.2: 0.11.1 and later refuse it.",
        remedy: "Export the function again before the upgrade.",
        messages {}
    }

    /// A shared library that is no StreamExecutor plug-in.
    NotAPlugin = "not_a_plugin", Unacceptable {
        meaning: "A shared library is a plug-in if it exports the function SE_InitPlugin (StreamExecutor) or GetPjrtApi (PJRT), and this one exports neither.",
        example: "The library of a custom operation, which exports TF_InitKernel.",
        remedy: "Name the plug-in itself, or export the function (it may be hidden by a linker script).",
        messages {
            no_plugin_function(): "the library exports neither SE_InitPlugin nor GetPjrtApi";
        }
    }

    /// The producer is so much newer than the consumer that TensorFlow promises nothing. Only ever
    /// a warning.
    ForwardCompatibility = "forward_compatibility", Unacceptable {
        meaning: "The graph was made by a producer more than three weeks newer than the consumer. TensorFlow promises to load graphs of \
                  producers up to three weeks ahead; later ones may use operations and attributes that the consumer does not know. It is said \
                  where these are not known: of a consumer that is no release from 2.12 on, or a producer that is newer than every known one.",
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
        meaning: "TensorFlow has several loaders, and they do not look at the same things. The verdict is that of \
                  `tf.compat.v1.saved_model.load`, unless another one is asked for; one that the message names judges otherwise.",
        example: "`tf.saved_model.load` never looks at the versions of a model in the TF2 format, and the C++ loader wants a kernel for every \
                  node.",
        remedy: "Find out which loader the consumer uses.",
        messages {
            loader_refuses(loader, place, reason): "{loader} refuses this model{place}: {reason}";
            loader_takes(loader, why): "{loader} takes this model{why}";
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
