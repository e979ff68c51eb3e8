"""The table of settings in the documentation, the example file and the code agree."""

import re
import runpy
from collections.abc import Mapping
from typing import Any

import pytest

from config import env
from tests.stack import ROOT

ROW = re.compile(r"^\| `(\w+)` \| (file)? ?\| (\S.*?) \| (\S.*?) \| (\S.*?) \|$", re.M)
EXAMPLE_LINE = re.compile(r"^(?P<comment># ?)?(?P<name>[A-Z_]+)=(?P<value>.*)$", re.M)
READ_ELSEWHERE = re.compile(r"""os\.environ(?:\.get\(|\[)"([A-Z_]+)"|"([A-Z_]+)" (?:not )?in os\.environ""")
PAGE = (ROOT / "docs" / "settings.md").read_text()
ROWS = {name: (file, default.strip("`")) for name, file, default, _, _ in ROW.findall(PAGE)}
FOR_COMPOSE = [
    "POSTGRES_PASSWORD", "THAIQR_OWNER_PASSWORD", "THAIQR_DATABASE_PASSWORD", "VALKEY_PASSWORD", "BACKUPS",
    "SITE", "STAFF_NETWORKS", "PROMETHEUS_NETWORKS",
]  # fmt: skip
EMPTY = {"required", "none", "empty"}


class Recorder(dict[str, str]):
    """An empty environment that knows what was looked for."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def __missing__(self, name: str) -> str:
        self.names.add(name)
        raise KeyError(name)


@pytest.fixture(scope="module")
def unset() -> tuple[Mapping[str, Any], set[str]]:
    """The settings of an empty environment, and the variables that were looked for."""
    recorder = Recorder()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(env.env, "ENVIRON", recorder)
        found = runpy.run_path(str(ROOT / "config" / "settings.py"))
    database = found["DATABASES"]["default"]
    more = {
        "DATABASE_MAX_AGE": database["CONN_MAX_AGE"],
        "DATABASE_HEALTH_CHECKS": database["CONN_HEALTH_CHECKS"],
    }
    return found | more | {"DATABASE_URL": "", "DATABASE_REPLICA_URL": "", "EMAIL_URL": ""}, recorder.names


def as_text(value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, list):
        return ",".join(map(str, value))
    if isinstance(value, dict):
        return ",".join(f"{job}={hour:%H:%M}" for job, hour in value.items())
    return f"{value:g}" if isinstance(value, float) else str(value)


def test_documentation_lists_exactly_the_settings_that_are_read(
    unset: tuple[Mapping[str, Any], set[str]],
) -> None:
    assert ROWS.keys() == unset[1]


def test_documented_defaults_are_those_of_the_code(unset: tuple[Mapping[str, Any], set[str]]) -> None:
    documented = {name: "" if default in EMPTY else default for name, (_, default) in ROWS.items()}
    assert documented == {name: as_text(unset[0][name]) for name in ROWS}


def test_documentation_marks_the_settings_that_files_may_give() -> None:
    assert {name for name, (file, _) in ROWS.items() if file} == set(env.SECRETS)


def test_documentation_names_variables_that_are_read_outside_of_the_settings() -> None:
    found = {
        one or other
        for path in (ROOT / "config").rglob("*.py")
        for one, other in READ_ELSEWHERE.findall(path.read_text())
    }
    assert found >= {"DATA_DIR", "SEPARATE_WORKERS", "PORT"}
    internal = {"DATABASE_URL_FILE", "DJANGO_SETTINGS_MODULE"}
    assert [name for name in found - internal if f"`{name}`" not in PAGE] == []


def test_example_file_has_each_setting_in_the_order_of_the_table_with_its_default() -> None:
    lines = EXAMPLE_LINE.findall((ROOT / "deploy" / ".env.example").read_text())
    assert [name for _, name, _ in lines] == [*ROWS, *FOR_COMPOSE]
    for comment, name, value in lines[: len(ROWS)]:
        default = ROWS[name][1]
        assert bool(comment) == (default != "required" and name != "ALLOWED_HOSTS"), name
        assert not comment or value == ("" if default in EMPTY else default), name


def test_example_file_ends_with_the_variables_of_the_compose_file() -> None:
    text = (ROOT / "deploy" / "compose.yaml").read_text()
    assert set(re.findall(r"\$\{(\w+)", text)) == set(FOR_COMPOSE)


@pytest.mark.slow
def test_ca_bundle_is_for_redis_too(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"CA_BUNDLE": "/ca.pem", "REDIS_URL": "rediss://one/0"}
    monkeypatch.setattr(env.env, "ENVIRON", given)
    found = runpy.run_path(str(ROOT / "config" / "settings.py"))
    assert found["REDIS_URL"] == "rediss://one/0?ssl_ca_certs=/ca.pem"
    assert found["CELERY_BROKER_URL"] == found["REDIS_URL"]
