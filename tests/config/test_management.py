"""Management commands: what all of them share."""

import io
import sys

import pytest

from config import management


def test_management_command_never_fails_on_characters_that_its_output_lacks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(shown, encoding="cp1252", write_through=True))
    monkeypatch.setattr(
        management, "execute_from_command_line", lambda _: sys.stdout.write("ร้าน: tq_live_1\n")
    )
    management.run("manage.py", "create_merchant")
    assert shown.getvalue() == rb"\u0e23\u0e49\u0e32\u0e19: tq_live_1" + b"\n"
