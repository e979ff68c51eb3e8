"""The TypeScript client has the newest types, compiles strictly, and has a method for each operation."""

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from apidocs.code_samples import METHODS
from tests import judges, webhook_receiver
from tests.clients import openapi, typescript_package as package
from tests.clients.typescript_package import PACKAGE, PROGRAMS, Case, Outcome
from tests.stack import ROOT
from tests.webhook_receiver import Reply

pytestmark = pytest.mark.slow
MANIFEST: dict[str, Any] = json.loads((PACKAGE / "package.json").read_text())
LEFT_OUT = {
    "get_qr_code_card": "a picture; the client reads JSON",
    "get_payment_link_picture": "another",
    "download_sandbox_bank_statement": "a file for `manage.py import_statement`, which operators run",
}
NAMES = {
    operation: re.sub(r"_(\w)", lambda found: found[1].upper(), name)
    for operation, name in METHODS.items()
    if operation not in LEFT_OUT
}
# Second methods of the operations `list_events` and `get_payment`.
MORE = {"events.follow", "payments.waitUntilPaid"}


def test_every_operation_of_merchants_has_a_method_or_a_reason_without() -> None:
    assert NAMES.keys() | LEFT_OUT.keys() == openapi.merchant_operations().keys()
    assert not NAMES.keys() & LEFT_OUT.keys()


def test_every_method_belongs_to_an_operation() -> None:
    assert set(package.run("methods.ts")) == {*NAMES.values(), *MORE}


def example(operation: str) -> Reply:
    """The example of an answer in the OpenAPI document."""
    described = openapi.merchant_operations()[operation]
    responses = openapi.DOCUMENT["paths"][described.path][described.method.lower()]["responses"]
    if "204" in responses:
        return Reply(204, {}, b"")
    return Reply(body=json.dumps(responses["200"]["content"]["application/json"]["example"]).encode())


def case_of(operation: str) -> Case:
    """A call of the method of an operation: an id for each place in the path, then the body or the query."""
    ids = re.findall(r"\{(\w+)\}", openapi.merchant_operations()[operation].path)
    return Case(NAMES[operation], [*(f"its-{name}" for name in ids), {}], [example(operation)], take=1)


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Outcome]:
    return package.carry_out({operation: case_of(operation) for operation in NAMES})


@pytest.mark.parametrize("operation", NAMES)
def test_methods_send_their_operation_and_return_its_answer(
    outcomes: dict[str, Outcome], operation: str
) -> None:
    described, outcome = openapi.merchant_operations()[operation], outcomes[operation]
    assert outcome.error is None
    request = outcome.requests[0]
    path = re.sub(r"\{(\w+)\}", r"its-\1", described.path)
    assert (request.method, request.path.partition("?")[0]) == (described.method, f"/{operation}{path}")
    assert ("idempotency-key" in request.headers) == (described.method == "POST")
    assert bool(request.body) == bool(described.fields)
    answer = json.loads(example(operation).body or b"null")
    lists = [value for value in (answer or {}).values() if isinstance(value, list)]
    assert outcome.value == answer or outcome.value[:1] in [each[:1] for each in lists]


def test_client_compiles_strictly_and_its_types_refuse_mistakes(tmp_path: Path) -> None:
    configuration = {
        "extends": str(package.with_types() / "tsconfig.json"),
        "compilerOptions": {
            "noEmit": True,
            "rootDir": "/",
            "paths": {"thai-qr-payments": [str(package.with_types() / "src" / "index.ts")]},
        },
        "include": [str(package.with_types() / "src"), "types.ts"],
    }
    shutil.copy(PROGRAMS / "types.ts", tmp_path)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "tsconfig.json").write_text(json.dumps(configuration))
    package.compile_with("--project", tmp_path, folder=tmp_path)


def test_version_of_the_client_is_that_of_the_api() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    as_npm_writes_it = re.sub(r"\.?(dev|a|b|rc)(\d+)$", r"-\1.\2", version)
    assert MANIFEST["version"] == as_npm_writes_it
    assert f'"{as_npm_writes_it}"' in (PACKAGE / "src" / "version.ts").read_text()


def test_client_depends_on_nothing_and_is_built_by_the_programs_of_the_tests() -> None:
    assert "dependencies" not in MANIFEST
    judge = json.loads((ROOT / "requirements" / "judges" / "package.json").read_text())
    assert MANIFEST["devDependencies"].items() <= judge["dependencies"].items()
    assert MANIFEST["devDependencies"].keys() == {"openapi-typescript", "typescript"}
    sources = "".join(path.read_text() for path in (PACKAGE / "src").glob("*.ts"))
    assert [name for name in re.findall(r'from "([^"]+)"', sources) if not name.startswith("./")] == []


@pytest.mark.parametrize("path", ["", "/Thai/v1", "/Thai/v1/", "/v1", "/Thai"])
def test_oldest_node_requires_and_imports_the_client(path: str) -> None:
    """Node.js before 20.19 cannot `require` modules, so the package has them in both forms."""
    judges.require(judges.OLDEST_NODE)
    with webhook_receiver.running_receiver() as service:
        service.on("/v1/banks", Reply(body=b'{"banks": []}'))
        for name, statement in LOADED.items():
            program = package.project() / name
            program.write_text(f"{statement}\n{USE}")
            done = subprocess.run(
                [judges.OLDEST_NODE, program],
                env={"THAIQR_API_KEY": package.KEY, "THAIQR_BASE_URL": service.base_url + path},
                capture_output=True,
                text=True,
                check=False,
            )
            assert (done.stdout, done.stderr) == ("v20.0.0 TypeError\n[]\n", "")


LOADED = {
    "oldest.cjs": 'const { ThaiQR, webhooks } = require("thai-qr-payments");',
    "oldest.mjs": 'import { ThaiQR, webhooks } from "thai-qr-payments";',
}
USE = """
webhooks.unwrap("{}", {}).catch((error) => console.log(process.version, error.name));
new ThaiQR().banks.list().then(console.log);
"""


def test_readme_has_every_class_of_errors() -> None:
    errors = re.findall(r"export class (\w+)", (PACKAGE / "src" / "errors.ts").read_text())
    readme = (PACKAGE / "README.md").read_text()
    assert [name for name in errors if f"`{name}`" not in readme] == []


def test_every_error_type_of_the_service_has_a_class() -> None:
    table = (PACKAGE / "src" / "errors.ts").read_text().partition("const BY_TYPE")[2].partition("};")[0]
    error = openapi.SCHEMAS["Error"]["properties"]["error"]["properties"]["type"]
    assert set(re.findall(r"^  (\w+): \w+Error,$", table, re.MULTILINE)) == set(error["enum"])
