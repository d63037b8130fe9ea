"""Bytes as people write them: `"64MB"` <-> 67108864. Units are powers of 1024, as in Spark's settings."""

from __future__ import annotations

import datetime as dt
import re

from semistream.errors import UsageError

_FACTORS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_FORM = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)I?B?\s*", re.IGNORECASE)


def parse_bytes(value: int | str, name: str = "memory") -> int:
    """Bytes from a number or from text such as `64MB`, `1.5 GiB`, `512k`.

    >>> parse_bytes("64MB"), parse_bytes("1.5g"), parse_bytes(4096)
    (67108864, 1610612736, 4096)
    """
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise UsageError(f'{name}={value!r}: need a number of bytes or text such as "64MB", got {type(value).__name__}')
    if isinstance(value, str):
        form = _FORM.fullmatch(value)
        if form is None:
            raise UsageError(f'{name}={value!r}: need a number of bytes or text such as "64MB"')
        value = int(float(form[1]) * _FACTORS[form[2].upper()])
    if not 0 < value < 1 << 50:
        raise UsageError(f"{name}={value}: need more than 0 bytes and less than 1 PiB")
    return value


def format_bytes(count: int) -> str:
    """Short text for people.

    >>> format_bytes(67108864), format_bytes(1500), format_bytes(12)
    ('64.0 MB', '1.5 kB', '12 B')
    """
    size = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1024:
            return f"{count} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TB"


_SECONDS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|min|h|d)\s*")


def parse_seconds(value: str | float | dt.timedelta, name: str) -> float:
    """Seconds from a number, a timedelta, or text such as `500ms`, `2s`, `1h`, `7d`.

    >>> parse_seconds("500ms", "max_wait"), parse_seconds("7d", "older_than")
    (0.5, 604800.0)
    """
    seconds = -1.0
    if isinstance(value, dt.timedelta):
        seconds = value.total_seconds()
    elif isinstance(value, str) and (form := _DURATION.fullmatch(value)):
        seconds = float(form[1]) * _SECONDS[form[2]]
    elif isinstance(value, int | float) and not isinstance(value, bool):
        seconds = float(value)
    if not 0 <= seconds < float("inf"):
        raise UsageError(
            f'{name}={value!r}: need a time such as "500ms", "2s", "1h" or "7d", a number of seconds, or a timedelta'
        )
    return seconds
