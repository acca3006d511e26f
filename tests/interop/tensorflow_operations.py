"""Compares `serdes check` and the installed TensorFlow on random graphs over the operations of a release, valid and damaged.

The release is that of the interpreter that runs this (any from 2.12 to 2.21). Every graph goes through TensorFlow's C import, and some also
as SavedModels through its three loaders; so do the graphs of `function_graphs`, which are always the same. Errors of shape functions,
crashes and missing devices are counted and left out: a device with a valid name counts as present.

    PYTHON tests/interop/tensorflow_operations.py --serdes PATH [--count N] [--seed N] [--keep DIRECTORY]

With SERDES_FULL=1 it makes 5,000 graphs, else 400. `--keep` leaves the graphs in a directory, with `verdicts.jsonl` beside them in the
form of tests/data/tensorflow/op_corpus.zip, which `SERDES_CORPUS=DIRECTORY cargo test -p serdes-graphs --test it tensorflow_operations` compares in detail.
"""

import argparse
import collections
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

import function_graphs
import operation_faults
import operation_graphs

LOADERS = pathlib.Path(__file__).resolve().with_name("operation_loaders.py")

# The classes of TensorFlow's reasons, with patterns of their messages; the first that matches counts.
CLASSES = [
    ("parse", r"^Invalid GraphDef$|Error parsing message|as binary proto"),
    ("version", r"below min producer|min consumer version|disallows consumer"),
    ("op_deprecated", r"is not available in GraphDef version"),
    ("no_shape_function", r"No shape inference function exists"),
    # TensorFlow reports a missing kernel after all other checks of the node.
    ("kernel", r"No OpKernel|Multiple OpKernel registrations|could not be found in the registered kernels|^KernelDef '|"
               r"(?s:(; NodeDef: .*Op<|Op<.*; NodeDef: ).*\n\t \[\[)"),
    # The devices depend on the machine.
    ("placement", r"Cannot assign a device for operation"),
    ("function_name", r"because an op with the same name|function with the same name already exists|already registered as an op"),
    ("graph_structure", r"Unknown input node|nodes in a cycle|does not specify an operation|Node name contains invalid|Control dependencies must come|"
                        r"is not unique|expects to be colocated with unknown"),
    ("attr_missing", r"(type|number) attr not found"),
    ("output_index", r"^Output \d+ of node|: 'Output \d+ of node"),
    ("function_body", r"In function output|included invalid (in|out)put index|Failed to bind all placeholders|Duplicated (ret|arg) name|"
                      r"already has gradient function|Failed to find function|is self recursive|input \S* is not found|FunctionDefLibrary missing"),
    ("attr_minimum", r"must be at least minimum|less than minimum"),
    ("attr_allowed", r"is not in the list of allowed values"),
    ("shape_function", r"for '\{\{node|^Expected \d+ items but found|codec can't decode byte|with input shapes|_output_shapes attribute|Invalid data format string|unknown static value|Invalid value in tensor used for shape|invalid shape scalar with a static value|Unknown string for partition info|^type error|'type error"),
    ("op_unknown", r"Op type not registered"),
    ("attr_kind", r"AttrValue had value with|AttrValue missing value"),
    ("attr_dtype", r"invalid DataType|must not have reference type|reference to a reference type|to a TensorFlow DType"),
    ("attr_number", r"is too big"),
    ("attr_missing", r"NodeDef missing attr|attr not found|No attr named|is not found from"),
    ("input_count", r"inputs specified|to be a control input|does not exist. Node only has|Expected input\[|beyond input size"),
    ("edge_dtype", r"incompatible with expected|expected type"),
    ("output_index", r"Connecting to invalid output"),
    ("device", r"device spec"),
]
# The rules of the command for each class; `corrupt` if the fault of a graph is not in its operations. If several attributes have
# wrong values, a hash determines which one TensorFlow names: the rule is the same for all.
RULES = {
    "version": {"producer_too_old", "min_consumer", "bad_consumer"}, "op_deprecated": {"deprecated_op"}, "op_unknown": {"unknown_op"},
    "attr_kind": {"attribute_value"}, "attr_dtype": {"attribute_value"}, "attr_allowed": {"attribute_value"}, "attr_minimum": {"attribute_value"},
    "attr_number": {"attribute_value"}, "attr_missing": {"missing_attribute"}, "input_count": {"input_count"}, "edge_dtype": {"input_type"},
    "graph_structure": {"corrupt"}, "parse": {"corrupt"},
}
# Classes that TensorFlow reports and that its registry of operations does not determine.
OUTSIDE = {"shape_function", "kernel", "placement", "crash"}
# Limit on the share of different verdicts, by way.
MOST = {"capi_import": 0, "load_v1": 0, "load_v2": 0, "capi_load": 0}
LOADERS_OF_MODELS = {"load_v1": "load_v1", "load_v2": "load", "capi_load": "cpp"}


def classify(answer):
    if answer == "crash":
        return "crash"
    message = answer[1]
    return next((name for name, pattern in CLASSES if re.search(pattern, message)), "other")


def environment():
    return dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="", TF_ENABLE_ONEDNN_OPTS="0")


def real(cases, directory):
    """Returns TensorFlow's results for every case, by way of loading: null, [code, message], or "crash"."""
    list_file = directory / "cases.jsonl"
    list_file.write_text("".join(json.dumps(case) + "\n" for case in cases))
    command = [sys.executable, str(LOADERS), str(list_file)]
    done = subprocess.run(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    assert [number for number, _ in found] == list(range(len(cases)))
    return [answers for _, answers in found]


def calm_operations(registry, rng, directory):
    """Returns the operations whose shape functions accept random nodes, for graphs that should be valid."""
    cases = []
    for number, name in enumerate(registry.names):
        for draw in range(2):
            path = directory / f"single-{number}-{draw}.pb"
            path.write_bytes(operation_graphs.single(registry, rng, name).bytes())
            cases.append({"name": name, "path": str(path), "ways": ["capi_import"]})
    refused = {case["name"] for case, answers in zip(cases, real(cases, directory)) if answers["capi_import"]}
    return [name for name in registry.names if name not in refused]


def model(name, data, form, faults, empty, directory):
    """Writes a SavedModel with a graph, in the form of TF1 or TF2; returns its case."""
    path = directory / "models" / f"{name}-{form}"
    path.mkdir(parents=True)
    object_graph = (empty / "object_graph").read_bytes() if form == "tf2" else b""
    (path / "saved_model.pb").write_bytes(operation_graphs.saved_model(data, object_graph))
    if form == "tf2":
        shutil.copytree(empty / "variables", path / "variables")
    return {"id": f"m{path.name}", "path": str(path), "ways": ["load_v1", "load_v2", "capi_load"], "faults": faults}


def by_hand(empty, directory):
    """Returns the cases of the graphs that are always the same."""
    cases = []
    (directory / "graphs").mkdir(exist_ok=True)
    for name, graph in function_graphs.graphs():
        data, path = graph.bytes(), directory / "graphs" / f"{name}.pb"
        path.write_bytes(data)
        cases.append({"id": name, "path": str(path), "ways": ["capi_import"], "faults": []})
        cases += [model(name, data, form, [], empty, directory) for form in ("tf1", "tf2")]
    return cases


def make(registry, rng, operations, count, empty, directory):
    cases = []
    with_kernels = [name for name in operations if name not in registry.no_cpu_kernel]
    for number in range(count):
        # Without kernels, the C++ loader reports nothing else.
        graph = operation_graphs.valid_graph(registry, rng, with_kernels if number % 8 == 0 else operations)
        operation_faults.spoil(graph, rng, registry, rng.choice([0, 0, 1, 1, 1, 1, 2, 2, 2, 3]))
        data, name = graph.bytes(), f"{number:05}"
        path = directory / "graphs" / f"{name}.pb"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
        cases.append({"id": f"g{name}", "path": str(path), "ways": ["capi_import", *(["import"] if number % 5 == 0 else [])], "faults": graph.faults})
        forms = (["tf1"] if number % 4 == 0 else []) + (["tf2"] if number % 6 == 0 and graph.functions else [])
        cases += [model(name, data, form, graph.faults, empty, directory) for form in forms]
    return cases


def judged(directory, count, seed):
    """Returns the cases, TensorFlow's results for each, and its release."""
    directory.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, str(LOADERS), "--empty-model", str(directory / "empty")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), check=True)
    release = json.loads(done.stdout.splitlines()[-1])["release"]
    registry, rng = operation_graphs.Registry(".".join(release.split(".")[:2])), random.Random(seed)
    singles = directory / "singles"
    singles.mkdir()
    operations = calm_operations(registry, rng, singles)
    cases = make(registry, rng, operations, count, directory / "empty", directory)
    cases += by_hand(directory / "empty", directory)
    return cases, real(cases, directory), release


def record(cases, results, release, directory):
    """Writes the verdicts in the form of the corpus."""
    with (directory / "verdicts.jsonl").open("w") as out:
        for case, answers in zip(cases, results):
            for way, answer in answers.items():
                verdict = {"from": release, "to": release, "verdict": "accept" if answer is None else "crash" if answer == "crash" else "reject"}
                if verdict["verdict"] == "reject":
                    verdict |= {"reason": classify(answer), "code": answer[0], "message": answer[1]}
                path = str(pathlib.Path(case["path"]).relative_to(directory))
                line = {"id": case["id"], "path": path, "op": way, "verdicts": [verdict], "props": {"faults": case["faults"]}}
                out.write(json.dumps(line) + "\n")


def ours(binary, release, directory):
    """Returns the objects of one run of `serdes check` on the directory, by path."""
    done = subprocess.run([binary, "check", "--json", "--tensorflow", release, str(directory)], capture_output=True, text=True, timeout=900)
    objects = [json.loads(line) for line in done.stdout.splitlines()]
    found = {one["path"]: one for one in objects if "path" in one and "verdict" in one}
    return {str(pathlib.Path(path).parent if path.endswith("saved_model.pb") else path): one for path, one in found.items()}


def agrees(way, answer, verdict):
    """Returns "same", "outside", or a description of the difference."""
    accepted = verdict["verdict"] == "acceptable"
    if way in LOADERS_OF_MODELS:
        accepted = verdict["loaders"][LOADERS_OF_MODELS[way]] == "acceptable"
    if answer is None:
        return "same" if accepted else f"refused by {(verdict['reasons'] or [{}])[0].get('rule')}"
    name = classify(answer)
    if name in OUTSIDE:
        return "outside"
    if accepted:
        return f"taken, although {name}"
    rule = (verdict["reasons"] or [{}])[0].get("rule")
    if way in ("capi_import", "load_v1") and name in RULES and rule not in RULES[name]:
        return f"refused by {rule} instead of {' or '.join(sorted(RULES[name]))}"
    return "same"


def compare(cases, results, found):
    counts, differences = collections.Counter(), 0
    for case, answers in zip(cases, results):
        for way, answer in answers.items():
            # The command does not judge Python's import of a bare graph.
            if way == "import":
                continue
            outcome = agrees(way, answer, found[case["path"]])
            if outcome not in ("same", "outside"):
                differences += 1
                print(f"DIFFERS {way} {case['id']} {case['faults']}: {outcome}\n    TensorFlow: {str(answer)[:300]}\n    serdes: {str(found[case['path']].get('reasons'))[:300]}")
                outcome = "differs"
            counts[way, outcome] += 1
    too_many = 0
    for way in sorted({way for way, _ in counts}):
        same, outside, other = (counts[way, outcome] for outcome in ("same", "outside", "differs"))
        print(f"{way}: {same} agree, {outside} need more than the registry, {other} differ")
        too_many += other > MOST[way] * (same + outside + other)
    return differences, too_many


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--serdes")
    parser.add_argument("--host-plugin")
    parser.add_argument("--count", type=int, default=5000 if os.environ.get("SERDES_FULL") else 400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        directory = options.keep or pathlib.Path(scratch)
        cases, results, release = judged(directory, options.count, options.seed)
        record(cases, results, release, directory)
        if not options.serdes:
            print(f"TensorFlow {release}: the verdicts are in {directory}")
            return
        found = ours(options.serdes, release, directory / "graphs") | ours(options.serdes, release, directory / "models")
        differences, too_many = compare(cases, results, found)
        print(f"TensorFlow {release}: {differences} of {sum(map(len, results))} verdicts differ; {too_many} ways do so too often")
    sys.exit(1 if too_many else 0)


if __name__ == "__main__":
    main()
