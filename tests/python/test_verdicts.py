"""Verdicts: equal to those of the command, as objects of Python."""

from __future__ import annotations

import datetime
import html
import importlib
import json
import pathlib
import pickle
import re
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import pytest
import serdes_ml as sd

COMMAND = [sys.executable, "-m", "serdes_ml"]


def printed(*arguments: str) -> list[Any]:
    """Returns the output of the command with ``--json``."""
    ran = subprocess.run([*COMMAND, *arguments, "--json"], capture_output=True, text=True)
    return [json.loads(line) for line in ran.stdout.splitlines()]


@pytest.fixture
def models(data: pathlib.Path) -> pathlib.Path:
    """Returns the folder of SavedModels, good and odd."""
    return data / "tensorflow" / "sm"


def test_a_verdict_is_the_object_of_the_command(models: pathlib.Path) -> None:
    seen = set()
    for model in sorted(models.iterdir()):
        verdicts = sd.check_all(model, tensorflow="2.16")
        objects = [one for one in printed("check", str(model), "--tensorflow", "2.16")]
        objects = [one for one in objects if "summary" not in one]
        assert [verdict.to_dict() for verdict in verdicts] == objects
        seen.update(verdict.verdict for verdict in verdicts)
    assert {"acceptable", "unacceptable"} <= seen


def test_a_refusal_says_why_and_what_to_do(models: pathlib.Path) -> None:
    verdict = sd.check(models / "sm_tf2_bad_consumers_V")
    assert not verdict
    assert not verdict.acceptable
    assert verdict.verdict == "unacceptable"
    assert verdict.kind == "saved_model"
    assert verdict.path == str(models / "sm_tf2_bad_consumers_V")
    assert verdict.versions is not None
    assert verdict.consumer == sd.Consumer("graph_def", 2474, 0)
    reason = verdict.reasons[0]
    assert reason.rule == "bad_consumer"
    assert reason.found == "2474"
    assert reason.expected
    assert reason.remedy
    assert reason.message in str(verdict)


def test_the_consumer_is_whom_one_names(data: pathlib.Path) -> None:
    graphs = sorted((data / "tensorflow" / "graphs").glob("*.pb"))
    new = next(
        one
        for one in graphs
        if sd.check(one)
        and (v := sd.check(one).versions)
        and v.min_consumer == 0
        and v.producer > 1395
    )
    assert sd.check(new, tensorflow="2.12").release == "2.12"
    verdict = sd.check(new, consumer={"graph_def": (5000, 4000)})
    assert verdict.consumer == sd.Consumer("graph_def", 5000, 4000)
    assert verdict.reasons[0].rule == "producer_too_old"


def test_every_release_gives_a_verdict(models: pathlib.Path) -> None:
    model = models / "sm_tf2_bad_consumers_V"
    verdicts = sd.check_all([model], tensorflow=["2.12", "2.16"])
    assert [verdict.release for verdict in verdicts] == ["2.12", "2.16"]
    assert len(sd.check_all(model, tensorflow="2.12..2.16")) == 5
    with pytest.raises(ValueError, match="check_all"):
        sd.check(model, tensorflow="2.12..2.16")


@pytest.mark.parametrize("threads", [None, 1, 3])
def test_paths_are_judged_in_their_order(tmp_path: pathlib.Path, threads: int | None) -> None:
    folder = tmp_path / "states"
    folder.mkdir()
    for number in range(5):
        sd.save_file({"w": np.full(3, number)}, folder / f"{number}.sds")
    paths = [tmp_path / "nowhere", folder, folder / "3.sds"]
    verdicts = sd.check_all(paths, threads=threads)
    names = [pathlib.Path(verdict.path).name for verdict in verdicts]
    assert names == ["nowhere", "0.sds", "1.sds", "2.sds", "3.sds", "4.sds", "3.sds"]
    assert [bool(verdict) for verdict in verdicts] == [False] + [True] * 6
    with pytest.raises(ValueError, match="5 verdicts"):
        sd.check(folder)


def test_a_path_that_is_not_there_is_a_verdict(tmp_path: pathlib.Path) -> None:
    verdict = sd.check(tmp_path / "nowhere" / "at" / "all")
    assert verdict.verdict == "unreadable"
    assert verdict.kind is None
    assert verdict.reasons[0].rule == "not_found"


def test_warnings_become_reasons_where_one_is_strict(tmp_path: pathlib.Path) -> None:
    empty = tmp_path / "empty.pb"
    empty.write_bytes(b"")
    verdict = sd.check(empty)
    assert verdict
    assert [warning.rule for warning in verdict.warnings] == ["empty"]
    assert not sd.check(empty, strict=True)


def test_verdicts_travel_between_processes(models: pathlib.Path) -> None:
    paths = sorted(models.iterdir())[:4]
    here = [sd.check_all(path)[0] for path in paths]
    assert pickle.loads(pickle.dumps(here)) == here
    with ProcessPoolExecutor(2) as pool:
        there = [found[0] for found in pool.map(sd.check_all, paths)]
    assert there == here
    assert [one.to_dict() for one in there] == [one.to_dict() for one in here]
    assert len({hash(one) for one in here}) == len(here)


WRONG: list[dict[str, Any]] = [
    {"tensorflow": "9.9"},
    {"consumer": {"nothing": 1}},
    {"consumer": {"graph_def": (5, 6)}},
    {"kind": "picture"},
    {"loader": "other"},
]


@pytest.mark.parametrize("arguments", WRONG, ids=str)
def test_what_does_not_exist_cannot_be_asked_for(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        sd.check("/nowhere", **arguments)


KINDS = pathlib.Path(__file__).parents[1] / "data" / "kinds"


def test_releases_of_jax_judge_what_jax_exported() -> None:
    path = KINDS / "f-0.8.0.jaxexport"
    assert sd.check(path, jax="0.10.2").release == "0.10.2"
    assert [one.rule for one in sd.check(path, jax="0.10.2").warnings] == ["expires"]
    refused = sd.check(path, jax="latest")
    assert not refused
    assert refused.reasons[0].rule == "too_old"
    releases = sd.check_all(path, jax=["0.8.0", "0.11.0..0.11.1"])
    assert [bool(verdict) for verdict in releases] == [True, True, False]
    with pytest.raises(ValueError, match=r"0\.10\.2"):
        sd.check(path, jax="0.4")


def test_a_bare_message_of_ifrt_is_judged_as_the_type_that_is_named(data: pathlib.Path) -> None:
    message = data / "ifrt" / "golden" / "serdes3.F32.xla.ifrt.DTypeProto.binpb"
    assert sd.check(message).reasons[0].rule == "other_kind"
    verdict = sd.check(message, kind="DType")
    assert verdict, verdict
    assert verdict.kind == "ifrt_message"
    with pytest.raises(ValueError, match="ArraySpec"):
        sd.check(message, kind="Nothing")


def test_an_exported_function_is_judged_in_memory() -> None:
    jax = pytest.importorskip("jax")
    pytest.importorskip("flatbuffers", reason="jax serializes with it")
    exported = importlib.import_module("jax.export").export(jax.jit(jax.numpy.sin))(1.0)
    verdict = sd.check(exported, jax=jax.__version__)
    assert verdict, verdict
    assert (verdict.kind, verdict.path, verdict.release) == ("jax_export", "-", jax.__version__)


def test_an_inspection_is_that_of_the_command(path: pathlib.Path) -> None:
    sd.save_file({"w": np.ones((2, 3), np.float32)}, path)
    found = sd.inspect(path)
    assert found == printed("inspect", str(path))[0]
    expected = {"name": "w", "dtype": "F32", "shape": [2, 3], "bytes": 24}
    assert expected.items() <= found["tensors"][0].items()
    path.write_bytes(b"\x8fSDS")
    with pytest.raises(sd.Corrupt):
        sd.inspect(path)
    with pytest.raises(sd.NotFound):
        sd.inspect(path.with_name("nowhere"))


def test_versions_are_those_of_the_command() -> None:
    assert sd.versions() == printed("versions")
    day = datetime.date(2026, 9, 1)
    assert (
        sd.versions(day)
        == sd.versions("2026-09-01")
        == printed("versions", "--as-of", "2026-09-01")
    )
    assert sd.versions(day) != sd.versions()
    with pytest.raises(ValueError, match=r"\w"):
        sd.versions("yesterday")


def test_rules_are_explained() -> None:
    text = sd.explain("min_consumer")
    assert text.startswith("min_consumer (unacceptable)")
    ran = subprocess.run([*COMMAND, "explain", "min_consumer"], capture_output=True, text=True)
    assert ran.stdout.strip() == text.strip()
    with pytest.raises(ValueError, match="nosuch"):
        sd.explain("nosuch")


def test_differences_are_told_by_tensor(tmp_path: pathlib.Path) -> None:
    a, b = tmp_path / "a.sds", tmp_path / "b.npz"
    sd.save_file({"same": np.ones(3), "other": np.zeros(4), "a": np.ones(1)}, a)
    np.savez(b, same=np.ones(3), other=np.array([0, 0, 0.5, 0]), b=np.ones(1))
    found = {one["name"]: one for one in sd.diff(a, b)}
    assert found["same"]["result"] == "equal"
    assert (found["other"]["result"], found["other"]["max_abs"]) == ("differs", 0.5)
    assert found["a"]["result"] == "only_in_a"
    assert found["b"]["result"] == "only_in_b"
    close = {one["name"]: one["result"] for one in sd.diff(a, b, atol=0.5)}
    assert close["other"] == "equal"
    with pytest.raises(ValueError, match="rtol"):
        sd.diff(a, b, rtol=-1.0)
    with pytest.raises(sd.NotFound):
        sd.diff(a, tmp_path / "nowhere.npz")


def test_a_verdict_shows_itself_in_a_line_and_in_a_table(models: pathlib.Path) -> None:
    path = models / "sm_tf2_bad_consumers_V"
    verdict = sd.check(path)
    assert repr(verdict).startswith(f"<Verdict unacceptable {str(path)!r} saved_model for ")
    assert repr(verdict).endswith(": bad_consumer (warnings: loader_differs)>")
    assert "<td>bad_consumer</td>" in verdict._repr_html_()
    nowhere = sd.check("/no<where>")
    assert repr(nowhere).startswith("<Verdict unreadable '/no<where>' for ")
    assert repr(nowhere).endswith(": not_found>")
    assert "<where>" not in nowhere._repr_html_()
    assert "/no&lt;where&gt;" in nowhere._repr_html_()


def test_reports_are_those_of_the_command(models: pathlib.Path, tmp_path: pathlib.Path) -> None:
    model = models / "sm_tf2_unknown_op_in_functions"
    verdicts = sd.check_all(model, tensorflow="2.12..2.21", loader="load")
    files = {form: tmp_path / form for form in ("html", "markdown")}
    formats = [word for form, file in files.items() for word in ("--format", f"{form}={file}")]
    asked = ["--tensorflow", "2.12..2.21", "--loader", "load"]
    subprocess.run([*COMMAND, "check", str(model), *asked, *formats], capture_output=True)
    assert verdicts.to_html() == files["html"].read_text()
    assert verdicts.to_markdown() == files["markdown"].read_text()
    assert ">load</dd>" in verdicts.to_html()


def test_a_notebook_shows_the_report_in_a_frame(models: pathlib.Path) -> None:
    verdicts = sd.check_all(models / "sm_tf2_bad_consumers_V", tensorflow=["2.20", "2.21"])
    shown = verdicts._repr_html_()
    assert shown.startswith("<iframe ")
    assert shown.endswith("</iframe>")
    page = re.search('srcdoc="([^"]*)"', shown)
    assert page is not None
    assert html.unescape(page[1]) == verdicts.to_html()
    many = sd.Verdicts(verdicts[:1] * 1001)
    assert "and 1 more" in many._repr_html_()


def test_verdicts_are_a_list_that_pickles(tmp_path: pathlib.Path) -> None:
    verdicts = sd.check_all([tmp_path / "nowhere"], loader="cpp")
    again = pickle.loads(pickle.dumps(verdicts))
    assert again == verdicts
    assert (again.loader, again.to_html()) == ("cpp", verdicts.to_html())
    assert sd.Verdicts().to_markdown()
