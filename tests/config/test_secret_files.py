"""Secrets from files: NAME_FILE in place of NAME."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from config import env
from tests.commands import warm
from tests.stack import ROOT

SECRET = "0123456789" * 5


@pytest.fixture(autouse=True)
def forget_problems(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    monkeypatch.setattr(env, "invalid_variables", {})
    yield env.invalid_variables


def written(folder: Path, content: bytes) -> str:
    file = folder / "secret"
    file.write_bytes(content)
    return str(file)


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
def test_secret_comes_from_its_file_without_the_line_break(tmp_path: Path, end: bytes) -> None:
    path = written(tmp_path, SECRET.encode() + end)
    assert env.secrets_from_files({"SECRET_KEY_FILE": path, "SECRET_KEY": ""}) == {"SECRET_KEY": SECRET}
    assert env.invalid_variables == {}


@pytest.mark.parametrize("name", env.SECRETS)
def test_each_secret_may_come_from_a_file(tmp_path: Path, name: str) -> None:
    assert env.secrets_from_files({f"{name}_FILE": written(tmp_path, b"value")}) == {name: "value"}


def test_secret_that_is_given_twice_is_refused(tmp_path: Path) -> None:
    variables = {"SECRET_KEY_FILE": written(tmp_path, b"one"), "SECRET_KEY": "two"}
    assert env.secrets_from_files(variables) == {}
    assert env.invalid_variables == {"SECRET_KEY": "is given twice: by SECRET_KEY and by SECRET_KEY_FILE"}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "No such file or directory"),
        (b"", "no text of one line"),
        (b"\n", "no text of one line"),
        (b"one\ntwo\n", "no text of one line"),
        (b"\xff\xfe", "no text of one line"),
    ],
)
def test_unreadable_secret_file_is_named_with_the_reason(
    tmp_path: Path, content: bytes | None, reason: str
) -> None:
    path = str(tmp_path / "missing") if content is None else written(tmp_path, content)
    assert env.secrets_from_files({"SECRET_KEY_FILE": path}) == {}
    (problem,) = env.invalid_variables.items()
    assert problem[0] == "SECRET_KEY_FILE"
    assert path in problem[1]
    assert reason in problem[1]


@pytest.mark.slow
def test_service_with_secrets_in_files_starts_and_says_what_is_wrong_with_them(tmp_path: Path) -> None:
    files = {
        f"{name}_FILE": os.environ[name] for name in ("SECRET_KEY", "DATABASE_URL", "FIELD_ENCRYPTION_KEYS")
    }
    kept = {name: value for name, value in os.environ.items() if f"{name}_FILE" not in files}
    for variable, value in files.items():
        (tmp_path / variable).write_text(f"{value}\n")
        kept[variable] = str(tmp_path / variable)
    check = [*warm(), "manage.py", "check", "--tag", "settings"]

    def run(**changes: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            check, cwd=ROOT, env=kept | changes, capture_output=True, text=True, check=False
        )

    assert run().returncode == 0
    refused = run(REDIS_URL_FILE="/nowhere", SECRET_KEY=SECRET)
    assert refused.returncode == 1
    assert "REDIS_URL is given twice: by REDIS_URL and by REDIS_URL_FILE." in refused.stderr
    assert "SECRET_KEY is given twice" in refused.stderr
    assert SECRET not in refused.stderr
