"""The number of Hypothesis examples: all in CI, a fifth elsewhere."""

import os

IS_CI = bool(os.environ.get("CI"))
BY_DEFAULT = 100


def examples(in_ci: int) -> int:
    return in_ci if IS_CI else max(in_ci // 5, 3)
