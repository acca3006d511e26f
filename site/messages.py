"""Extracts the messages of errors from the sources: their texts, their causes, and remedies.

A variant of an error type has its message in `#[error("…")]`, and its doc comment says when it
occurs. The other messages are string literals that say what was found, what was expected, or what
to do; the messages of the Python package are those of its exceptions. A page has the messages of
one crate, each in a section, so that a search for a message finds its section by the title.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import NamedTuple

DOCUMENTED = re.compile(
    r"((?:^ *///[^\n]*\n)+)(?: *#\[(?!error)[^\n]*\n)*"
    r' *#\[error\(\s*"((?:[^"\\]|\\.)*)"[^\n]*(?:\n(?! *(?:///|\w+ ?[,({]))[^\n]*)*\n'
    r"(?: *#\[[^\n]*\n)* *(?:pub (?:struct|enum) )?(\w+)",
    re.MULTILINE | re.DOTALL,
)
FAILURE = re.compile(
    r'Failure::(?:new|no|of)\(\s*(?:format_args!\(|format!\()?\s*"((?:[^"\\]|\\.)*)"', re.DOTALL
)
# The parts of a source that matter here: comments, attributes, characters, strings.
TOKEN = re.compile(
    r"""//[^\n]*|#!?\[(?:[^\[\]"]|"(?:[^"\\]|\\.)*"|\[[^\]]*\])*\]|b?'(?:[^'\\\n]|\\[^\n])[^'\n]{0,8}'"""
    r"""|r(?P<hashes>#+)".*?"(?P=hashes)|"(?P<text>(?:[^"\\]|\\.)*)\"""",
    re.DOTALL,
)
LONGEST = 400
SAYS = re.compile(r"; |\bexpected\b|\bfound\b|\bcannot\b|\bdid you mean\b|^there is no ")

# Messages of clap, the parser of command lines.
USAGE = {
    "unexpected argument '…' found": "Run the command with `--help`: it lists every option. A value"
    " that begins with a dash goes behind `--`.",
    "unrecognized subcommand '…'": "Run `serdes --help`: it lists the commands.",
    "the following required arguments were not provided: …": "Give the arguments that are listed;"
    " the line `Usage` shows their order.",
    "invalid value '…' for '…': …": "Give one of the values that the end of the message names, or"
    " that `--help` lists for the option.",
    "a value is required for '…' but none was supplied": "Give the option its value:"
    " `--option VALUE` or `--option=VALUE`.",
    "the argument '…' cannot be used with '…'": "Leave one of the two options out.",
    "unexpected value '…' for '…' found; no more were expected": "Leave the value out, or give the"
    " option once.",
    "the argument '…' cannot be used multiple times": "Give the option once.",
    "'…' requires a subcommand but one was not provided": "Name one of the subcommands that are"
    " listed.",
}

# Messages that the command composes from parts.
TOGETHER = {
    "… is no safetensors file, index of shards, checkpoint prefix, npy, npz, device state or file"
    " of torch.save": "Check that it is the file that was meant: `serdes inspect FILE` says what it"
    " is, and [Kinds](../cli.md#kinds) lists what is read.",
    "what follows `host:` is `…` (option of the host-memory plug-in: …), expected devices=N and"
    " memory=BYTES, separated by commas": "Write `host:devices=4,memory=4096`, or `host`.",
    "cannot read …: Is a directory (os error 21); name a file in it, or the prefix of a"
    " checkpoint": (
        "Name a file in the folder. A checkpoint of TensorFlow is named by its prefix, as in"
        " `folder/ckpt-1`."
    ),
    "… version … is not one that this build reads and writes (…)": "Choose a number of the range in"
    " brackets, or `current`, `week-4-old` or `minimum`; `serdes versions` lists them."
    " [Versions and days](../concepts/versions.md) explains the choice.",
    "….toml:…: key with no value, expected `=`": "Correct the line of `serdes.toml`: a key, `=`, a"
    " value. [Configuration](../ci.md#configuration) has an example.",
    "….toml:…: paths is a number; expected a list of texts": "Correct the value in"
    " `serdes.toml`; `serdes config --schema` prints what each key takes.",
    "host is no PJRT plug-in: no framework can be asked about it": "Name the library of a PJRT"
    " plug-in: `serdes plugin check ./plugin.so --for all`. `host` is what the command takes where"
    " no plug-in is named; no framework loads it.",
    "there is no kind …; the kinds are …": "Give `--kind` one of the names that are listed; without"
    " it the kind is told by the content. [Kinds](../cli.md#kinds) explains them.",
    "there is no rule …; the rules are …": "Give one of the names that are listed;"
    " `serdes explain` prints them, and [Rules](../rules.md) has a page for each.",
    "TensorFlow … has no operation …, and no other known release has it": "Check the name;"
    " `serdes ops RELEASE` lists the operations. An operation of your own library is in no"
    " release: `--custom-op NAME` has `check` count it as there.",
}

# Messages of the operating system, which end many messages.
SYSTEM = {
    "…: No such file or directory (os error 2)": "Check the path, and that the folder is there.",
    "cannot create …: No such file or directory (os error 2)": "The folder of the file is not"
    " there. Make it, or name a file in one that is.",
    "…: Permission denied (os error 13)": "Give your user the right to read the file, or to write"
    " into the folder: a file is replaced by a rename in its folder.",
    "…: Is a directory (os error 21)": "Name a file in it. A checkpoint is named by its prefix.",
    "…: No space left on device (os error 28)": "Make room, and save again: what was there before"
    " is whole, and nothing of the new file is left.",
    "cannot listen on …: Address already in use (os error 98)": "Another process listens there."
    " Stop it, or choose another port; `--listen 127.0.0.1:0` takes a free one.",
    "no connection to …: tcp connect error: Connection refused (os error 111)": "Nothing listens at"
    " the address. Start the server, and check host and port.",
    "no connection to …: dns error: failed to lookup address information": "The name of the host is"
    " not known here. Check it, or give an address.",
}

# The subject of each crate's errors, and the remedy for messages that do not name one.
ABOUT = {
    "serdes": (
        "versions and messages",
        "Read the message: a version in it says which side to upgrade."
        " [Versions and days](../concepts/versions.md) explains the numbers.",
    ),
    "serdes-abi": (
        "layouts of C structs",
        "Correct the file of layouts;"
        " [the form of layouts](../abi.md#the-form-of-layouts) specifies it.",
    ),
    "serdes-check": (
        "verdicts",
        "Run `serdes explain RULE` for the rule that stands beside the"
        " message, or look it up among the [rules](../rules.md).",
    ),
    "serdes-checkpoints": (
        "TensorFlow's checkpoints",
        "Copy the checkpoint anew, all of its files,"
        " or save it again; the file breaks a rule of its format"
        " ([corrupt](../rules/corrupt.md)).",
    ),
    "serdes-cli": (
        "the command",
        "Run the command with `--help`: it has every option, with"
        " examples. [The command](../cli.md) says what they mean together.",
    ),
    "serdes-device-state": (
        "device states",
        "Run `serdes verify STATE`: it says what is damaged, and `serdes restore --salvage` takes"
        " what is whole. A version in the message says which side to upgrade.",
    ),
    "serdes-doctor": (
        "environments",
        "Run `serdes doctor` on another form of the environment;"
        " [Check an environment](../doctor.md#inputs) lists them.",
    ),
    "serdes-files": (
        "files",
        "Make room, or the folder writable, and save again: what was there before is whole.",
    ),
    "serdes-graph-format": (
        "the text of graphs",
        "Write the graph again with TensorFlow, as bytes or as text: it is not in the form of its"
        " messages ([corrupt](../rules/corrupt.md)).",
    ),
    "serdes-graph-index": (
        "the nodes and functions of TensorFlow's graphs",
        "Export the model again: the graph breaks a rule of its"
        " format ([corrupt](../rules/corrupt.md)).",
    ),
    "serdes-graphs": (
        "TensorFlow's graphs",
        "Export the model again: the graph breaks a rule of its"
        " format ([corrupt](../rules/corrupt.md)).",
    ),
    "serdes-host-memory": (
        "the plug-in over the memory of the host",
        "Write `host:devices=N,memory=BYTES`, or `host`; `serdes plugin check --help` shows it.",
    ),
    "serdes-jax-artifacts": (
        "files of `jax.export`",
        "Export the function again; the [rules](../rules.md) say what each release reads.",
    ),
    "serdes-library-file": ("shared libraries", "Name a shared library of this machine."),
    "serdes-operations": (
        "operations of TensorFlow",
        "Name a release whose operations are known (`serdes matrix` lists them), or give a list of"
        " operations with `--ops FILE`.",
    ),
    "serdes-pjrt": (
        "PJRT plug-ins",
        "Ask `serdes plugin check LIB --for RELEASE` which releases the"
        " plug-in fits; [PJRT](../pjrt.md) has the rules.",
    ),
    "serdes-proxy": (
        "client and server",
        "Ask the server with `serdes negotiate ADDRESS`;"
        " [Run a server](../operating.md) has tokens, certificates and limits.",
    ),
    "serdes-plugin": (
        "the SDK for plug-ins",
        "Run `serdes plugin verify LIB`: it names the function"
        " that does something else than the C API says.",
    ),
    "serdes-python": (
        "arguments of the Python package",
        "Give the call what the message expects; [Use it from Python](../python.md) has each call.",
    ),
    "serdes-releases": (
        "the table of releases",
        "Correct the table; [its page](../contributing/releases.md) has the steps.",
    ),
    "serdes-report": (
        "reports",
        "Write the baseline again with `--write-baseline`, or correct the"
        " line that the message names.",
    ),
    "serdes-stablehlo": (
        "programs of StableHLO",
        "Export the program again, for the oldest release that is to read it.",
    ),
    "serdes-stream-executor": (
        "StreamExecutor plug-ins",
        "Run `serdes plugin verify LIB`, and correct"
        " the plug-in; [The plug-in ABI](../abi.md) has the rules.",
    ),
    "serdes-tensors": (
        "files of tensors",
        "Copy the file anew, or write it again with the tool that"
        " made it. `serdes inspect FILE` says what it is.",
    ),
    "serdes-version-registry": (
        "`versions.toml`",
        "Correct the entry that the message names;"
        " [Evolve a wire format](../evolving.md) has the rules.",
    ),
    "serdes-wire": (
        "protobuf messages",
        "Write the message again: its bytes are damaged ([corrupt](../rules/corrupt.md)).",
    ),
}
# Crates whose messages only developers of serdes see.
NOT_FOR_USERS = {"serdes-testkit", "serdes-xtask"}
# Messages of the Python package that the library below it composes.
FROM_BELOW = {
    "the state has no tensor …": "Ask for a name that is there: `file.keys()` and `serdes inspect"
    " FILE` list them.",
    "…: … matches no name of a tensor": "Give `only=` a name or a pattern (`encoder/*`) that the"
    " file has: `file.keys()` and `serdes inspect FILE` list the names.",
    "FileExistsError: [Errno 17] File exists: …": "A file has the name of the folder that was"
    " given. Name another folder for the steps of the run, or move the file.",
    "the state has no leaf …": "Load a tree whose names the state has: `sd.inspect(PATH)` lists"
    " them. [Restoring into a tree](../python.md) says how names are made.",
    "cannot read …: is a directory": "Name a file in the folder. A checkpoint of TensorFlow is"
    " named by its prefix, a checkpoint of Orbax by the folder of its step.",
    "… version … is not one that this build reads and writes (…)": "Choose a number of the range in"
    " brackets, or `current`, `week-4-old` or `minimum`.",
}
PYTHON = (
    "Read the message: it says what was found. [Use it from Python](../python.md) has each call."
)


class Message(NamedTuple):
    """A message with `…` for its variable parts, its cause, and its remedy."""

    text: str
    meaning: str
    remedy: str


def plain(literal: str) -> str:
    """Returns the text of a string literal of Rust, with `…` for variable parts."""
    joined = re.sub(r"\\\n\s*", "", literal)
    joined = joined.replace('\\"', '"').replace("\\n", " ").replace("\\\\", "\\")
    joined = joined.replace("{{", "\0").replace("}}", "\1")
    shown = re.sub(r"\{[^}]*\}", "…", " ".join(joined.split()))
    return shown.replace("\0", "{").replace("\1", "}")


def documentation(comment: str) -> str:
    """Returns the first paragraph of a doc comment, without links."""
    lines = [line.strip().removeprefix("///").strip() for line in comment.strip().splitlines()]
    paragraph = " ".join("\n".join(lines).split("\n\n")[0].split())
    return re.sub(r"\[(`?[^\]]+`?)\](?:\([^)]*\)|\[[^\]]*\])?", r"\1", paragraph)


def remedy(text: str, otherwise: str) -> str:
    """Returns the remedy in the message, or else the one for the whole crate."""
    said = text.rpartition("; ")[2] if "; " in text else ""
    if len(re.findall(r"[a-z]+", said)) < 2:
        wanted = re.search(r"\bexpected (.*?)(?:;|$)", text)
        if wanted is None or not re.search(r"\w", wanted[1]):
            return otherwise
        return f"Give what was expected: {escaped(wanted[1])}. {otherwise}"
    if said.startswith("expected "):
        return f"Give what was expected: {escaped(said.removeprefix('expected '))}."
    return f"As the message says: {escaped(said)}."


def escaped(text: str) -> str:
    """Escapes the Markdown in a text."""
    return re.sub(r"([|<>\\*_`\[\]{}#])", r"\\\1", text)


def sentence(text: str) -> str:
    """Returns a text with a full stop at its end."""
    return text if text.endswith((".", ":", "`")) else f"{text}."


def is_message(text: str) -> bool:
    """Returns True for a text with words of its own that says what is wrong, or what to do."""
    if re.match(r"[,;:.)]|and |of ", text):
        return False  # The end of another message.
    if text.endswith("."):
        return False  # The help of an option or a metric; messages end without a full stop.
    return len(re.findall(r"[A-Za-z]{2,}", text)) > 3 and SAYS.search(text) is not None


def in_sources(folder: Path, otherwise: str) -> list[Message]:
    """Returns the messages in the sources of a crate, without those of its tests."""
    rows: dict[str, Message] = {}
    for path in sorted(folder.rglob("*.rs")):
        if path.stem == "tests" or "tests" in path.relative_to(folder).parts:
            continue
        if path.match("check/src/rule/table.rs") or "generated" in path.parts:
            continue  # The pages of the rules have these messages.
        source = path.read_text().split("#[cfg(test)]\nmod ")[0]
        for comment, literal, _ in DOCUMENTED.findall(source):
            text = plain(literal)
            if len(text.replace("…", "")) > 12:
                rows[text] = Message(text, documentation(comment), remedy(text, otherwise))
        for literal in FAILURE.findall(source):
            text = plain(literal)
            if len(text.replace("…", "")) > 12:
                rows[text] = Message(text, "", remedy(text, otherwise))
        for token in TOKEN.finditer(source):
            text = plain(token["text"] or "")
            if len(text) < LONGEST and is_message(text):
                rows.setdefault(text, Message(text, "", remedy(text, otherwise)))
    return sorted(rows.values())


def text_of(node: ast.expr, texts: dict[str, str]) -> str:
    """Returns the text of a Python expression, with `…` for variable parts."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            str(piece.value) if isinstance(piece, ast.Constant) else "…" for piece in node.values
        )
    return texts.get(node.id, "…") if isinstance(node, ast.Name) else "…"


def texts_in(function: ast.AST) -> dict[str, str]:
    """Returns the texts that a function assigns to names."""
    return {
        node.targets[0].id: text_of(node.value, {})
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant | ast.JoinedStr)
    }


# Functions of the package that raise `WrongType`. Their arguments are the name of an argument, the
# argument, and what was expected.
CHECKS = {"wrong_type", "text", "whole", "number"}


def raised_in(function: ast.AST) -> list[tuple[str, str]]:
    """Returns the messages that a Python function raises, each with its exception's name."""
    found = []
    texts = texts_in(function)
    for node in ast.walk(function):
        match node:
            case ast.Call(func=ast.Name(id=name), args=[what, _, expected]) if name in CHECKS:
                said = f"{text_of(what, texts)} is …; expected {text_of(expected, texts)}"
                found.append((said, "WrongType"))
            case ast.Raise(
                exc=ast.Call(func=raised, args=[ast.Constant() | ast.JoinedStr() as said, *_])
            ) if ast.unparse(raised) not in CHECKS:
                found.append((text_of(said, texts), ast.unparse(raised)))
    return found


def in_python(root: Path) -> list[Message]:
    """Returns the messages of the Python package."""
    rows: dict[str, Message] = {}
    for path in sorted((root / "python/serdes_ml").glob("*.py")):
        functions = (
            node
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.FunctionDef)
        )
        for said, raised in (row for function in functions for row in raised_in(function)):
            text = " ".join(said.split())
            if len(text.replace("…", "")) > 8 and text != "… is …; expected …":
                rows[text] = Message(text, f"Raised as `{raised}`.", remedy(text, PYTHON))
    rows |= {text: Message(text, "", do) for text, do in FROM_BELOW.items()}
    return sorted(rows.values())


def page(title: str, about: str, rows: list[Message]) -> str:
    """Returns a page of messages, with a section for each."""
    lines = [
        "---\nhide: [toc]\n---\n",
        f"# Messages of {title}",
        "",
        f"About {about}. `…` stands for what differs. [All messages](../reference/messages.md)",
        "",
    ]
    for row in rows:
        lines += [f"## {escaped(row.text.replace('`', ''))}", ""]
        if row.meaning:
            lines += [row.meaning.replace("<", "\\<"), ""]
        lines += [f"**What to do.** {row.remedy}", ""]
    return "\n".join(lines)


def pages(root: Path) -> dict[str, str]:
    """Returns the pages of messages, and the page that lists them, by their paths."""
    found: dict[str, tuple[str, list[Message]]] = {}
    for folder in [root / "src", *sorted((root / "crates").glob("*/src"))]:
        crate = "serdes" if folder.parent == root else f"serdes-{folder.parent.name}"
        if crate in NOT_FOR_USERS:
            continue
        about, otherwise = ABOUT.get(crate, ("", ""))
        rows = in_sources(folder, otherwise)
        if bool(rows) != (crate in ABOUT):
            raise ValueError(
                f"site/messages.py: {crate} has {len(rows)} messages; ABOUT has a row for each"
                " crate with messages, and for no other"
            )
        if crate == "serdes-cli":
            rows += [Message(text, "The command line is wrong.", do) for text, do in USAGE.items()]
            rows += [Message(text, "", do) for text, do in TOGETHER.items()]
            rows += [Message(text, "The system says so.", do) for text, do in SYSTEM.items()]
        if rows:
            found[crate] = about, rows
    found["serdes_ml"] = "the Python package", in_python(root)
    made = {f"messages/{name}.md": page(name, *rest) for name, rest in found.items()}
    made["reference/messages.md"] = "\n".join(
        [
            "# Messages",
            "",
            "The messages of errors, a section each: when it comes, and what to do. Search for the"
            " words of the message in front of you; `…` stands for what differs.",
            "",
            "| page | about | messages |",
            "|---|---|---|",
            *(
                f"| [{name}](../messages/{name}.md) | {about} | {len(rows)} |"
                for name, (about, rows) in found.items()
            ),
            "",
            "What `serdes check` finds in an artifact has a [rule](../rules.md) each; so has what"
            " [`serdes doctor`](../doctor.md#rules) finds, and what"
            " [`serdes plugin verify`](behaviours.md) tries.",
        ]
    )
    return made
