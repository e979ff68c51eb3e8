"""Reads what was written to the security log."""

import json
from typing import Any

import pytest


def security_lines(caplog: pytest.LogCaptureFixture, event: str = "") -> list[dict[str, Any]]:
    """The lines written so far in this test, of one event if it is given."""
    lines = [json.loads(r.getMessage()) for r in caplog.get_records("call") if r.name == "security"]
    return [line for line in lines if event in ("", line["event"])]
