"""Thousands of generated requests, valid and invalid, check an instance against its OpenAPI document.

`EXAMPLES_FACTOR=20` generates over 10,000 in about ten minutes; `SCHEMATHESIS_SEED` chooses others.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.examples import FACTOR, examples
from tests.stack import ROOT, Stack, wait_until

SEED = int(os.environ.get("SCHEMATHESIS_SEED", "20261121"))
AT_LEAST = min(examples(2_000), 10_000)
SETTINGS = {
    "RATE_LIMIT": "0",
    "WEBHOOK_PROBE": "off",
    "WEBHOOK_ALLOW_HTTP": "0",
    "WEBHOOKS_PER_MERCHANT": "10000",
}
SECONDS = 1200 * max(FACTOR, 1)


@pytest.mark.slow
def test_service_conforms_to_openapi_document(tmp_path: Path) -> None:
    with Stack.on_shared_server(tmp_path / "data", **SETTINGS) as stack:
        # /readyz returns 503 until all workers have sent a heartbeat.
        wait_until(lambda: requests.get(f"{stack.base_url}/readyz", timeout=60).ok, SECONDS)
        found = ask(stack, tmp_path)
    print(f"seed {SEED}: {found['test_cases']}")  # noqa: T201 - to run the same cases again
    assert found["failures"] == found["errors"] == []
    assert {phase["status"] for phase in found["phases"].values()} == {"success"}
    assert found["operations"]["tested"] == found["operations"]["total"]
    assert found["test_cases"]["generated"] >= AT_LEAST


def ask(stack: Stack, folder: Path) -> dict[str, Any]:
    """Run schemathesis; return its report. Its output is in `schemathesis.log`."""
    report, log = folder / "report.json", folder / "schemathesis.log"
    config = folder / "schemathesis.toml"
    config.write_text(_with_fewer_examples((ROOT / "tests/systems/openapi/schemathesis.toml").read_text()))
    command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(config), "run"]
    options = ["--checks", "all", "--seed", str(SEED), "--report-json-path", str(report)]
    known = {"KEY": stack.secret_key, "QR_DATA": waiting_code(stack)}
    with log.open("w") as messages:
        subprocess.run(
            [*command, f"{stack.base_url}/openapi.json", *options],
            cwd=ROOT,
            env=os.environ | known,
            stdout=messages,
            stderr=subprocess.STDOUT,
            timeout=SECONDS,
            check=False,
        )
    assert report.exists(), log.read_text()
    reported: dict[str, Any] = json.loads(report.read_text())
    return reported


def _with_fewer_examples(config: str) -> str:
    return re.sub(r"(?<=max-examples = )\d+", lambda number: str(examples(int(number[0]))), config)


def waiting_code(stack: Stack) -> str:
    """The payload of a code that the sandbox bank can pay."""
    response = requests.post(
        f"{stack.base_url}/v1/qr-codes",
        json={"amount": 150_000, "currency": "THB"},
        headers={"Authorization": f"Bearer {stack.secret_key}"},
        timeout=60,
    )
    return str(response.json()["qr_data"])
