"""The number of examples that are generated: all in CI, a fifth elsewhere, or as `EXAMPLES_FACTOR` says."""

import os

FACTOR = float(os.environ.get("EXAMPLES_FACTOR") or (1 if os.environ.get("CI") else 0.2))
BY_DEFAULT = 100


def examples(in_ci: int) -> int:
    return max(int(in_ci * FACTOR), 3)
