"""Numbers as people read them."""


def size(number: int) -> str:
    """Bytes in the largest unit of which there is one."""
    for unit, one in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if number >= one:
            return f"{number / one:.1f} {unit}"
    return f"{number} B"


def count(number: int, what: str) -> str:
    """So many of something."""
    return f"{number} {what}{'' if number == 1 else 's'}"
