"""How many examples are generated: a tenth, all with `EXAMPLES_FACTOR=1`."""

import os

FACTOR = float(os.environ.get("EXAMPLES_FACTOR") or 0.1)
BY_DEFAULT = 100


def examples(whole: int) -> int:
    return max(int(whole * FACTOR), 2)
