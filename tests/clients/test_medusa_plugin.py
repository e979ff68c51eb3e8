"""The plug-in for Medusa without Medusa: size, version, and what its package names."""

import json
import re

import pytest

from tests.clients.typescript_package import PACKAGE
from tests.stack import ROOT

PLUGIN = ROOT / "clients" / "medusa"
SOURCES = sorted((PLUGIN / "src").rglob("*.ts"))
MANIFEST = json.loads((PLUGIN / "package.json").read_text())
GUIDE = (ROOT / "docs" / "medusa.md").read_text()
MAX_LINES = 500


def test_plugin_stays_small() -> None:
    assert sum(source.read_text().count("\n") for source in SOURCES) <= MAX_LINES


def test_versions_of_the_plugin_and_of_its_client_are_those_of_the_api() -> None:
    client = json.loads((PACKAGE / "package.json").read_text())
    assert MANIFEST["version"] == client["version"]
    assert MANIFEST["dependencies"] == {client["name"]: client["version"]}
    assert MANIFEST["bundleDependencies"] == [client["name"]]
    assert f"thai-qr-payments-medusa-{client['version']}.tgz" in GUIDE


def test_compiler_is_strict() -> None:
    options = json.loads((PLUGIN / "tsconfig.json").read_text())["compilerOptions"]
    assert options["strict"]
    assert not [
        source for source in SOURCES if re.search(r"\bany\b[;,>)\]]|@ts-|eslint-disable", source.read_text())
    ]


@pytest.mark.parametrize("name", ["baseUrl", "apiKey", "webhookSecret", "expiryMinutes"])
def test_guide_names_each_option(name: str) -> None:
    assert f"`{name}`" in GUIDE
    assert re.search(rf"^  {name}\??: ", (PLUGIN / "src" / "service.ts").read_text(), re.MULTILINE)


def test_shop_of_the_tests_has_the_versions_that_the_plugin_needs() -> None:
    shop = json.loads((ROOT / "tests" / "systems" / "medusa" / "shop" / "package.json").read_text())
    for name, needed in MANIFEST["peerDependencies"].items():
        assert shop["dependencies"][name].startswith(needed.removeprefix("^").rpartition(".")[0])
