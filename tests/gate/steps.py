"""Runs the steps of the action, the hook and the GitLab template as their systems would, with the command that is named.

    PYTHON tests/gate/steps.py --serdes PATH

Expressions of GitHub are replaced by the inputs that a test gives; a step that uses another action is not run. The hook's manifest is read by
pre-commit itself.
"""

import argparse
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = ROOT / "tests/data/tensorflow/sm"
sys.path.insert(0, str(ROOT / "tests/interop"))

from checks import Checks  # noqa: E402

GOOD, BAD = "tf2", "sm_tf2_bad_consumers_V"


class Gate(Checks):
    def __init__(self, serdes, folder):
        super().__init__()
        self.folder = folder
        binary = folder / "bin"
        binary.mkdir()
        (binary / "serdes").symlink_to(pathlib.Path(serdes).resolve())
        self.environment = {
            "PATH": f"{binary}:{os.environ['PATH']}", "HOME": str(folder), "LANG": "C.UTF-8", "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_AUTHOR_NAME": "t", "GIT_AUTHOR_EMAIL": "t@localhost", "GIT_COMMITTER_NAME": "t", "GIT_COMMITTER_EMAIL": "t@localhost",
        }

    def repository(self, name, *models):
        """A repository with these models, and one commit."""
        place = self.folder / name
        for model in models:
            shutil.copytree(MODELS / model, place / "models" / model)
        self.git(place, "init", "--quiet", "--initial-branch=main")
        self.git(place, "add", ".")
        self.git(place, "commit", "--quiet", "--message", "Models")
        return place

    def git(self, place, *words):
        subprocess.run(["git", *words], cwd=place, env=self.environment, check=True)

    def bash(self, place, script, **variables):
        # As the runners of GitHub and GitLab start it.
        return subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script], cwd=place, capture_output=True, text=True,
                              env={**self.environment, **variables}, timeout=300)


def action(gate, place, **inputs):
    """Runs the steps of the action; the result of the one that checks, its outputs and the summary."""
    described = yaml.safe_load((ROOT / "action.yml").read_text())
    known = {name: str(one.get("default", "")) for name, one in described["inputs"].items()}
    unknown = set(inputs) - set(known)
    gate.check("inputs of the action", not unknown, unknown)
    values = {**known, **inputs}
    temporary = pathlib.Path(tempfile.mkdtemp(dir=gate.folder))
    files = {name: temporary / name for name in ("GITHUB_PATH", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    for file in files.values():
        file.touch()
    result = None
    for step in described["runs"]["steps"]:
        if "run" not in step:
            continue

        def value(text):
            return re.sub(r"\$\{\{ (?:inputs\.([a-z-]+)|github\.action_ref) \}\}", lambda found: values[found[1]] if found[1] else "", text)

        environment = {name: value(str(text)) for name, text in step.get("env", {}).items()}
        left = [text for text in environment.values() if "${{" in text and text not in inputs.values()]
        gate.check("expressions of the action", not left and "${{" not in step["run"], left or step["run"])
        result = gate.bash(place, step["run"], GITHUB_ACTION_PATH=str(ROOT), RUNNER_TEMP=str(temporary), **environment,
                           **{name: str(file) for name, file in files.items()})
        if step.get("id") != "check" and result.returncode:
            break
    outputs = dict(line.split("=", 1) for line in files["GITHUB_OUTPUT"].read_text().splitlines())
    return result, outputs, files["GITHUB_STEP_SUMMARY"].read_text()


def check_action(gate):
    place = gate.repository("action", GOOD, BAD)
    result, outputs, summary = action(gate, place, paths="models", version="installed", tensorflow="2.21", **{"upload-sarif": "false"})
    gate.check("status of the action", (result.returncode, outputs.get("status")) == (1, "1"), (result, outputs))
    gate.check("annotation of the action", "::error" in result.stdout and BAD in result.stdout, result.stdout)
    gate.check("summary of the action", BAD in summary, summary)
    sarif = json.loads((place / "serdes.sarif").read_text())
    gate.check("SARIF of the action", sarif["version"] == "2.1.0" and sarif["runs"][0]["results"], sarif)
    result, outputs, _ = action(gate, place, paths=f"models/{GOOD}\n", version="installed", tensorflow="2.21", arguments="--verify-data\n")
    gate.check("status of a good model", (result.returncode, outputs.get("status")) == (0, "0"), result)
    # Words of an input are no commands.
    mark = gate.folder / "mark"
    hostile = f"models/$(touch {mark})\n`touch {mark}`\n; touch {mark}"
    result, _, _ = action(gate, place, paths=hostile, version="installed")
    gate.check("inputs are no commands", result.returncode == 2 and not mark.exists(), result)
    result, _, _ = action(gate, place, version="newest")
    gate.check("an unknown version is said", result.returncode == 2 and "expected a release" in result.stdout, result)


def check_against(gate):
    place = gate.repository("against", GOOD)
    shutil.copy(MODELS / BAD / "saved_model.pb", place / "models" / GOOD / "saved_model.pb")
    result, _, summary = action(gate, place, paths="models", version="installed", tensorflow="2.20..2.21", against="HEAD")
    gate.check("comparison of the action", "Compatibility against" in summary and "worse" in summary, summary)
    gate.check("status with a comparison", result.returncode == 1, result)


def check_hook(gate):
    manifest = ROOT / ".pre-commit-hooks.yaml"
    done = subprocess.run([sys.executable, "-m", "pre_commit", "validate-manifest", str(manifest)], capture_output=True, text=True)
    gate.check("manifest of the hook", done.returncode == 0, done)
    (hook,) = yaml.safe_load(manifest.read_text())
    place = gate.repository("hook", GOOD, BAD)
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=place, capture_output=True, text=True, check=True).stdout.split("\0")
    files = [name for name in listed if name and re.search(hook["files"], name) and not re.search(hook["exclude"], name)]
    gate.check("files of the hook", f"models/{GOOD}/saved_model.pb" in files and not any("fingerprint" in name for name in files), files)
    run = lambda names: gate.bash(place, shlex.join([*hook["entry"].split(), *names]))  # noqa: E731
    result = run([name for name in files if f"models/{GOOD}/" in name])
    gate.check("hook of a good model", result.returncode == 0, result)
    result = run(files)
    gate.check("hook of a bad model", result.returncode == 1 and BAD in result.stdout, result)


def check_gitlab(gate):
    (name, job), = yaml.safe_load((ROOT / "ci/gitlab.yml").read_text()).items()
    gate.check("job of the template", name == "serdes-check", name)
    place = gate.repository("gitlab", GOOD, BAD)
    variables = {**job["variables"], "SERDES_PATHS": "models", "SERDES_ARGUMENTS": "--tensorflow 2.21"}
    script = "\n".join([*job["before_script"], *job["script"]])
    result = gate.bash(place, script, **variables)
    gate.check("status of the template", result.returncode == 1 and BAD in result.stdout, result)
    reports = job["artifacts"]["reports"]
    quality = json.loads((place / reports["codequality"]).read_text())
    gate.check("Code Quality of the template", any(BAD in one["location"]["path"] for one in quality), quality)
    gate.check("JUnit of the template", xml.parse(place / reports["junit"]).getroot().tag.startswith("testsuite"))
    (place / "serdes.toml").write_text(f"[check]\npaths = ['models/{GOOD}']\ntensorflow = '2.21'\n")
    result = gate.bash(place, script, **{**variables, "SERDES_PATHS": "", "SERDES_ARGUMENTS": ""})
    gate.check("template with serdes.toml", result.returncode == 0, result)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--serdes", required=True)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        gate = Gate(arguments.serdes, pathlib.Path(folder))
        for check in (check_action, check_against, check_hook, check_gitlab):
            check(gate)
        return gate.end()


if __name__ == "__main__":
    sys.exit(main())
