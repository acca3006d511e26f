"""Small tables for notebooks, every text of them escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence


def heading(text: object) -> str:
    """A line above a table."""
    return f"<div><b>{html.escape(str(text))}</b></div>"


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table whose cells are texts; what was more than `ROWS` is said."""
    head = "".join(f"<th>{html.escape(column)}</th>" for column in columns)
    given = list(rows)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>"
        for row in given[:ROWS]
    )
    more = len(given) - ROWS
    rest = f"<div>and {more} more</div>" if more > 0 else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"


ROWS = 50
"""Rows of a table that are shown."""
