"""The main samples of the reference run as they are shown, on an instance that `make run` started."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import requests

from tests import judges
from tests.clients import typescript_package
from tests.flows.conftest import ShopClient
from tests.flows.guide_reader import CURL, runs
from tests.stack import ROOT, Stack

pytestmark = pytest.mark.slow
# A part of the answer of each operation.
MAIN = {
    "create_qr_code": "qr_data",
    "list_qr_codes": "qr_",
    "pay_at_sandbox_bank": "paid",
    "get_payment": "succeeded",
    "list_payments": "pay_",
    "create_refund": "ref_",
    "retrieve_balance": "available",
    "create_payment_link": "pl_",
    "create_withdrawal": "wd_",
    "list_banks": "014",
    "advance_test_clock": "advanced",
}


@pytest.fixture
def shop(stack: Stack) -> ShopClient:
    """A merchant of its own, because other tests compare the balance of the demo."""
    made = json.loads(stack.manage("create_merchant", "--name", "Sampler", "--mode", "test", "--json"))
    return ShopClient(stack.base_url, made["secret_key"])


def with_curl(source: str, folder: Path) -> str:
    (folder / "curl").write_text(runs(sys.executable, "-IS", CURL))
    (folder / "curl").chmod(0o700)
    done = subprocess.run(
        ["sh", "-euc", source],
        env={"PATH": f"{folder}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def with_python(source: str, folder: Path) -> str:
    package = {"PYTHONPATH": str(ROOT / "clients" / "python" / "src")}
    done = subprocess.run(
        [sys.executable, "-c", source], env=package, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def with_typescript(source: str, folder: Path) -> str:
    program = typescript_package.project() / "main.sample.ts"
    program.write_text(source)
    done = judges.run_node(program, folder=typescript_package.project())
    assert done.returncode == 0, done.stderr
    return str(done.stdout)


@pytest.mark.parametrize(
    ("label", "run"), [("curl", with_curl), ("Python", with_python), ("TypeScript", with_typescript)]
)
def test_main_samples_run_as_they_are_shown(
    stack: Stack, shop: ShopClient, label: str, run: Callable[[str, Path], str], tmp_path: Path
) -> None:
    shown = requests.get(f"{stack.base_url}/docs/samples.json", timeout=60).json()
    codes = [shop.qr_code() for _ in range(3)]
    for code in codes[:2]:
        shop.pay(code)
        shop.wait_for_status(code, "succeeded")
    for operation, part in MAIN.items():
        (source,) = [each["source"] for each in shown[operation] if each["label"] == label]
        assert stack.secret_key in source and stack.base_url in source
        mine = source.replace(stack.secret_key, shop.secret_key).replace("pay_...", codes[0]["payment_id"])
        mine = re.sub(r"pay_\w{27}", codes[0]["payment_id"], mine)
        assert part in run(re.sub(r"000201[\w.]+", codes[2]["qr_data"], mine), tmp_path), operation
