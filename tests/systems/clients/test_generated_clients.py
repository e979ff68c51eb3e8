"""Clients that generators make of the OpenAPI document compile, and make a whole purchase."""

import compileall
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import judges
from tests.flows.conftest import ShopClient

pytestmark = pytest.mark.slow
PROGRAMS = Path(__file__).with_name("clients")
MOST_FILES = 400
# A field with a default may be left out of a request.
TYPES = ("--default-non-nullable=false", "--output", "api.ts")
# The types of others are not checked again. Those of the API are, because they are no `.d.ts` file.
COMPILE = ("--strict", "--noEmitOnError", "--skipLibCheck", "--target", "es2022", "--module", "nodenext")
# The generator knows neither pictures nor PDF nor YAML.
NOT_JSON = {
    *(f"GET /v1/qr-codes/{{qr_code_id}}/{name}" for name in ("image", "card")),
    "GET /Thai/qr-codes/{qr_code_id}/image",
    "GET /v1/payment-links/{payment_link_id}/picture",
    "GET /openapi.yaml",
}


def check_refund(shop_client: ShopClient, printed: str) -> None:
    printed_refund: dict[str, Any] = json.loads(printed)
    refund = shop_client.get(f"/v1/refunds/{printed_refund['refund_id']}")
    assert (refund["status"], refund["amount"]) == ("completed", 60_000)
    # The client in Python writes times in another form.
    assert [
        name for name in refund if not name.endswith("_at") and printed_refund[name] != refund[name]
    ] == []


def login(shop_client: ShopClient) -> dict[str, str]:
    return {"BASE_URL": shop_client.base_url, "SECRET_KEY": shop_client.secret_key}


def test_typescript_client_makes_a_whole_purchase(shop_client: ShopClient, tmp_path: Path) -> None:
    judges.require(judges.OPENAPI_TYPESCRIPT)
    (tmp_path / "node_modules").symlink_to(judges.MODULES)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    shutil.copy(PROGRAMS / "purchase.ts", tmp_path)
    steps: list[tuple[Path, *tuple[str | Path, ...]]] = [
        (judges.OPENAPI_TYPESCRIPT, judges.DOCUMENT, *TYPES),
        (judges.TYPESCRIPT, *COMPILE, "--types", "node", "purchase.ts"),
        (tmp_path / "purchase.js",),
    ]
    for program, *arguments in steps:
        done = judges.run_node(program, *arguments, folder=tmp_path, **login(shop_client))
        assert done.returncode == 0, done.stdout + done.stderr
    check_refund(shop_client, done.stdout)


def test_python_client_makes_a_whole_purchase(shop_client: ShopClient, tmp_path: Path) -> None:
    generator = Path(sys.executable).with_name("openapi-python-client")
    generated = tmp_path / "thai_qr_payments_client"
    said = run(generator, "generate", "--path", judges.DOCUMENT, "--meta", "none", "--output-path", generated)
    assert set(re.findall("WARNING parsing (.+) within", said)) == NOT_JSON
    assert 100 < len(list(generated.rglob("*.py"))) < MOST_FILES
    assert compileall.compile_dir(generated, quiet=1)
    environment = login(shop_client) | {"PYTHONPATH": str(tmp_path)}
    check_refund(shop_client, run(sys.executable, PROGRAMS / "purchase.py", **environment))


def run(*command: str | Path, **environment: str) -> str:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # the generator runs ruff
    done = subprocess.run(
        command,
        env=os.environ | environment | {"PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=judges.SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout
