"""Environments: do the packages fit one another, and if not, what mends it?"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, cast

from . import _native
from ._arguments import flags
from ._errors import SerdesError
from ._paths import Path, paths_of, place
from ._verdicts import Verdict, check_all


@dataclass(frozen=True)
class Change:
    """The change of one package: ``to`` is a version, a specifier, or None for its removal."""

    package: str
    from_: str | None
    to: str | None


@dataclass(frozen=True)
class Remedy:
    """A way to make a problem go away: ``command`` makes the changes, or ``text`` says it."""

    changes: tuple[Change, ...]
    command: str | None
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Problem:
    """Something that does not fit, with what a user sees who runs the environment as it is."""

    rule: str
    packages: tuple[str, ...]
    found: str | None
    expected: str | None
    message: str
    symptom: str | None
    where: str | None
    remedies: tuple[Remedy, ...]

    def __str__(self) -> str:
        return f"{self.rule}: {self.message}"


@dataclass(frozen=True)
class Component:
    """A package that was judged, and how it was found."""

    name: str
    version: str
    metadata_version: str | None
    path: str | None
    found_by: str
    pjrt_version: str | None
    library: str | None


@dataclass(frozen=True)
class Unknown:
    """A package that could not be judged."""

    name: str
    version: str
    why: str


class DoesNotFit(SerdesError):
    """The packages of an environment do not fit one another; ``problems`` has each."""

    __module__ = "serdes_ml"

    problems: tuple[Problem, ...]

    def __init__(self, message: str = "", problems: tuple[Problem, ...] = ()) -> None:
        first = problems[0] if problems else None
        SerdesError.__init__(
            self,
            message,
            first.rule if first else None,
            first.found if first else None,
            first.expected if first else None,
            first.remedies[0].text if first and first.remedies else None,
        )
        self.problems = problems

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._message, self.problems)


@dataclass(frozen=True)
class Diagnosis:
    """The answer about one environment; true if its packages fit one another."""

    __module__ = "serdes_ml"

    environment: str
    kind: str
    python: str | None
    verdict: str
    components: tuple[Component, ...]
    problems: tuple[Problem, ...]
    warnings: tuple[str, ...]
    unknown: tuple[Unknown, ...]
    artifacts: tuple[Verdict, ...]
    _object: str = field(repr=False)
    _text: str = field(repr=False)

    def __bool__(self) -> bool:
        return self.verdict == "fits" and all(self.artifacts)

    def __str__(self) -> str:
        return "\n".join([self._text, *map(str, self.artifacts)])

    def to_dict(self) -> dict[str, Any]:
        """The object that ``serdes doctor --json`` prints."""
        return cast("dict[str, Any]", json.loads(self._object))

    def raise_if_broken(self) -> None:
        """Raise `DoesNotFit` if something does not fit: the first line of a training script.

        What is not known raises nothing.
        """
        if self.verdict == "does_not_fit":
            raise DoesNotFit(self._text, self.problems)

    @staticmethod
    def _of(found: dict[str, Any], text: str, artifacts: tuple[Verdict, ...]) -> Diagnosis:
        return Diagnosis(
            environment=found["environment"],
            kind=found["kind"],
            python=found["python"],
            verdict=found["verdict"],
            components=tuple(Component(**one) for one in found["components"]),
            problems=tuple(map(_problem, found["problems"])),
            warnings=tuple(f"{one['rule']}: {one['message']}" for one in found["warnings"]),
            unknown=tuple(Unknown(**one) for one in found["unknown"]),
            artifacts=artifacts,
            _object=json.dumps(found),
            _text=text,
        )


def _problem(found: dict[str, Any]) -> Problem:
    remedies = (
        Remedy(
            tuple(Change(one["package"], one["from"], one["to"]) for one in remedy["changes"]),
            remedy["command"],
            remedy["text"],
        )
        for remedy in found["remedies"]
    )
    return Problem(
        rule=found["rule"],
        packages=tuple(found["packages"]),
        found=found["found"],
        expected=found["expected"],
        message=found["message"],
        symptom=found["symptom"],
        where=found["where"],
        remedies=tuple(remedies),
    )


# The worst first: of a lock with forks, and of a root with several Pythons, it is the answer.
_WORST = ("does_not_fit", "unknown", "fits")
_TENSORFLOW = ("tensorflow", "tf-nightly")
# The kinds of artifacts that a framework alone loads; the others are judged without one.
_LOADED = {
    "tensorflow": {
        "saved_model",
        "meta_graph",
        "graph_def",
        "graph_def_text",
        "tensor_bundle",
        "checkpoint_v1",
        "checkpoint_state",
    },
    "jax": {"jax_export", "stablehlo"},
}


def doctor(
    path: Path | None = None,
    *,
    lock: Path | None = None,
    python: Path | None = None,
    artifacts: Path | Iterable[Path] = (),
    strict: bool = False,
    verify_files: bool = False,
) -> Diagnosis:
    """Tell whether the packages of an environment fit one another, without importing any of them.

    Without an argument it is the running environment. ``path`` is a virtual environment, a conda
    prefix, a folder of packages or the root of an image, ``lock`` a lock file, ``python`` an
    interpreter, which is not run. ``artifacts`` are judged for the TensorFlow and the jaxlib that
    are found, those of safetensors for the safetensors; what a framework loads that is not there is
    left out. ``strict`` makes problems of warnings, and ``verify_files`` compares the contents of
    files with the records of their packages.

    Of a lock with forks, and of a root with several Pythons, the worst answer is given.

    >>> import sys, serdes_ml as sd
    >>> sd.doctor().python == f"{sys.version_info[0]}.{sys.version_info[1]}"
    True

    Raises:
        ValueError: if it is no environment, or is damaged.
        OSError: if it cannot be read.
    """
    given = [one for one in (path, lock, python) if one is not None]
    if len(given) > 1:
        raise TypeError("expected one of path, lock and python")
    flags(strict=strict, verify_files=verify_files)
    files = [place(one) for one in paths_of("artifacts", artifacts)]
    at = place(given[0]) if given else sys.prefix
    text = _native.doctor(at, python is not None, files, strict, verify_files)
    answers = json.loads(text)
    if not given:
        # A prefix of the system may have several Pythons.
        own = f"{sys.version_info[0]}.{sys.version_info[1]}"
        answers = [one for one in answers if one["object"]["python"] == own] or answers
    answer = min(answers, key=lambda one: _WORST.index(one["object"]["verdict"]))
    found = answer["object"]
    judged = _judged(found, files)
    return Diagnosis._of(found, answer["text"], judged)


def _judged(found: dict[str, Any], files: list[str]) -> tuple[Verdict, ...]:
    """The verdicts on artifacts for the TensorFlow and the jaxlib that were found.

    A release whose verdicts are not known is added to what is unknown in ``found``.
    """
    if not files:
        return ()
    asked: dict[str, str] = {}
    for one in found["components"]:
        name, release = one["name"], _release(one["version"])
        if name in _TENSORFLOW or name.startswith("tensorflow-cpu"):
            asked.setdefault("tensorflow", release)
        elif name == "jaxlib":
            asked["jax"] = release
    for framework, release in list(asked.items()):
        try:
            if framework == "jax":
                check_all([], jax=release)
            else:
                check_all([], tensorflow=release)
        except ValueError as error:
            del asked[framework]
            name = "jaxlib" if framework == "jax" else framework
            why = f"artifacts are not judged for it: {error}"
            found["unknown"].append({"name": name, "version": release, "why": why})
            if found["verdict"] == "fits":
                found["verdict"] = "unknown"
    verdicts = check_all(files, tensorflow=asked.get("tensorflow"), jax=asked.get("jax"))
    absent = {kind for name, kinds in _LOADED.items() if name not in asked for kind in kinds}
    return tuple(one for one in verdicts if one.kind not in absent)


def _release(version: str) -> str:
    """The numbers of a version: ``2.9.0`` of ``2.9.0+cpu``."""
    return re.match(r"[0-9.]*", version)[0].rstrip(".")  # type: ignore[index]
