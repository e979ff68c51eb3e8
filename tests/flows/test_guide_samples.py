"""Every sample of the guide and of the README runs, or is a sample of output whose kind says so."""

import json
import os
import re
import shutil
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from random import Random, SystemRandom
from tempfile import mkdtemp
from typing import Any

import pytest
import requests

import banks
from apidocs.guide.pages import PAGES
from config.devstack import ports
from core.clock import BANGKOK
from core.errors import CATALOGUE
from payments.shapes import UnmatchedMoney
from sandbox import cards, orders, scenarios
from tests import judges
from tests.clients import typescript_package
from tests.flows import guide_reader
from tests.flows.conftest import SECRET, ShopClient, pay_from_an_unknown_account
from tests.flows.examples import BODY, NEW, signed
from tests.flows.guide_reader import COMMANDS, Reader, blocks
from tests.stack import ROOT, Stack, wait_until
from tests.webhook_receiver import Receiver

README = ROOT / "README.md"
# Those in Thai have the same samples (tests/apidocs/test_thai_pages.py).
FILES = {name: page.file for name, page in PAGES.items() if page.language == "en"} | {"the README": README}
NEEDED = {"start/php": "php", "start/go": "go", "start/typescript": str(judges.TYPESCRIPT)}
# Samples that are not run: output whose values differ each time, and the first lines of a message.
SHOWN = {"json", "text", "http", guide_reader.OUTPUT}
# Parts of programs and a table, which tests/flows/test_guide.py runs.
TUTORIAL = {("webhooks-tutorial", language) for language in ("python", "js", "php", "go", "sql")}
# The message to LINE is looked at in a test of its own.
NOT_HERE = {"recipes/line-message"}
# Pages on which a reader takes payments, and what must become of those. Nobody opens the link sent to LINE.
TAKE_A_PAYMENT = {
    "the README": {"succeeded"},
    **{name: {"succeeded"} for name in PAGES if name.startswith(("start/", "recipes/"))},
    "integration": {"succeeded"},
    "webhooks-tutorial": {"succeeded"},
    "recipes/line-message": {"pending"},
}
RUN = [
    name
    for name, file in FILES.items()
    if name not in NOT_HERE
    and any(block.language == COMMANDS and not block.is_for_root for block in blocks(file))
]


def is_runnable(name: str) -> bool:
    return name not in NEEDED or shutil.which(NEEDED[name]) is not None


# Read one after the other, by the same merchant.
IN_ORDER = [name for name in TAKE_A_PAYMENT if is_runnable(name)]


@pytest.fixture
def shop(stack: Stack) -> ShopClient:
    """A new merchant, so that the lists of a page have what the page made."""
    made = json.loads(stack.manage("create_merchant", "--name", "Reader", "--mode", "test", "--json"))
    return ShopClient(stack.base_url, made["secret_key"], made["merchant_id"])


@pytest.fixture
def reader_of(stack: Stack, shop: ShopClient, endpoint: Receiver, tmp_path: Path) -> Callable[[str], Reader]:
    """A reader of a page, in a folder of its own."""

    def prepared_for(name: str) -> Reader:
        folder = Path(mkdtemp(dir=tmp_path))
        prepared = PREPARATIONS[name](stack, shop, endpoint, folder) if name in PREPARATIONS else {}
        # The README and the web shop start receivers.
        port = ports.pick() if name == "the README" else endpoint.port
        values = {
            "http://127.0.0.1:8000": stack.base_url,
            "tq_test_...": shop.secret_key,
            "9000": str(port),
            "9001": str(ports.pick()),
            "/tmp/": f"{folder}/",
            "mch_...": shop.merchant_id,
        } | prepared
        return Reader(folder, stack, values)

    return prepared_for


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in RUN if name not in IN_ORDER])
def test_commands_of_a_page_run_and_print_what_it_says(name: str, reader_of: Callable[[str], Reader]) -> None:
    if not is_runnable(name):
        pytest.skip(f"{Path(NEEDED[name]).name} is not installed")
    reader_of(name).follow(FILES[name])


@pytest.mark.slow
def test_pages_read_one_after_the_other_each_take_a_new_payment(
    reader_of: Callable[[str], Reader], shop: ShopClient, subtests: pytest.Subtests
) -> None:
    """No page gets the code of another, or of its own first reading, and pays it again.

    The order is another in each run. Repeat one with the PAGES_SEED that a failure shows.
    """
    seed = os.environ.get("PAGES_SEED") or str(SystemRandom().randrange(10**6))
    pages = Random(seed).sample(IN_ORDER, len(IN_ORDER))
    known: dict[str, Any] = {}
    for name in [*pages, pages[0]]:
        with subtests.test(name, PAGES_SEED=seed):
            reader_of(name).follow(FILES[name])
            # The bank's callback may arrive after the last command of the page.
            wait_until(lambda: statuses(shop, known) >= TAKE_A_PAYMENT[name], 60)  # noqa: B023 (called here)
            now = payments_of(shop)
            assert [each["reference"] for each in now.values() if has_open_exception(each)] == []
            known = now


def payments_of(shop: ShopClient) -> dict[str, Any]:
    return {each["payment_id"]: each for each in shop.get("/v1/payments?limit=100")["payments"]}


def statuses(shop: ShopClient, known: dict[str, Any]) -> set[str]:
    """The statuses of the payments that are not known yet."""
    return {each["status"] for key, each in payments_of(shop).items() if key not in known}


def has_open_exception(payment: dict[str, Any]) -> bool:
    return any(each["status"] == "open" for each in payment["exceptions"])


def test_every_sample_is_run_or_is_output() -> None:
    """A sample is commands (`sh`), a file (```` ```python pay.py ````) that they use, or what is SHOWN.

    Commands for root (```` ```sh root ````) run in `make drill-install`.
    """
    for name in FILES:
        found = blocks(FILES[name])
        commands = "".join(block.code for block in found if block.language == COMMANDS)
        for block in found:
            is_run = block.language == COMMANDS or (block.file and block.file in commands)
            is_shown = block.language in SHOWN or (name, block.language) in TUTORIAL
            assert is_run or is_shown, block


def test_json_samples_are_those_of_the_service() -> None:
    for name in FILES:
        for block in blocks(FILES[name]):
            if block.language == "json":
                sample = json.loads(block.code)
                # Events are compared with the OpenAPI document in tests/flows/test_guide.py.
                is_of_service = is_error(sample) or is_credentials(sample) or is_part_of_payment(sample)
                assert "event" in sample or is_of_service, block.code


def is_error(sample: dict[str, dict[str, str]]) -> bool:
    error = sample.get("error", {})
    return error.get("code") in CATALOGUE and CATALOGUE[error["code"]].type == error["type"]


def is_credentials(sample: dict[str, str]) -> bool:
    needed = [
        {field.name for field in bank.credential_fields if field.default is None}
        for bank in banks.LIVE_BANKS.values()
    ]
    return set(sample) in needed


def is_part_of_payment(sample: dict[str, dict[str, str]]) -> bool:
    """Whether it is the one field of a payment that the page shows alone."""
    shown = sample.get("unmatched_money", {})
    return len(sample) == 1 and shown.keys() == UnmatchedMoney.__annotations__.keys()


def test_tables_of_the_page_about_testing_are_complete() -> None:
    text = FILES["testing"].read_text()
    assert set(re.findall(r"`(tok_test_\w+)`", text)) == set(cards.CARDS)
    (table,) = re.findall(r"^\| scenario \|.*?\n\n", text, re.DOTALL | re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", table)) == set(scenarios.SCENARIOS)
    types = {"refund": "refund", "withdrawal": "payout"}
    accounts = re.findall(r"^\| (refund|withdrawal) \| `(\d{4})` \|", text, re.MULTILINE)
    assert {(types[kind], digits) for kind, digits in accounts} == {*orders.REASONS, orders.TRUNCATED}


def test_card_tokens_of_the_readme_exist() -> None:
    assert set(re.findall(r"`(tok_test_\w+)`", README.read_text())) <= set(cards.CARDS)


# What stands for `...` on a page, and the files that the reader has already.


def of_webhooks(stack: Stack, shop: ShopClient, endpoint: Receiver, folder: Path) -> dict[str, str]:
    hook = shop.post(
        "/v1/webhooks", {"url": endpoint.url(), "events": ["payment.succeeded"], "secret": SECRET}
    )
    delivery = shop.post(f"/v1/webhooks/{hook['webhook_id']}/test", {})
    (folder / "headers.txt").write_text("".join(f"{key}: {value}\n" for key, value in signed().items()))
    (folder / "body.json").write_bytes(BODY)
    return {"wh_...": hook["webhook_id"], "dlv_...": delivery["delivery_id"], "whsec_...": NEW}


def of_payment_page(stack: Stack, shop: ShopClient, endpoint: Receiver, folder: Path) -> dict[str, str]:
    return {"qr_...": shop.qr_code()["qr_code_id"]}


def of_line(stack: Stack, shop: ShopClient, endpoint: Receiver, folder: Path) -> dict[str, str]:
    return {"https://api.line.me": endpoint.base_url}


def of_typescript(stack: Stack, shop: ShopClient, endpoint: Receiver, folder: Path) -> dict[str, str]:
    (folder / "node_modules").symlink_to(typescript_package.project() / "node_modules")
    return {}


def of_banks(stack: Stack, shop: ShopClient, endpoint: Receiver, folder: Path) -> dict[str, str]:
    """A live merchant, and the credentials that the page shows."""
    made = json.loads(stack.manage("create_merchant", "--name", "Live", "--mode", "live", "--json"))
    credentials = next(block.code for block in blocks(FILES["banks"]) if block.language == "json")
    (folder / "scb.json").write_text(credentials)
    return {"mch_...": made["merchant_id"]}


def of_sign_in(stack: Stack, shop: ShopClient, endpoint: Receiver, folder: Path) -> dict[str, str]:
    create = "from django.contrib.auth.models import User; User.objects.get_or_create(username='somsri')"
    stack.manage("shell", "-c", create)
    return {}


def of_operations(stack: Stack, shop: ShopClient, endpoint: Receiver, folder: Path) -> dict[str, str]:
    """A statement, failed logins, a key, an account, a payer, a signed close and the link of the audit.

    And the report of another gateway, of a month in which nobody paid.
    """
    (folder / "october.csv").write_text("created_utc,gross,reporting_category,source_id\n")
    code = shop.qr_code()
    shop.pay(code)
    shop.wait_for_status(code, "succeeded")
    (folder / "day.txt").write_bytes(statement(shop, datetime.now(BANGKOK).date().isoformat()))
    made = json.loads(stack.manage("shell", "-c", OPERATED.format(shop.merchant_id)).splitlines()[-1])
    (folder / "close.json").write_text(json.dumps(made["close"]))
    return {
        # One transaction: an exception of another test may have the same payer, who then cannot be erased.
        "kbank:1234567890": pay_from_an_unknown_account(stack, shop, shop.qr_code()),
        "pac_...": re.findall(r"pac_\w+", made["account"])[0],
        "key_...": json.loads(made["key"])["key_id"],
        "1834:5f0c...": re.findall(r"newest link: (\S+)", made["audit"])[0],
    }


OPERATED = """
import io, json
from django.contrib.auth.models import User
from django.core.management import call_command
from operations.models import DailyClose

def run(*arguments):
    call_command(*arguments, stdout=(printed := io.StringIO()))
    return printed.getvalue()

User.objects.get_or_create(username="somsri")
account = ("--bank", "KBANK", "--account", "1112223334", "--name", "Somtam House")
run("daily_close")
close = DailyClose.objects.latest("number")
print(json.dumps({{
    "account": run("payout_accounts", "add", "{0}", *account),
    "key": run("issue_key", "{0}", "--json"),
    "audit": run("audit"),
    "close": {{"body": close.body, "signature": close.signature}},
}}))
"""


def statement(shop: ShopClient, day: str) -> bytes:
    """The statement of the sandbox bank."""
    url = f"{shop.base_url}/sandbox/v1/statements/{day}?format=bot"
    answer = requests.get(url, headers={"Authorization": f"Bearer {shop.secret_key}"}, timeout=60)
    assert answer.status_code == 200, answer.text
    return answer.content


def of_restore(stack: Stack, shop: ShopClient, endpoint: Receiver, folder: Path) -> dict[str, str]:
    """A database in safe mode; the files of the sandbox bank in the place of those of a bank."""
    (folder / "day.txt").write_bytes(statement(shop, QUIET_DAY))
    (folder / "orders.csv").write_text("reference,amount\n")
    stack.manage("pause_transfers", "--reason", "The samples of the page about restores")
    return {"--bank scb": "--bank sandbox", "2026-11-21": QUIET_DAY}


# No merchant of the tests has a payment on it.
QUIET_DAY = "2025-01-02"
PREPARATIONS = {
    "one-machine": lambda stack, *_: {"https://pay.example.com": stack.base_url},
    "operations": of_operations,
    "restore": of_restore,
    "webhooks": of_webhooks,
    "payment-page": of_payment_page,
    "recipes/line-message": of_line,
    "start/typescript": of_typescript,
    "banks": of_banks,
    "sign-in": of_sign_in,
}


@pytest.mark.slow
def test_line_message_has_the_amount_and_a_link_to_the_payment_page(
    reader_of: Callable[[str], Reader], shop: ShopClient, endpoint: Receiver
) -> None:
    name = "recipes/line-message"
    reader_of(name).follow(FILES[name])
    (sent,) = endpoint.to("/v2/bot/message/push")
    (payment,) = shop.get("/v1/payments")["payments"]
    (bubble,) = (message["contents"] for message in sent.json["messages"])
    assert bubble["body"]["contents"][1]["text"] == payment["amount_display"]
    (button,) = bubble["footer"]["contents"]
    assert button["action"]["uri"] == f"{shop.base_url}/pay/{payment['qr_code_id']}"
    assert payment["metadata"]["line_user"] == sent.json["to"]


def test_packed_typescript_client_has_the_name_of_the_quickstart() -> None:
    version = json.loads((ROOT / "clients/typescript/package.json").read_text())["version"]
    assert f"/tmp/thai-qr-payments-{version}.tgz" in FILES["start/typescript"].read_text()
