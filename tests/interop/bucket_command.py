"""Tests the command with addresses of a bucket, over an emulator of S3 and a connection that can be cut. Called by object_store.py."""

import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUCKET = "commands"
SECRET = "verysecretkey"


class Wire:
    """A proxy of a server that counts the bytes of responses, and can delay or cut connections."""

    def __init__(self, port):
        self.target, self.received, self.cut_after, self.pause = port, 0, None, 0.0
        # Additional seconds per response, and the current and the highest number of requests that wait for one.
        self.delay, self.waiting, self.most_waiting = 0.0, set(), 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                return
            threading.Thread(target=self._pass, args=(client, server, True), daemon=True).start()
            threading.Thread(target=self._pass, args=(server, client, False), daemon=True).start()

    def _pass(self, source, to, is_request):
        count = 0
        try:
            while data := source.recv(1 << 16):
                count += len(data)
                if is_request and self.cut_after is not None and count > self.cut_after:
                    break
                if is_request and len(data) > 1 << 12:
                    time.sleep(self.pause)
                if is_request:
                    self.waiting.add(source)
                    self.most_waiting = max(self.most_waiting, len(self.waiting))
                elif to in self.waiting:
                    time.sleep(self.delay)
                    self.waiting.discard(to)
                if not is_request:
                    self.received += len(data)
                to.sendall(data)
        except OSError:
            pass
        for end in (source, to):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def safetensors(path, tensors):
    """Writes a file of tensors of bytes; returns its path."""
    header, data = {}, b""
    for name, content in tensors.items():
        header[name] = {"dtype": "U8", "shape": [len(content)], "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    head = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(len(head).to_bytes(8, "little") + head + data)
    return path


def check(serdes, s3, port, folder, environment, checks):
    """Tests the command with addresses, in a bucket of its own."""
    s3.create_bucket(Bucket=BUCKET)
    wire = Wire(port)
    environment = environment | {"AWS_ENDPOINT": wire.url, "AWS_SECRET_ACCESS_KEY": SECRET}

    def run(*args, **changes):
        result = subprocess.run([serdes, *args], env=environment | changes, capture_output=True, text=True, timeout=180)
        checks.check(f"no secret in the words of {args[0]}", SECRET not in result.stdout + result.stderr, result.stderr)
        return result

    def objects_of(result):
        return [json.loads(line) for line in result.stdout.splitlines()]

    def keys():
        return sorted(item["Key"] for item in s3.list_objects_v2(Bucket=BUCKET).get("Contents", []))

    def unfinished():
        return s3.list_multipart_uploads(Bucket=BUCKET).get("Uploads", [])

    def at(key):
        return f"s3://{BUCKET}/{key}"

    def local(name):
        return os.path.join(folder, name)

    # A state is saved at an address, judged there by reading a small part of it, and restored.
    large = safetensors(local("large.safetensors"), {"a": os.urandom(33 << 20), "b": b"123"})
    result = run("save", "--from", large, "-o", at("runs/large.sds"), "--json")
    checks.check("a state is saved at an address", result.returncode == 0, result.stderr)
    checks.check("it is one object, and no upload stays", keys() == ["runs/large.sds"] and unfinished() == [], keys())
    for command in ("check", "inspect"):
        wire.received = 0
        result = run(command, at("runs/large.sds"), "--json")
        checks.check(f"{command} of an address", result.returncode == 0 and objects_of(result)[0]["kind"] == "device_state", result.stderr)
        checks.check(f"{command} reads a little of it", wire.received < 512 << 10, f"{wire.received} bytes")
    result = run("check", at("runs/large.sds"), "--verify-data")
    checks.check("all of it is verified where that is asked for", result.returncode == 0, result.stdout)
    # 33 MiB are nine requests, which run at the same time.
    for command in (["check", "--verify-data"], ["restore", "--to", local("side-by-side.safetensors")], ["restore"]):
        wire.delay, wire.most_waiting = 0.3, 0
        result = run(command[0], at("runs/large.sds"), *command[1:])
        wire.delay = 0.0
        checks.check(f"{command[0]} has its requests under way together", result.returncode == 0 and wire.most_waiting >= 8,
                     (wire.most_waiting, result.stderr))
    for name in ("back.safetensors", "back.npz", "back.sds", "back/ckpt-1"):
        result = run("restore", at("runs/large.sds"), "--to", at(name))
        checks.check(f"restored into {name} at an address", result.returncode == 0, result.stderr)
        result = run("diff", at(name), large)
        checks.check(f"{name} has the same tensors", result.returncode == 0, result.stdout + result.stderr)
    wire.delay, wire.most_waiting = 0.3, 0
    result = run("convert", at("back.safetensors"), local("again.npz"))
    wire.delay = 0.0
    checks.check("so has a conversion", result.returncode == 0 and wire.most_waiting >= 8, (wire.most_waiting, result.stderr))
    result = run("restore", at("runs/large.sds"), "--only", "b", "--to", at("back/ckpt-1"))
    data = [key for key in keys() if key.startswith("back/ckpt-1.data")]
    checks.check("a checkpoint takes the place of another, whose data goes", result.returncode == 0 and len(data) <= 2, data)
    result = run("diff", at("back/ckpt-1"), large, "--json")
    found = {one["name"]: one["result"] for one in objects_of(result)}
    checks.check("and is the new one", found == {"a": "only_in_b", "b": "equal"}, found)
    result = run("check", at("back/ckpt-1"), "--verify-data", "--json")
    checks.check("a checkpoint prefix at an address", objects_of(result)[0]["kind"] == "tensor_bundle" and result.returncode == 0, result.stdout)
    result = run("restore", at("runs/large.sds"), "--salvage", "--json")
    checks.check("a salvage of an address", result.returncode == 0, result.stderr)

    # Artifacts at addresses are judged like files.
    corpus = os.path.join(ROOT, "tests/data/tensorflow")
    count = 0
    for top in ("sm", "meta"):
        for path, _, names in os.walk(os.path.join(corpus, top)):
            for name in names:
                file = os.path.join(path, name)
                s3.upload_file(file, BUCKET, "corpus/" + os.path.relpath(file, corpus))
                count += 1
    here, there = run("check", corpus + "/sm", corpus + "/meta", "--json"), run("check", at("corpus/sm"), at("corpus/meta"), "--json")
    expected = here.stdout.replace(corpus + "/", at("corpus/"))
    differ = [pair for pair in zip(expected.splitlines(), there.stdout.splitlines()) if pair[0] != pair[1]]
    checks.check(f"{count} files of the corpus are judged alike", expected == there.stdout and here.returncode == there.returncode,
                 (differ[:1], there.stderr[:500]))

    # Each process saves a part.
    parts = [safetensors(local(f"part-{number}.safetensors"), {f"w{number}": bytes([number]) * 100}) for number in range(3)]
    save = ["--id", "step-10", "-o", at("step-10.sds")]
    for number in (0, 2):
        run("save", "--from", parts[number], "--part", f"{number}/3", *save)
    result = run("merge", at("step-10.sds"), "--id", "step-10")
    checks.check("a merge names the part that is missing", result.returncode == 2 and "1 is missing" in result.stderr, result.stderr)
    run("save", "--from", parts[1], "--part", "1/3", *save)
    result = run("merge", at("step-10.sds"), "--id", "step-10", "--json")
    checks.check("a merge at an address", result.returncode == 0 and objects_of(result)[0]["parts"] == 3, result.stderr)
    result = run("inspect", at("step-10.sds"), "--json")
    checks.check("an inspection counts the parts", result.returncode == 0 and objects_of(result)[0]["parts"] == 3, result.stdout)
    result = run("restore", at("step-10.sds"), "--json")
    checks.check("a state of parts is restored", result.returncode == 0 and objects_of(result)[0]["tensors"] == 3, result.stderr)

    # Missing objects, and a store that refuses access.
    before = keys()
    for command in (["check"], ["inspect"], ["restore"]):
        result = run(*command, at("nothing.sds"))
        checks.check(f"{command[0]} of nothing", result.returncode == 2 and "nothing.sds" in result.stdout + result.stderr, result.stderr)
    result = run("check", at("nothing.sds"), "--json")
    checks.check("not found is not_found", objects_of(result)[0]["reasons"][0]["rule"] == "not_found", result.stdout)
    result = run("save", "--from", large, "-o", "s3://no-such-bucket/a.sds")
    checks.check("no such bucket", result.returncode == 2 and "NoSuchBucket" in result.stderr, result.stderr)
    result = run("check", at("runs/large.sds"), AWS_ALLOW_HTTP="false")
    checks.check("an endpoint without encryption is not taken unasked", result.returncode == 2 and "AWS_ALLOW_HTTP" in result.stdout, result.stdout)

    # Each connection breaks in the middle of an upload.
    wire.cut_after = 2 << 20
    result = run("save", "--from", large, "-o", at("cut.sds"))
    checks.check("an upload that is cut each time fails", result.returncode == 2, result.stderr)
    wire.cut_after = None
    checks.check("and leaves nothing", keys() == before and unfinished() == [], (keys(), unfinished()))

    # Ctrl-C in the middle of an upload.
    wire.pause = 0.05
    process = subprocess.Popen([serdes, "save", "--from", large, "-o", at("stopped.sds")], env=environment,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for _ in range(200):
        if unfinished():
            break
        time.sleep(0.05)
    time.sleep(0.5)
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    try:
        _, words = process.communicate(timeout=60)
    finally:
        process.kill()
    wire.pause = 0.0
    checks.check("Ctrl-C ends an upload soon", time.monotonic() - begin < 10, f"{time.monotonic() - begin:.1f} s")
    checks.check("with a failure", process.returncode != 0, words)
    checks.check("and leaves nothing", keys() == before and unfinished() == [], (keys(), unfinished()))
    shutil.rmtree(local("back"), ignore_errors=True)
    wire.listener.close()


def check_refused(serdes, folder, environment, checks):
    """Tests that an unknown key is refused with a message, when the emulator checks keys."""
    environment = environment | {"AWS_ACCESS_KEY_ID": "unknown", "AWS_SECRET_ACCESS_KEY": SECRET}
    source = safetensors(os.path.join(folder, "small.safetensors"), {"a": b"1"})
    for args in (["check", f"s3://{BUCKET}/runs/large.sds"], ["save", "--from", source, "-o", f"s3://{BUCKET}/b.sds"]):
        result = subprocess.run([serdes, *args], env=environment, capture_output=True, text=True, timeout=180)
        said = result.stdout + result.stderr
        checks.check(f"{args[0]} with an unknown key is refused", result.returncode == 2 and "refuses the credentials" in said, said)
        checks.check("without a secret", SECRET not in said and "StringToSign" not in said, said)
