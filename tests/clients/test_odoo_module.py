"""The module for Odoo without Odoo: size, version, texts, amounts and signatures."""

import ast
import importlib.util
import re
import time
import tomllib
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import pytest
from thaiqr import webhooks

from tests.stack import ROOT

MODULE = ROOT / "clients" / "odoo" / "payment_thai_qr"
SOURCES = sorted(MODULE.rglob("*.py"))
PLACE = re.compile(r"%(?:\(\w+\))?s")
SECRET = "whsec_" + "b2Rvb29k" * 5
MAX_LINES = 700


def load_service() -> ModuleType:
    spec = importlib.util.spec_from_file_location("odoo_service", MODULE / "service.py")
    assert spec and spec.loader
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


service: Any = load_service()


def texts() -> set[str]:
    """The texts for people in the sources and views."""
    found = set()
    for source in SOURCES:
        for node in ast.walk(ast.parse(source.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "_":
                found.add(ast.literal_eval(node.args[0]))
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                # The label and the help of a field.
                values = [*node.args[:1], *(each.value for each in node.keywords if each.arg == "help")]
                is_field = isinstance(node.func.value, ast.Name) and node.func.value.id == "fields"
                found |= {ast.literal_eval(each) for each in values if is_field}
    for button in ElementTree.parse(MODULE / "views" / "payment_views.xml").iter("button"):
        found.add(button.attrib["string"])
    return found


def translations() -> dict[str, str]:
    pairs = re.findall(r'^msgid "(.+)"\nmsgstr "(.+)"$', (MODULE / "i18n" / "th.po").read_text(), re.M)
    return dict(pairs)


def test_module_stays_small() -> None:
    lines = [path.read_text().count("\n") for path in (*SOURCES, *MODULE.rglob("*.xml"))]
    assert sum(lines) <= MAX_LINES


def test_version_of_the_module_is_that_of_the_api() -> None:
    """Odoo takes numbers only."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    manifest = ast.literal_eval((MODULE / "__manifest__.py").read_text())
    assert manifest["version"] == re.match(r"[\d.]*\d", version.partition(".dev")[0])[0]  # type: ignore[index]
    assert all((MODULE / name).is_file() for name in manifest["data"])


def test_each_text_is_there_in_thai() -> None:
    known = translations()
    assert texts() <= set(known)
    for text, thai in known.items():
        assert sorted(PLACE.findall(text)) == sorted(PLACE.findall(thai))


def test_only_requests_is_imported_besides_odoo() -> None:
    imported = set()
    for source in SOURCES:
        for node in ast.walk(ast.parse(source.read_text())):
            if isinstance(node, ast.Import):
                imported |= {each.name.partition(".")[0] for each in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                imported.add(str(node.module).partition(".")[0])
    standard = {
        "base64",
        "contextlib",
        "datetime",
        "hashlib",
        "hmac",
        "json",
        "logging",
        "re",
        "secrets",
        "time",
    }
    assert imported - standard == {"odoo", "psycopg2", "requests"}


@pytest.mark.parametrize(
    ("baht", "satang"), [(150.25, 15_025), (0.29, 29), (1.1, 110), (19.99, 1_999), (2_000_000.0, 200_000_000)]
)
def test_baht_become_satang(baht: float, satang: int) -> None:
    assert service.satang(baht) == satang


@pytest.mark.parametrize("secret", [SECRET, "a secret of sixteen characters"])
def test_message_of_the_service_is_genuine(secret: str) -> None:
    body, headers = webhooks.signed_message("webhook.ping", {}, secret, event_id="evt_1")
    named = {name.lower(): value for name, value in headers.items()}
    assert service.is_genuine(secret, named, body)
    old_and_new = named | {"webhook-signature": f"v1,AAAA {named['webhook-signature']}"}
    assert service.is_genuine(secret, old_and_new, body)


def test_other_messages_are_not_genuine() -> None:
    body, headers = webhooks.signed_message("webhook.ping", {}, SECRET, event_id="evt_1")
    named = {name.lower(): value for name, value in headers.items()}
    assert not service.is_genuine(SECRET, named, body + b" ")
    assert not service.is_genuine("whsec_" + "b3RoZXIh" * 5, named, body)
    assert not service.is_genuine("", named, body)
    assert not service.is_genuine(None, named, body)
    assert not service.is_genuine(SECRET, {}, body)
    assert not service.is_genuine(SECRET, named | {"webhook-id": "evt_2"}, body)
    for sent_at in (str(int(time.time()) - 301), str(int(time.time()) + 310), "now", "", "²"):
        assert not service.is_genuine(SECRET, named | {"webhook-timestamp": sent_at}, body)
    for signature in ("", "v1,", "v2" + named["webhook-signature"][2:], "v1,\N{SNOWMAN}"):
        assert not service.is_genuine(SECRET, named | {"webhook-signature": signature}, body)
