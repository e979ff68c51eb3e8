"""How many examples are generated: a tenth, all with `EXAMPLES_FACTOR=1`."""

import os
from collections.abc import Sequence
from random import Random
from typing import TypeVar

FACTOR = float(os.environ.get("EXAMPLES_FACTOR") or 0.1)
BY_DEFAULT = 100
Case = TypeVar("Case")


def examples(whole: int) -> int:
    return max(int(whole * FACTOR), 2)


def some(cases: Sequence[Case]) -> list[Case]:
    """A sample that is always the same, of cases that another test tries all."""
    return Random(1).sample(cases, min(examples(len(cases)), len(cases)))
