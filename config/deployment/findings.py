"""What a check has found, as text for people and as JSON for programs."""

import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any

import orjson

SUBJECT_WIDTH, LINE_WIDTH = 30, 104
INDENT = " " * (10 + SUBJECT_WIDTH)


class Level(StrEnum):
    OK = "ok"
    WARNING = "warning"  # works, and needs somebody's attention
    PROBLEM = "problem"  # does not work, or can lose money or secrets


@dataclass(frozen=True, slots=True)
class Finding:
    """One line. advice: what to do; empty if nothing is to be done."""

    level: Level
    subject: str
    found: str
    advice: str = ""


ok = partial(Finding, Level.OK)
warning, problem = partial(Finding, Level.WARNING), partial(Finding, Level.PROBLEM)


def judge(
    subject: str, found: str, advice: str, *, is_problem: bool = False, is_warning: bool = False
) -> Finding:
    """The advice is for a problem or a warning."""
    if is_problem:
        return problem(subject, found, advice)
    return warning(subject, found, advice) if is_warning else ok(subject, found)


def as_text(findings: Sequence[Finding]) -> str:
    counts = Counter(each.level for each in findings)
    summary = f"{counts[Level.PROBLEM]} problems, {counts[Level.WARNING]} warnings, {counts[Level.OK]} ok"
    lines = []
    for each in findings:
        head = f"{each.level:<9} {each.subject:<{SUBJECT_WIDTH}}"
        lines += textwrap.wrap(each.found, LINE_WIDTH, initial_indent=head, subsequent_indent=INDENT)
        advice = f"-> {each.advice}" if each.advice else ""
        lines += textwrap.wrap(advice, LINE_WIDTH, initial_indent=INDENT, subsequent_indent=f"{INDENT}   ")
    return "".join(f"{line}\n" for line in [*lines, summary])


def as_json(findings: Sequence[Finding]) -> str:
    return json_of({"level": exit_level(findings), "findings": list(findings)})


def json_of(shown: Any) -> str:
    return orjson.dumps(shown, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()


def exit_level(findings: Sequence[Finding]) -> Level:
    found = {each.level for each in findings}
    return next((level for level in (Level.PROBLEM, Level.WARNING) if level in found), Level.OK)
