"""What a linter and a comparer that are not ours say about the OpenAPI document."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests import judges
from tests.judges import DOCUMENT

pytestmark = pytest.mark.slow


RULES = """\
extends: [recommended]
rules:
  info-contact: error
  no-enum-type-mismatch: error
  no-invalid-media-type-examples: error
  no-invalid-parameter-examples: error
  no-invalid-schema-examples: error
  no-path-trailing-slash: error
  no-server-trailing-slash: error
  no-unused-components: error
  operation-operationId-url-safe: error
  operation-tag-defined: error
  path-not-include-query: error
  tag-description: error
"""


def lint(document: Path, folder: Path) -> Any:
    """What Redocly reports."""
    rules = folder / "redocly.yaml"
    rules.write_text(RULES)
    done = judges.run_node(
        judges.REDOCLY, "lint", document, f"--config={rules}", "--format=json", folder=folder
    )
    return json.loads(done.stdout)


def test_linter_finds_no_error_and_no_warning(tmp_path: Path) -> None:
    report = lint(DOCUMENT, tmp_path)
    assert report["problems"] == []
    assert report["totals"] == {"errors": 0, "warnings": 0, "ignored": 0}


def test_linter_compares_examples_with_schemas(tmp_path: Path) -> None:
    document = json.loads(DOCUMENT.read_text())
    body = document["paths"]["/v1/qr-codes"]["post"]["requestBody"]["content"]["application/json"]
    body["example"]["amount"] = "1500.00"
    wrong = tmp_path / "wrong.json"
    wrong.write_text(json.dumps(document))
    found = {problem["ruleId"] for problem in lint(wrong, tmp_path)["problems"]}
    assert found == {"no-invalid-media-type-examples"}


def test_no_change_since_the_last_release_breaks_clients(tmp_path: Path) -> None:
    """The document of the last release is that of its tag. A new major version may break clients."""
    tag = judges.last_release()
    if not tag:
        pytest.skip("There is no release yet to compare with")
    released = tmp_path / "released.json"
    released.write_text(judges.git("show", f"{tag}:docs/openapi.json"))
    if major_version(released) == major_version(DOCUMENT):
        assert judges.breaking_changes(released, DOCUMENT) == ""


def major_version(document: Path) -> str:
    return str(json.loads(document.read_text())["info"]["version"].partition(".")[0])


@pytest.fixture
def changed(tmp_path: Path) -> Any:
    """Writes the document without one part, named by its path."""

    def without(*path: str) -> Path:
        document = json.loads(DOCUMENT.read_text())
        part = document
        for name in path[:-1]:
            part = part[name]
        if isinstance(part, list):
            part.remove(path[-1])
        else:
            del part[path[-1]]
        file = tmp_path / "changed.json"
        file.write_text(json.dumps(document))
        return file

    return without


QR_CODE = ("components", "schemas", "QrCodeObject")


def test_removed_response_field_is_a_breaking_change(changed: Any) -> None:
    found = judges.breaking_changes(DOCUMENT, changed(*QR_CODE, "properties", "qr_data"))
    assert "removed" in found
    assert "qr_data" in found


def test_response_field_that_may_be_absent_is_a_breaking_change(changed: Any) -> None:
    assert "optional" in judges.breaking_changes(DOCUMENT, changed(*QR_CODE, "required", "qr_data"))


def test_removed_operation_is_a_breaking_change(changed: Any) -> None:
    assert "api" in judges.breaking_changes(DOCUMENT, changed("paths", "/v1/refunds", "post"))


def test_new_response_field_breaks_no_client(changed: Any) -> None:
    older = changed(*QR_CODE, "properties", "metadata")
    assert judges.breaking_changes(older, DOCUMENT) == ""
