"""Loads graphs and SavedModels with the installed TensorFlow in each way, and prints the results; a child process of the interop suites.

    PYTHON tests/interop/operation_loaders.py CASES
    PYTHON tests/interop/operation_loaders.py --empty-model DIRECTORY      saves an empty model of TF2

CASES is a file of JSON lines, {"path": …, "ways": ["capi_import", …]}. Prints a line per case: its number and, by way, null if TensorFlow
accepts it, [code or exception, message], or "crash" if the process ends. Cases run in a fork of this process, which has already loaded
TensorFlow, so that a crash costs little.
"""

import ctypes
import json
import os
import pathlib
import resource
import signal
import sys

# Limit on the address space of a child, in bytes.
MOST_MEMORY = 8 << 30


class Api:
    """TensorFlow's C API."""

    def __init__(self, tf):
        pointer = ctypes.c_void_p
        self.api = ctypes.CDLL(str(pathlib.Path(tf.__file__).parent / "libtensorflow_cc.so.2"))
        strings = ctypes.POINTER(ctypes.c_char_p)
        for name, result, arguments in [
            ("TF_NewGraph", pointer, []), ("TF_NewStatus", pointer, []), ("TF_NewImportGraphDefOptions", pointer, []),
            ("TF_NewBufferFromString", pointer, [ctypes.c_char_p, ctypes.c_size_t]), ("TF_NewSessionOptions", pointer, []),
            ("TF_GraphImportGraphDef", None, [pointer] * 4), ("TF_GetCode", ctypes.c_int, [pointer]), ("TF_Message", ctypes.c_char_p, [pointer]),
            ("TF_DeleteGraph", None, [pointer]), ("TF_DeleteStatus", None, [pointer]), ("TF_DeleteBuffer", None, [pointer]),
            ("TF_DeleteImportGraphDefOptions", None, [pointer]), ("TF_DeleteSessionOptions", None, [pointer]),
            ("TF_LoadSessionFromSavedModel", pointer, [pointer, pointer, ctypes.c_char_p, strings, ctypes.c_int, pointer, pointer, pointer]),
            ("TF_DeleteSession", None, [pointer, pointer]),
        ]:
            function = getattr(self.api, name)
            function.restype, function.argtypes = result, arguments

    def answer(self, status):
        code, message = self.api.TF_GetCode(status), self.api.TF_Message(status).decode(errors="replace")
        self.api.TF_DeleteStatus(status)
        return None if code == 0 else [code, message]

    def capi_import(self, path):
        api, data = self.api, path.read_bytes()
        graph, status, options = api.TF_NewGraph(), api.TF_NewStatus(), api.TF_NewImportGraphDefOptions()
        buffer = api.TF_NewBufferFromString(data, len(data))
        api.TF_GraphImportGraphDef(graph, buffer, options, status)
        for delete, what in [("Graph", graph), ("ImportGraphDefOptions", options), ("Buffer", buffer)]:
            getattr(api, "TF_Delete" + delete)(what)
        return self.answer(status)

    def capi_load(self, path):
        api = self.api
        graph, status, options = api.TF_NewGraph(), api.TF_NewStatus(), api.TF_NewSessionOptions()
        tags = (ctypes.c_char_p * 1)(b"serve")
        session = api.TF_LoadSessionFromSavedModel(options, None, str(path).encode(), tags, 1, graph, None, status)
        if session:
            ignored = api.TF_NewStatus()
            api.TF_DeleteSession(session, ignored)
            api.TF_DeleteStatus(ignored)
        api.TF_DeleteGraph(graph)
        api.TF_DeleteSessionOptions(options)
        return self.answer(status)


def ways(tf):
    from tensorflow.core.framework import graph_pb2

    api = Api(tf)

    def python_import(path):
        with tf.Graph().as_default():
            tf.import_graph_def(graph_pb2.GraphDef.FromString(path.read_bytes()), name="")

    def load_v1(path):
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            tf.compat.v1.saved_model.loader.load(session, ["serve"], str(path))

    def load_v2(path):
        tf.saved_model.load(str(path), tags=["serve"])

    return {"capi_import": api.capi_import, "import": python_import, "load_v1": load_v1, "load_v2": load_v2, "capi_load": api.capi_load}


def main():
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf

    tf.get_logger().setLevel("ERROR")
    if sys.argv[1] == "--empty-model":
        from tensorflow.core.protobuf import saved_model_pb2

        folder = pathlib.Path(sys.argv[2])
        tf.saved_model.save(tf.Module(), str(folder))
        model = saved_model_pb2.SavedModel.FromString((folder / "saved_model.pb").read_bytes())
        (folder / "object_graph").write_bytes(model.meta_graphs[0].object_graph_def.SerializeToString())
        print(json.dumps({"release": tf.__version__}))
        return
    known = ways(tf)
    cases = [json.loads(line) for line in pathlib.Path(sys.argv[1]).read_text().splitlines()]
    number = 0
    while number < len(cases):
        for line in lines_of_child(known, cases, number):
            print(line, end="", flush=True)
            number += 1
        if number < len(cases):
            print(json.dumps([number, answers_one_by_one(known, cases[number])]), flush=True)
            number += 1


def lines_of_child(known, cases, begin):
    """Returns the lines for the cases from `begin` up to one that ends the process. TensorFlow is loaded once for all of these."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
        try:
            with os.fdopen(writing, "w") as out:
                for number in range(begin, len(cases)):
                    print(json.dumps([number, answers(known, cases[number])]), file=out, flush=True)
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as lines:
        yield from (line for line in lines if line.endswith("\n"))
    os.waitpid(child, 0)


def answers_one_by_one(known, case):
    """Returns TensorFlow's results for a case that ends the process in at least one way."""
    found = {}
    for way in case["ways"]:
        lines = list(lines_of_child(known, [dict(case, ways=[way])], 0))
        found |= json.loads(lines[0])[1] if lines else {way: "crash"}
    return found


def answers(known, case):
    """Returns TensorFlow's results for a case, by way."""
    found = {}
    for way in case["ways"]:
        # Some graphs make TensorFlow loop without end, or allocate all memory.
        signal.alarm(20)
        try:
            found[way] = known[way](pathlib.Path(case["path"]))
        except Exception as error:  # noqa: BLE001 - every class is a verdict
            found[way] = [type(error).__name__, str(error)]
    signal.alarm(0)
    return found


if __name__ == "__main__":
    main()
