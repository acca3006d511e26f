"""Tests states in a bucket: the library and the command with an emulator of S3, over the loopback interface.

python tests/interop/object_store.py --serdes BINARY --host-plugin LIBRARY [--example BINARY]

The Python that runs it has moto[server]. The program is examples/object-state; without --example it is built. bucket_command.py
tests the command with addresses. The plug-in is not used: the option lets all scripts of this folder be called the same way.
"""

import argparse
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

import boto3
import bucket_command
from botocore.config import Config
from checks import Checks, hear_signals

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUCKET, NAME = "states", "runs/7/step-1000.sds"
SAVERS = 4

checks = Checks()


def expect(condition, what):
    checks.check(what, condition)


def build():
    target = os.path.join(os.environ.get("CARGO_TARGET_DIR") or os.path.join(ROOT, "target"), "object-state")
    subprocess.run(["cargo", "build", "--release", "--quiet", "--manifest-path", os.path.join(ROOT, "examples/object-state/Cargo.toml"),
                    "--target-dir", target], check=True)
    return os.path.join(target, "release", "object-state")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def await_server(server, url):
    for _ in range(300):
        if server.poll() is not None:
            raise RuntimeError(f"the emulator ended with status {server.returncode}")
        try:
            urllib.request.urlopen(url + "/moto-api/", timeout=5).close()
            return
        except OSError:
            time.sleep(0.2)
    raise RuntimeError("the emulator does not answer")


def main():
    hear_signals()
    parser = argparse.ArgumentParser()
    parser.add_argument("--serdes")
    parser.add_argument("--host-plugin")
    parser.add_argument("--example", help="the built examples/object-state")
    arguments = parser.parse_args()
    program = arguments.example or build()
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        environment = {key: value for key, value in os.environ.items() if not key.startswith("AWS_") and "proxy" not in key.lower()}
        with open(os.path.join(folder, "emulator.log"), "wb") as log:
            server = subprocess.Popen([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
                                      stdout=log, stderr=log, env=environment)
            try:
                await_server(server, url)
                check(program, arguments.serdes, port, folder, environment)
            finally:
                server.terminate()
                server.wait(timeout=30)
    sys.exit(checks.end())


def check(program, serdes, port, folder, environment):
    url = f"http://127.0.0.1:{port}"
    keys = {"aws_access_key_id": "emulated", "aws_secret_access_key": "emulated", "region_name": "us-east-1"}
    s3 = boto3.client("s3", endpoint_url=url, config=Config(proxies={}), **keys)
    s3.create_bucket(Bucket=BUCKET)
    environment = environment | {"AWS_ACCESS_KEY_ID": "emulated", "AWS_SECRET_ACCESS_KEY": "emulated", "AWS_REGION": "us-east-1",
                                 "AWS_ENDPOINT": url, "AWS_ALLOW_HTTP": "true", "NO_PROXY": "127.0.0.1"}

    def run(*args, **changes):
        return subprocess.run([program, *args], env=environment | changes, capture_output=True, text=True, timeout=120)

    def objects():
        return sorted(item["Key"] for item in s3.list_objects_v2(Bucket=BUCKET).get("Contents", []))

    def unfinished():
        return s3.list_multipart_uploads(Bucket=BUCKET).get("Uploads", [])

    def write(name, size):
        path = os.path.join(folder, name)
        with open(path, "wb") as file:
            file.write(random.Random(name).randbytes(size))
        return path

    def same(tensor, path, name=NAME):
        target = os.path.join(folder, "back")
        result = run("get", BUCKET, name, tensor, target)
        if result.returncode != 0:
            print(result.stderr)
            return False
        with open(path, "rb") as file, open(target, "rb") as back:
            return file.read() == back.read()

    # One object, uploaded in several parts, of which the last is short.
    large = write("large", (29 << 20) + 77)
    result = run("save", BUCKET, "one.sds", large)
    expect(result.returncode == 0, f"save: {result.stderr}")
    expect(same("data", large, "one.sds"), "a state of one object comes back")
    result = run("list", BUCKET, "one.sds")
    expect(result.stdout == "0 parts, 0 damaged\ndata\n", f"list: {result.stdout} {result.stderr}")
    expect(unfinished() == [], "no upload stays")
    s3.delete_object(Bucket=BUCKET, Key="one.sds")

    # Four processes save, and one of them is killed.
    files = [write(f"process-{number}", (13 << 20) + number) for number in range(SAVERS)]
    small = [write(f"small-{number}", 1000 + number) for number in range(SAVERS)]

    def put(save, sources, kill=None):
        savers = []
        for number, source in enumerate(sources):
            wait = {"OBJECT_STATE_WAIT": "1"} if number == kill else {}
            savers.append(subprocess.Popen([program, "put-part", BUCKET, NAME, save, str(number), str(SAVERS), source],
                                           env=environment | wait, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        try:
            if kill is not None:
                savers[kill].stdout.readline()
                savers[kill].kill()
            return [saver.wait(timeout=120) for saver in savers]
        finally:
            for saver in savers:
                if saver.poll() is None:
                    saver.kill()
                saver.communicate()

    first, second, third = ("%032x" % number for number in (1, 2, 3))
    statuses = put(first, files, kill=2)
    expect([status == 0 for status in statuses] == [True, True, False, True], f"statuses {statuses}")
    result = run("merge", BUCKET, NAME, first)
    expect(result.returncode == 1 and "found 3 of 4 parts, 2 is missing" in result.stderr, f"merge: {result.stderr}")
    expect(NAME not in objects(), "no state appears")
    result = run("get", BUCKET, NAME, "data-0", os.devnull)
    expect(result.returncode == 1 and "not found" in result.stderr.lower(), f"get: {result.stderr}")

    statuses = put(second, files)
    expect(statuses == [0] * SAVERS, f"statuses {statuses}")
    expect(NAME not in objects(), "no state appears before the merge")
    result = run("merge", BUCKET, NAME, second)
    expect(result.returncode == 0 and result.stdout.startswith("4 parts, "), f"merge: {result.stdout} {result.stderr}")
    expected = [NAME] + [f"{NAME}.parts/{second}-{number:06}-of-{SAVERS:06}.part" for number in range(SAVERS)]
    expect(objects() == expected, f"the state and its parts, no leftovers: {objects()}")
    for number, source in enumerate(files):
        expect(same(f"data-{number}", source), f"data-{number} comes back")
    result = run("list", BUCKET, NAME)
    expect(result.stdout.startswith("4 parts, 0 damaged\n"), f"list: {result.stdout} {result.stderr}")
    result = run("merge", BUCKET, NAME, second)
    expect(result.returncode == 0, f"a second merge of the same save: {result.stderr}")

    # The next state replaces it; a failed attempt between the two does not.
    put(third, small, kill=0)
    expect(run("merge", BUCKET, NAME, third).returncode == 1 and same("data-3", files[3]), "the old state stays")
    expect(put(third, small) == [0] * SAVERS and run("merge", BUCKET, NAME, third).returncode == 0, "the new state")
    expect(same("data-3", small[3]) and len(objects()) == 1 + SAVERS, f"the new state replaces the old one: {objects()}")

    # A missing part, and a part with a changed byte.
    lost = f"{NAME}.parts/{third}-000001-of-000004.part"
    content = s3.get_object(Bucket=BUCKET, Key=lost)["Body"].read()
    s3.delete_object(Bucket=BUCKET, Key=lost)
    result = run("list", BUCKET, NAME)
    expect(result.returncode == 1 and "part 1 of 4" in result.stderr, f"a lost part: {result.stderr}")
    at = content.index(open(small[1], "rb").read()) + 500
    s3.put_object(Bucket=BUCKET, Key=lost, Body=content[:at] + bytes([content[at] ^ 1]) + content[at + 1:])
    result = run("list", BUCKET, NAME)
    expect(result.stdout.startswith("4 parts, 1 damaged\n"), f"a damaged part: {result.stdout} {result.stderr}")
    expect(run("get", BUCKET, NAME, "data-1", os.devnull).returncode == 1, "a damaged tensor is not given out")
    s3.put_object(Bucket=BUCKET, Key=lost, Body=content)
    expect(same("data-1", small[1]), "and comes back when it is whole again")

    # One object replaces all parts.
    result = run("save", BUCKET, NAME, small[0])
    expect(result.returncode == 0 and objects() == [NAME], f"one object in the place of parts: {objects()} {result.stderr}")

    # Errors outside the state.
    result = run("save", "no-such-bucket", NAME, small[0])
    expect(result.returncode == 1 and "NoSuchBucket" in result.stderr and "no-such-bucket" in result.stderr,
           f"no such bucket: {result.stderr}")
    result = run("get", "no-such-bucket", NAME, "data", os.devnull)
    expect(result.returncode == 1 and "no-such-bucket" in result.stderr, f"no such bucket to read: {result.stderr}")
    if serdes:
        bucket_command.check(serdes, s3, port, folder, environment, checks)
    # From now on the emulator checks keys.
    headers = {"Content-Type": "text/plain"}
    request = urllib.request.Request(url + "/moto-api/reset-auth", data=b"0", headers=headers, method="POST")
    urllib.request.urlopen(request, timeout=30).close()
    result = run("save", BUCKET, NAME, small[0], AWS_ACCESS_KEY_ID="unknown")
    expect(result.returncode == 1 and BUCKET in result.stderr and ("InvalidAccessKeyId" in result.stderr or "403" in result.stderr),
           f"a save with an unknown key: {result.stderr}")
    result = run("list", BUCKET, NAME, AWS_ACCESS_KEY_ID="unknown")
    expect(result.returncode == 1 and NAME in result.stderr, f"a list with an unknown key: {result.stderr}")
    result = run("list", BUCKET, NAME, AWS_ENDPOINT=f"http://127.0.0.1:{free_port()}")
    expect(result.returncode == 1 and result.stderr.startswith("error: cannot open"), f"no server answers: {result.stderr}")
    if serdes:
        bucket_command.check_refused(serdes, folder, environment, checks)


if __name__ == "__main__":
    main()
