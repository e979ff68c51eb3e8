"""A shop written with the TypeScript client alone, against a whole instance; snippets of its README."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import judges
from tests.clients import typescript_package as package
from tests.flows import flawed_proxy
from tests.flows.conftest import ShopClient
from tests.flows.flawed_proxy import FlawedProxy
from tests.stack import Stack
from tests.webhook_receiver import Receiver

pytestmark = pytest.mark.slow
PROGRAMS = Path(__file__).with_name("clients")
README = package.PACKAGE / "README.md"
SNIPPETS = re.findall(r"^```ts\n(.*?)^```$", README.read_text(), re.DOTALL | re.MULTILINE)
URL = "https://shop.example.com/hook"
FLAWS = [
    flawed_proxy.loses_answer,
    flawed_proxy.cuts_answer,
    flawed_proxy.cuts_request,
    flawed_proxy.fails,
    flawed_proxy.is_busy,
]


@pytest.fixture(scope="module")
def project() -> Path:
    """Where the client is installed and the programs of the shop are compiled, strictly."""
    judges.require(judges.TYPESCRIPT)
    folder = package.project()
    for name in ("shop.ts", "retry.ts"):
        shutil.copy(PROGRAMS / name, folder)
    (folder / "readme.ts").write_text("".join(SNIPPETS))
    package.compile_programs("shop.ts", "retry.ts", "readme.ts")
    return folder


@pytest.fixture
def proxy(stack: Stack) -> Iterator[FlawedProxy]:
    with FlawedProxy.running() as running:
        running.target, running.flaws = stack.base_url, []
        yield running


def run(project: Path, program: str, *arguments: str, key: str, url: str) -> str:
    environment = {"THAIQR_API_KEY": key, "THAIQR_BASE_URL": url}
    done = judges.run_node(project / program, *arguments, folder=project, **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    printed: str = done.stdout
    return printed


@pytest.fixture(scope="module")
def seen(project: Path, stack: Stack) -> dict[str, Any]:
    """What the shop saw."""
    found: dict[str, Any] = json.loads(run(project, "shop.js", key=stack.secret_key, url=stack.base_url))
    return found


def test_shop_is_told_of_the_payment_and_refunds_half_of_it(seen: dict[str, Any]) -> None:
    assert seen["repeated"]
    paid = seen["paid"]
    assert (paid["amount"], paid["reference"], paid["metadata"]) == (150_000, "typescript-17", {"table": 4})
    assert (seen["sentBack"]["amount"], seen["sentBack"]["status"]) == (75_000, "completed")
    assert (seen["payment"]["status"], seen["payment"]["amount_refunded"]) == ("succeeded", 75_000)


def test_shop_reads_lists_to_their_end(seen: dict[str, Any]) -> None:
    assert (seen["listed"], seen["total"]) == (True, 5)
    assert seen["feed"] == list(range(1, len(seen["feed"]) + 1))
    assert {"payment", "withdrawal_reserved"} <= set(seen["moves"])
    assert seen["banks"] > 20


def test_refusal_reaches_the_shop_as_its_error(seen: dict[str, Any]) -> None:
    assert seen["refused"].pop("requestId")
    assert seen["refused"] == {"code": "invalid_amount", "param": "amount", "status": 400}


def test_picture_of_a_slip_is_sent_as_a_form(seen: dict[str, Any]) -> None:
    assert seen["slip"] == "unreadable"


def test_shop_withdraws_and_reads_its_balance(seen: dict[str, Any]) -> None:
    assert (seen["withdrawal"]["amount"], seen["withdrawal"]["bank_account"]) == (20_000, "4567")
    assert seen["balance"]["currency"] == "THB"


def test_receiver_of_the_shop_refuses_another_secret(seen: dict[str, Any]) -> None:
    """The program ends only when its receiver has refused a message."""
    assert (seen["isKept"], seen["before"], seen["isDelivered"]) == (True, 0, True)


@pytest.mark.parametrize("flaw", FLAWS, ids=lambda flaw: flaw.__name__)
def test_retries_over_a_flawed_network_create_one_payment(
    project: Path, stack: Stack, proxy: FlawedProxy, flaw: flawed_proxy.Flaw
) -> None:
    proxy.flaws = [flaw, flaw]
    reference = f"typescript-{flaw.__name__}"
    printed = run(project, "retry.js", reference, key=stack.secret_key, url=proxy.base_url)
    shown = json.loads(printed)
    assert shown["found"] == [shown["created"]]
    assert len(proxy.to("/v1/qr-codes")) == 3


def test_snippets_of_the_readme_run(project: Path, stack: Stack, endpoint: Receiver) -> None:
    """Only a real endpoint can be registered. Afterwards the receiver of the README gets two messages."""
    program = (project / "readme.js").read_text().replace(URL, endpoint.url())
    (project / "readme.js").write_text(program + RECEIVE)
    printed = run(project, "readme.js", key=stack.secret_key, url=stack.base_url)
    try:
        assert "succeeded 1,500.00 THB" in printed
        assert "invalid_amount is out of range: 100 to 200000000 satang; received 99" in printed
        assert "answers 204 204 400" in printed
        assert "refund completed" in printed
        assert printed.count("ship order-") == 1
    finally:
        webhook_id = re.search(r"webhook (wh_\w+)", printed)
        assert webhook_id
        ShopClient(stack.base_url, stack.secret_key).delete(f"/v1/webhooks/{webhook_id[1]}")


RECEIVE = """
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const body = JSON.stringify({
  event: "payment.succeeded", event_id: "evt_1", timestamp: new Date(), data: { reference: code.reference },
});
const timestamp = Math.floor(Date.now() / 1000);
const signature = await webhooks.sign(body, { messageId: "evt_1", timestamp, secret });
async function post(signature) {
  const headers = { "webhook-id": "evt_1", "webhook-timestamp": timestamp, "webhook-signature": signature };
  return (await fetch(`http://127.0.0.1:${server.address().port}`, { method: "POST", body, headers })).status;
}
console.log("answers", await post(signature), await post(signature), await post("v1,AAAA"));
console.log("webhook", webhook.webhook_id);
// Other tests compare the balance of this merchant, and a pending refund would change it meanwhile.
let last = refund;
while (last.status === "pending") {
  await new Promise((resolve) => setTimeout(resolve, 200));
  last = await client.refunds.get(refund.refund_id);
}
console.log("refund", last.status);
server.close();
server.closeAllConnections();
"""
