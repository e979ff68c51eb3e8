"""Fields of what a bank says, where all of them are text."""

import re
from collections.abc import Mapping
from typing import Any


def shaped(told: Mapping[str, Any], shapes: Mapping[str, re.Pattern[str]]) -> dict[str, str]:
    """Those of `shapes`, each text of that shape as a whole. Raises ValueError, which names the field."""
    return {name: _shaped(name, told.get(name), shape) for name, shape in shapes.items()}


def _shaped(name: str, value: object, shape: re.Pattern[str]) -> str:
    if not isinstance(value, str) or not shape.fullmatch(value):
        raise ValueError(f"{name} is missing or malformed")
    return value
