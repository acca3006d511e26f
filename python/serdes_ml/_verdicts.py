"""Verdicts: may this artifact be loaded, and if not, why, and what to do?"""

from __future__ import annotations

import datetime
import html
import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias, cast

from . import _native
from ._arguments import flags, number, text, texts, whole
from ._errors import wrong_type
from ._paths import Path, paths_of, place

Loader: TypeAlias = Literal["load_v1", "load", "cpp"]
"""Loaders of a SavedModel."""


class Exported(Protocol):
    """A function that ``jax.export`` has exported, as far as it is used here."""

    def serialize(self) -> bytearray:
        """Return the bytes of its file."""
        ...


@dataclass(frozen=True)
class Reason:
    """Why an artifact is not acceptable: a rule, what was found, and what would have been taken."""

    __module__ = "serdes_ml"

    rule: str
    message: str
    found: str | None = None
    expected: str | None = None
    remedy: str | None = None
    where: str | None = None

    def __str__(self) -> str:
        place = f" (at {self.where})" if self.where else ""
        return f"{self.rule}: {self.message}{place}"


@dataclass(frozen=True)
class Warning:
    """Something that one should know, although the artifact is judged without it."""

    __module__ = "serdes_ml"

    rule: str
    message: str
    where: str | None = None

    def __str__(self) -> str:
        place = f" (at {self.where})" if self.where else ""
        return f"{self.rule}: {self.message}{place}"


@dataclass(frozen=True)
class Versions:
    """The versions that an artifact records."""

    __module__ = "serdes_ml"

    producer: int
    min_consumer: int
    bad_consumers: tuple[int, ...] = ()


@dataclass(frozen=True)
class Consumer:
    """The consumer that was asked about, in the line that decides about the artifact."""

    __module__ = "serdes_ml"

    line: str
    version: int
    min_producer: int = 0


@dataclass(frozen=True, repr=False)
class Verdict:
    """What is known of an artifact after it was checked; true if it may be loaded.

    >>> import serdes_ml as sd
    >>> verdict = sd.check("/nowhere")
    >>> bool(verdict), verdict.verdict, verdict.reasons[0].rule
    (False, 'unreadable', 'not_found')
    """

    __module__ = "serdes_ml"

    path: str
    kind: str | None
    verdict: str
    versions: Versions | None
    consumer: Consumer | None
    release: str | None
    reasons: tuple[Reason, ...]
    warnings: tuple[Warning, ...]
    _object: str = field(repr=False)

    @property
    def acceptable(self) -> bool:
        """Whether it may be loaded."""
        return self.verdict == "acceptable"

    def __bool__(self) -> bool:
        return self.acceptable

    def __str__(self) -> str:
        said = [f"{self.path}: {self.verdict}"]
        said.extend(f"  reason: {reason}" for reason in self.reasons)
        said.extend(f"  warning: {warning}" for warning in self.warnings)
        return "\n".join(said)

    def __repr__(self) -> str:
        words = [self.verdict, repr(self.path)]
        if self.kind is not None:
            words.append(self.kind)
        if self.release is not None:
            words.append(f"for {self.release}")
        found = _few([reason.rule for reason in self.reasons])
        warned = _few([warning.rule for warning in self.warnings])
        text = f"<Verdict {' '.join(words)}"
        text += f": {found}" if found else ""
        return text + (f" (warnings: {warned})>" if warned else ">")

    def _repr_html_(self) -> str:
        from ._html import heading, table

        release = "" if self.release is None else f" for {self.release}"
        rows = [
            ("reason", one.rule, one.message, one.where or "", one.remedy or "")
            for one in self.reasons
        ]
        rows += [("warning", one.rule, one.message, one.where or "", "") for one in self.warnings]
        title = heading(f"{self.path}: {self.verdict}{release}")
        columns = ("", "rule", "message", "at", "remedy")
        return title + (table(columns, rows) if rows else "")

    def to_dict(self) -> dict[str, Any]:
        """The object that ``serdes check --json`` prints."""
        return cast("dict[str, Any]", json.loads(self._object))

    @staticmethod
    def _of(found: dict[str, Any]) -> Verdict:
        versions, consumer = found.get("versions"), found.get("consumer")
        return Verdict(
            path=found["path"],
            kind=found.get("kind"),
            verdict=found["verdict"],
            versions=versions
            and Versions(
                versions["producer"], versions["min_consumer"], tuple(versions["bad_consumers"])
            ),
            consumer=consumer
            and Consumer(consumer["line"], consumer["version"], consumer["min_producer"]),
            release=found.get("release"),
            reasons=tuple(
                Reason(
                    rule=one["rule"],
                    message=one["message"],
                    found=one.get("found"),
                    expected=one.get("expected"),
                    remedy=one.get("remedy"),
                    where=one.get("where"),
                )
                for one in found["reasons"]
            ),
            warnings=tuple(
                Warning(rule=one["rule"], message=one["message"], where=one.get("where"))
                for one in found["warnings"]
            ),
            _object=json.dumps(found),
        )


class Verdicts(list[Verdict]):
    """The verdicts on several artifacts, or of several releases, with the reports of the command.

    >>> import serdes_ml as sd
    >>> verdicts = sd.check_all(["/nowhere", "/nor/here"])
    >>> verdicts.to_markdown().splitlines()[0]
    '### serdes'
    >>> refused = sd.Verdicts(one for one in verdicts if not one)
    >>> refused.to_html().startswith("<!DOCTYPE html>")
    True
    """

    __module__ = "serdes_ml"

    loader: Loader = "load_v1"

    def to_html(self) -> str:
        """One page that needs nothing else: the matrix of artifacts by releases and the reasons.

        It is what ``serdes check --format html`` writes.
        """
        return self._report("html")

    def to_markdown(self) -> str:
        """The matrix and the reasons for a comment on a pull request."""
        return self._report("markdown")

    def _report(self, form: str) -> str:
        objects = ",".join(verdict._object for verdict in self)
        return _native.report(f"[{objects}]", self.loader, form)

    def _repr_html_(self) -> str:
        shown = Verdicts(self[:SHOWN])
        shown.loader = self.loader
        # A page of its own, so that neither its style nor its script meets the notebook's.
        page = html.escape(shown.to_html())
        more = len(self) - len(shown)
        rest = f"<div>and {more} more; to_html() has all</div>" if more > 0 else ""
        style = "width: 100%; height: 30em; border: 1px solid #8888"
        return (
            f'<iframe title="verdicts" sandbox="allow-scripts" style="{style}"'
            f' srcdoc="{page}"></iframe>{rest}'
        )


SHOWN = 1000
"""Verdicts that a notebook shows."""


def _few(rules: list[str]) -> str:
    """Rules, each once, as few as fit into a line."""
    different = list(dict.fromkeys(rules))
    more = len(different) - 3
    return ", ".join(different[:3]) + (f" and {more} more" if more > 0 else "")


def _lines(
    consumer: Mapping[str, int | tuple[int, int]] | None,
) -> list[tuple[str, int, int]]:
    """Line, version, and the oldest producer that is taken."""
    if not isinstance(cast("object", consumer), (Mapping, type(None))):
        raise wrong_type("consumer", consumer, "versions by their lines, or None")
    lines: list[tuple[str, int, int]] = []
    for line, numbers in (consumer or {}).items():
        pair: tuple[object, ...] = numbers if isinstance(numbers, tuple) else (numbers, 0)
        expected, what = "a version, or a version and the oldest producer", f"consumer {line!r}"
        if len(pair) != 2:
            raise wrong_type(what, numbers, expected)
        version, producer = (whole(what, one, expected) for one in pair)
        lines.append((text("a line of consumer", line), version, producer))
    return lines


def _asked(
    tensorflow: str | Iterable[str] | None,
    jax: str | Iterable[str] | None,
    tags: str | Iterable[str] | None,
    kind: str | None,
    loader: str,
    verify_data: bool,
    strict: bool,
    custom_ops: str | Iterable[str] | None,
    consumer: Mapping[str, int | tuple[int, int]] | None,
) -> dict[str, Any]:
    flags(verify_data=verify_data, strict=strict)
    return {
        "tensorflow": texts("tensorflow", tensorflow) or [],
        "jax": texts("jax", jax) or [],
        "consumer": _lines(consumer),
        "custom_ops": texts("custom_ops", custom_ops) or [],
        "tags": texts("tags", tags),
        "kind": _kind(kind),
        "loader": text("loader", loader, "'load_v1', 'load' or 'cpp'"),
        "verify_data": verify_data,
        "strict": strict,
    }


def _kind(kind: str | None) -> str | None:
    return None if kind is None else text("kind", kind, "the name of a kind, or None")


def _serialized(given: object) -> bytes | None:
    """What ``jax.export`` writes of a function that it exported; None of anything else."""
    module = sys.modules.get("jax.export")
    if module is None or not isinstance(given, module.Exported):
        return None
    return bytes(cast("Exported", given).serialize())


def check(
    path: Path | Exported,
    *,
    tensorflow: str | None = None,
    jax: str | None = None,
    tags: str | Iterable[str] | None = None,
    kind: str | None = None,
    loader: Loader = "load_v1",
    verify_data: bool = False,
    strict: bool = False,
    custom_ops: str | Iterable[str] | None = None,
    consumer: Mapping[str, int | tuple[int, int]] | None = None,
) -> Verdict:
    """Tell whether the artifact at ``path`` may be loaded: a graph, a SavedModel, a checkpoint, a
    state, safetensors, npy, npz, a plug-in, a file of ``jax.export``, a portable artifact of
    StableHLO. In place of a path a ``jax.export.Exported`` is judged as its ``serialize()`` writes
    it.

    ``tensorflow`` is the release that is to load it, the newest by default; ``jax`` is the release
    of jaxlib that loads what JAX writes, ``"0.10.2"``; ``consumer`` gives
    versions of lines themselves, ``{"graph_def": 1395}``, or with the oldest producer that is
    taken, ``(1395, 12)``. ``tags`` choose the meta graph of a SavedModel, ``loader`` is
    ``load_v1``, ``load`` or ``cpp``, ``custom_ops`` are operations that the consumer has besides.
    ``kind`` says what name and content do not, and of a bare message of IFRT its type:
    ``"ArraySpec"``. ``verify_data`` reads every byte of every tensor, ``strict`` makes reasons of
    warnings.

    A path that is not there is a verdict and no exception.

    >>> import serdes_ml as sd
    >>> sd.check("/nowhere").reasons[0].rule
    'not_found'

    Raises:
        ValueError: if an argument is none of those that are known, or there are several artifacts
            at the path, which ``check_all`` judges.
    """
    asked = _asked(tensorflow, jax, tags, kind, loader, verify_data, strict, custom_ops, consumer)
    exported = _serialized(path)
    if exported is not None:
        asked["kind"] = asked["kind"] or "jax_export"
        return Verdict._of(json.loads(_native.check_bytes(exported, asked))[0])
    return Verdict._of(json.loads(_native.check(place(cast("Path", path)), asked))[0])


def check_all(
    paths: Path | Iterable[Path],
    *,
    tensorflow: str | Iterable[str] | None = None,
    jax: str | Iterable[str] | None = None,
    tags: str | Iterable[str] | None = None,
    kind: str | None = None,
    loader: Loader = "load_v1",
    verify_data: bool = False,
    strict: bool = False,
    custom_ops: str | Iterable[str] | None = None,
    consumer: Mapping[str, int | tuple[int, int]] | None = None,
    threads: int | None = None,
) -> Verdicts:
    """The verdicts on every artifact at the paths and in the folders below them, for each release.

    ``tensorflow`` is one release or several, ``"all"``, ``"latest"`` or a range ``"2.12..2.16"``,
    and so is ``jax`` for what a jaxlib loads (``"0.9.0..0.10.2"``).
    Several paths are judged at a time, by as many ``threads`` as the machine has cores or as are
    given; the answers come in the order of the paths. What else may be given is as in `check`.

    >>> import serdes_ml as sd
    >>> [verdict.verdict for verdict in sd.check_all(["/nowhere", "/nor/here"])]
    ['unreadable', 'unreadable']
    """
    asked = _asked(tensorflow, jax, tags, kind, loader, verify_data, strict, custom_ops, consumer)
    given = [place(path) for path in paths_of("paths", paths)]
    if threads is not None:
        threads = whole("threads", threads, "an integer, 1 or more, or None")
        if threads < 1:
            raise ValueError(f"threads: expected 1 or more, found {threads}")
    found = json.loads(_native.check_all(given, asked, threads))
    verdicts = Verdicts(map(Verdict._of, found))
    verdicts.loader = loader
    return verdicts


def inspect(path: Path, *, kind: str | None = None) -> dict[str, Any]:
    """What is in an artifact: kind, versions, tensors with type and shape, operations.

    The object that ``serdes inspect --json`` prints.

    >>> import tempfile, pathlib, numpy as np, serdes_ml as sd
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "state.sds"
    >>> sd.save_file({"w": np.ones(2, np.float32)}, path, {"step": "7"})
    >>> found = sd.inspect(path)
    >>> found["kind"], found["metadata"], [one["name"] for one in found["tensors"]]
    ('device_state', {'step': '7'}, ['w'])

    Raises:
        SerdesError: by the rule that keeps it from being read: `NotFound`, `Corrupt`, `TooNew`.
    """
    return cast("dict[str, Any]", json.loads(_native.inspect(place(path), _kind(kind))))


def versions(as_of: str | datetime.date | None = None) -> list[dict[str, Any]]:
    """Every entry of every line of versions as it stands on a day: ``2026-10-01``, or a date.

    >>> import serdes_ml as sd
    >>> {"ifrt_serdes", "device_state"} <= {one["line"] for one in sd.versions() if one["current"]}
    True
    """
    day = as_of.isoformat()[:10] if isinstance(as_of, datetime.date) else as_of
    if day is not None:
        text("as_of", day, "a day as 2026-10-01, a date, or None")
    return cast("list[dict[str, Any]]", json.loads(_native.versions(day)))


def explain(rule: str) -> str:
    """What a rule of a verdict means, with an example and the remedy.

    >>> import serdes_ml as sd
    >>> print(sd.explain("min_consumer").splitlines()[0])
    min_consumer (unacceptable)

    Raises:
        ValueError: if there is no such rule.
    """
    return _native.explain(text("rule", rule, "the name of a rule"))


def diff(
    a: Path, b: Path, *, rtol: float | None = None, atol: float | None = None
) -> list[dict[str, Any]]:
    """Which tensors of two files differ, and by how much: an object for each tensor.

    Files are states, safetensors, npy, npz or checkpoints, each of another kind if you like. With
    ``rtol`` or ``atol`` numbers are equal where ``|a - b| <= atol + rtol * |b|``.

    >>> import tempfile, pathlib, numpy as np, serdes_ml as sd
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> sd.save_file({"w": np.ones(2), "b": np.ones(2)}, folder / "a.sds")
    >>> np.savez(folder / "b.npz", w=np.ones(2), b=np.zeros(2))
    >>> [(one["name"], one["result"]) for one in sd.diff(folder / "a.sds", folder / "b.npz")]
    [('w', 'equal'), ('b', 'differs')]

    Raises:
        NotFound, Corrupt, TooNew, Unsupported: if one of the files cannot be read.
        ValueError: if a tolerance is below 0.
    """
    tolerance = None
    if rtol is not None or atol is not None:
        tolerance = number("rtol", rtol or 0.0), number("atol", atol or 0.0)
    found = _native.difference(place(a), place(b), tolerance)
    return cast("list[dict[str, Any]]", json.loads(found))
