"""Amounts as people type them: baht with `--amount 150.00`, or satang with `--satang 15000`."""

import re
from typing import Annotated

import typer

_BAHT = re.compile(r"([0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.([0-9]{2}))?", re.ASCII)

Baht = Annotated[str | None, typer.Option("--amount", metavar="BAHT", help="Baht, such as 150 or 1,500.00.")]
Satang = Annotated[
    int | None, typer.Option("--satang", metavar="SATANG", min=1, help="Satang instead: 15000 is 150.00 THB.")
]


def satang_of(baht: str | None, satang: int | None) -> int:
    """The amount in satang. Raises ValueError unless exactly one is given and well-formed."""
    amount = optional_satang(baht, satang)
    if amount is None:
        raise ValueError("Give the amount: --amount 150.00 (baht) or --satang 15000.")
    return amount


def optional_satang(baht: str | None, satang: int | None, option: str = "--amount") -> int | None:
    """The amount in satang, or None if none is given. Raises ValueError."""
    if baht is not None and satang is not None:
        raise ValueError("Give either --amount (baht) or --satang, not both.")
    return satang if baht is None else _parse(baht, option)


def display(satang: int) -> str:
    """150000 is "1,500.00 THB"."""
    return f"{satang // 100:,}.{satang % 100:02d} THB"


def _parse(text: str, option: str) -> int:
    found = _BAHT.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{option} {text!r} is no amount in baht: write 150 or 150.00.")
    whole, rest = found.groups()
    return int(whole.replace(",", "")) * 100 + int(rest or 0)
