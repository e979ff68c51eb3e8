"""The command line against a whole instance: what people see, what scripts read, and exit codes."""

import json
import re
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from standardwebhooks import Webhook
from thaiqr.cli import triggers

from tests.clients import drawings
from tests.clients.command_line import WIDTH, CommandLine
from tests.flows.conftest import ShopClient, registered
from tests.stack import Stack, wait_until
from tests.webhook_receiver import ReceivedRequest, Receiver

pytestmark = pytest.mark.slow


@pytest.fixture
def thaiqr(stack: Stack, tmp_path: Path) -> CommandLine:
    return CommandLine(stack.secret_key, stack.base_url, tmp_path)


def pay(shop_client: ShopClient, code: dict[str, Any]) -> None:
    shop_client.pay(code)
    shop_client.wait_for_status(code, "succeeded")


def test_created_code_is_drawn_and_can_be_scanned(thaiqr: CommandLine, shop_client: ShopClient) -> None:
    done = thaiqr.ok("qr", "create", "--amount", "1,500.00", "--reference", "ใบสั่ง 7", "--metadata", "table=4")
    drawing = [line for line in done.stdout.splitlines() if set(line) <= set(drawings.CELLS)]
    code = shop_client.get(f"/v1/qr-codes/{re.findall('qr_[0-9A-Za-z]{27}', done.stdout)[0]}")
    assert drawings.scan(drawing, ink_is_dark=False) == code["qr_data"]
    assert (code["amount"], code["reference"], code["metadata"]) == (150_000, "ใบสั่ง 7", {"table": "4"})
    assert "1,500.00 THB" in done.stdout
    assert "\x1b" not in done.stdout, "no colour"


def test_waiting_ends_with_0_when_the_code_is_paid(thaiqr: CommandLine, shop_client: ShopClient) -> None:
    with thaiqr.running("qr", "create", "--satang", "10000", "--wait", "--json") as process:
        assert process.stdout is not None
        code = json.loads(process.stdout.readline())
        shop_client.pay(code)
        assert json.loads(process.stdout.readline())["status"] == "succeeded"
        assert process.wait(60) == 0


def test_waiting_ends_with_6_when_the_code_is_not_paid(thaiqr: CommandLine, shop_client: ShopClient) -> None:
    with thaiqr.running("qr", "create", "--amount", "100", "--wait", "--json") as process:
        assert process.stdout is not None
        code = json.loads(process.stdout.readline())
        thaiqr.ok("qr", "expire", code["qr_code_id"])
        assert json.loads(process.stdout.readline())["status"] == "expired"
        assert process.wait(60) == 6


def test_payments_are_listed_read_and_watched(thaiqr: CommandLine, shop_client: ShopClient) -> None:
    code = shop_client.qr_code(reference="cli-list")
    Thread(target=shop_client.pay, args=(code,)).start()
    watched = thaiqr.ok("payments", "watch", code["payment_id"], "--json")
    assert watched.json == shop_client.get(f"/v1/payments/{code['payment_id']}")
    other = shop_client.qr_code(reference="cli-list")
    listed = thaiqr.ok("payments", "list", "--reference", "cli-list", "--limit", "1")
    assert other["payment_id"] in listed.stdout
    assert "1 of 2" in listed.stdout
    assert max(len(line) for line in listed.stdout.splitlines()) <= WIDTH
    rows = thaiqr.ok("payments", "list", "--reference", "cli-list", "--json").lines
    assert [row["payment_id"] for row in rows] == [other["payment_id"], code["payment_id"]]
    shown = thaiqr.ok("payments", "get", code["payment_id"]).stdout
    assert re.search(r"status +succeeded\n", shown)


def test_refund_and_withdrawal_move_money_after_a_yes(thaiqr: CommandLine, shop_client: ShopClient) -> None:
    code = shop_client.qr_code(amount=50_000)
    pay(shop_client, code)
    refund = thaiqr.ok("refund", code["payment_id"], "--amount", "100", "--yes", "--wait", "--json").json
    assert (refund["status"], refund["amount"]) == ("completed", 10_000)
    too_much = thaiqr("refund", code["payment_id"], "--amount", "401", "--yes", "--json")
    assert (too_much.code, too_much.stdout) == (1, "")
    assert json.loads(too_much.stderr.splitlines()[-1])["error"]["code"] == "refund_amount_exceeded"
    to = ["--bank", "SCB", "--account", "4051234567", "--name", "Somtam House"]
    sent = thaiqr.ok("withdraw", *to, "--satang", "20000", "--yes", "--wait")
    assert "200.00 THB" in sent.stdout
    fails = thaiqr("withdraw", *to[:3], "4050000002", *to[4:], "--amount", "100", "--yes", "--wait", "--json")
    assert (fails.code, fails.json["status"]) == (6, "failed")
    assert "THB" in thaiqr.ok("balance").stdout
    assert thaiqr.ok("balance", "--json").json == shop_client.get("/v1/balance")
    assert "SCB" in thaiqr.ok("banks").stdout


def test_webhooks_are_managed(thaiqr: CommandLine, endpoint: Receiver) -> None:
    hook = thaiqr.ok("webhooks", "create", endpoint.url(), "-e", "payment.succeeded", "--json").json[
        "webhook_id"
    ]
    secret = thaiqr.ok("webhooks", "secret", hook).stdout.strip()
    tested = thaiqr.ok("webhooks", "test", hook, "--json").json
    assert tested["event"] == "webhook.ping"
    ping, test = endpoint.wait_for(lambda found: len(found) == 2)
    for message in (ping, test):
        Webhook(secret).verify(message.body, message.headers)
    wait_until(lambda: "succeeded" in thaiqr.ok("webhooks", "deliveries", hook).stdout, 60)
    assert hook in thaiqr.ok("webhooks", "list").stdout
    assert "disabled" in thaiqr.ok("webhooks", "change", hook, "--disable").stdout
    assert thaiqr.ok("webhooks", "change", hook, "--enable", "--json").json["status"] == "active"
    assert "Deleted" in thaiqr.ok("webhooks", "delete", hook).stdout
    gone = thaiqr("webhooks", "get", hook)
    assert (gone.code, "webhook_not_found" in gone.stderr) == (1, True)


def test_event_is_sent_again(thaiqr: CommandLine, shop_client: ShopClient, endpoint: Receiver) -> None:
    with registered(shop_client, endpoint.url(), ["payment.pending"]):
        code = shop_client.qr_code()
        sent = endpoint.wait_for(lambda found: bool(about(code, found)))[-1]
        event = sent.headers["webhook-id"]
        again = thaiqr.ok("events", "resend", event, "--json").json
        assert (again["event_id"], again["trigger"]) == (event, "manual")
        endpoint.wait_for(lambda found: len(about(code, found)) == 2)
        twice = thaiqr.ok("events", "resend", event, "--json").lines
        assert len(twice) == 1, "the repeat is no delivery of its own to repeat"
    with thaiqr.running("events", "tail", "--after", "0", "--json", "-e", "payment.pending") as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["event"] == "payment.pending"


def test_money_that_does_not_fit_is_decided(thaiqr: CommandLine) -> None:
    payment = thaiqr.ok("trigger", "under", "--json").json["payment_id"]
    [found] = thaiqr.ok("exceptions", "list", payment, "--json").lines
    accepted = thaiqr.ok("exceptions", "accept", payment, found["exception_id"], "--yes", "--json").json
    assert (found["status"], accepted["status"]) == ("open", "accepted")
    refused = thaiqr("exceptions", "return", payment, found["exception_id"], "--yes")
    assert refused.code == 1


def test_card_is_charged_and_refunded(thaiqr: CommandLine) -> None:
    charge = ["payments", "create", "--amount", "1,500.00", "--json", "--token"]
    paid = thaiqr.ok(*charge, "tok_test_visa").json
    assert (paid["status"], paid["amount"]) == ("succeeded", 150_000)
    declined = thaiqr(*charge, "tok_test_declined")
    told = json.loads(declined.stderr.splitlines()[-1])["error"]
    assert (declined.code, declined.stdout) == (1, "")
    assert thaiqr.ok("payments", "get", told["payment_id"], "--json").json["status"] == "failed"
    made = thaiqr.ok("--json", "refunds", "create", paid["payment_id"], "--amount", "10", "--yes").json
    [listed] = thaiqr.ok("refunds", "list", "--payment", paid["payment_id"], "--json").lines
    assert (listed["refund_id"], listed["amount"]) == (made["refund_id"], 1_000)
    assert thaiqr.ok("get", f"/v1/refunds/{made['refund_id']}", "--json").json["amount"] == 1_000


def test_payment_link_and_destination_are_made_and_ended(thaiqr: CommandLine) -> None:
    link = thaiqr.ok("payment-links", "create", "--amount-min", "20", "--amount-max", "50", "--json").json
    assert thaiqr.ok("open", link["payment_link_id"], "--json").json == {"url": link["url"]}
    assert link["payment_link_id"] in thaiqr.ok("payment-links", "list").stdout
    ended = thaiqr.ok("payment-links", "deactivate", link["payment_link_id"], "--json").json
    assert (ended["status"], ended["amount_max"]) == ("deactivated", 5_000)
    wrong = thaiqr("destinations", "create", "--type", "line", "--to", "nobody")
    assert (wrong.code, "to " in wrong.stderr) == (1, True)


def test_clock_of_a_test_merchant_is_advanced(thaiqr: CommandLine) -> None:
    both = thaiqr("clock", "advance", "--minutes", "1", "--seconds", "1")
    assert (both.code, "advance_" in both.stderr) == (1, True)
    assert thaiqr.ok("clock", "advance", "--seconds", "1", "--json").json["advanced_seconds"] >= 1
    assert "advanced_seconds" in thaiqr.ok("clock", "get").stdout
    assert thaiqr.ok("clock", "reset", "--json").json == {"deleted": True}


def test_listen_posts_the_same_signed_message_as_a_webhook(
    thaiqr: CommandLine, shop_client: ShopClient, endpoint: Receiver
) -> None:
    events = ["payment.pending", "payment.succeeded"]
    arguments = ["--forward-to", endpoint.url("/local"), "--json", *(f"--event={each}" for each in events)]
    with (
        registered(shop_client, endpoint.url(), events),
        thaiqr.running("listen", *arguments) as process,
    ):
        assert process.stdout is not None
        assert process.stderr is not None
        process.stderr.readline()
        secret = process.stderr.readline().strip()
        code = shop_client.qr_code(reference="ฟังเสียง", metadata={"a": [1, 2.5, None, "é"]})
        pay(shop_client, code)
        endpoint.wait_for(lambda _: all(len(about(code, endpoint.to(to))) == 2 for to in ("/hook", "/local")))
        printed = [json.loads(process.stdout.readline()) for _ in about(code, endpoint.to("/local"))]
    by_hook = {each.headers["webhook-id"]: each.body for each in endpoint.to("/hook")}
    for message in about(code, endpoint.to("/local")):
        Webhook(secret).verify(message.body, message.headers)
        assert message.body == by_hook[message.headers["webhook-id"]]
    assert {each["status"] for each in printed} == {200}


def about(code: dict[str, Any], messages: list[ReceivedRequest]) -> list[ReceivedRequest]:
    """The messages about the payment of a code. Other tests with the same merchant send some too."""
    return [each for each in messages if each.json["data"].get("payment_id") == code["payment_id"]]


def test_listen_shows_an_endpoint_that_does_not_answer(thaiqr: CommandLine, shop_client: ShopClient) -> None:
    with thaiqr.running("listen", "--forward-to", "http://127.0.0.1:1/", "--json") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stderr.readline()
        process.stderr.readline()
        shop_client.qr_code()
        printed = json.loads(process.stdout.readline())
    assert (printed["status"], "refused" in printed["error"]) == (None, True)


# These follow minutes later, when the service asks the acquirer.
LATER = {"payment.fee_known", "settlement.arrived"}
# Only if the settings of the shop hold such payments.
HELD = "payment.hold_lifted"


@pytest.mark.parametrize("event", sorted(set(triggers.EVENTS) - LATER - {HELD}))
def test_trigger_makes_its_event_happen(thaiqr: CommandLine, shop_client: ShopClient, event: str) -> None:
    made = thaiqr.ok("trigger", event, "--json").json
    name = f"{event.partition('.')[0]}_id"
    about = [each["data"][name] for each in shop_client.get(f"/v1/events?event={event}&limit=20")["events"]]
    assert made[name] in about


def test_trigger_of_a_lifted_hold_needs_the_setting(thaiqr: CommandLine) -> None:
    refused = thaiqr("trigger", HELD)
    assert (refused.code, "This payment is not held" in refused.stderr) == (1, True)


@pytest.mark.parametrize("event", sorted(LATER))
def test_trigger_of_what_follows_makes_a_card_payment(thaiqr: CommandLine, event: str) -> None:
    assert thaiqr.ok("trigger", event, "--json").json["status"] == "succeeded"


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [("late", "status", "expired"), ("withdrawal.failed", "failure_code", "invalid_account")],
)
def test_trigger_shows_how_it_ended(thaiqr: CommandLine, name: str, field: str, value: str) -> None:
    assert thaiqr.ok("trigger", name, "--json").json[field] == value


def test_requests_are_tailed(thaiqr: CommandLine, shop_client: ShopClient) -> None:
    code = shop_client.qr_code()
    shop_client.get(f"/v1/payments/{code['payment_id']}")

    def logged() -> list[Any]:
        return thaiqr.ok("requests", "tail", "--payment", code["payment_id"], "--json").lines

    wait_until(lambda: len(logged()) == 2, 60)
    assert [each["method"] for each in logged()] == ["POST", "GET"], "the newest last"
    shown = thaiqr.ok("requests", "tail", "-n", "3").stdout
    assert len(shown.splitlines()) == 3
    request = logged()[0]["request_id"]
    assert code["payment_id"] in thaiqr.ok("requests", "get", request).stdout


def test_wrong_key_ends_with_3(thaiqr: CommandLine) -> None:
    done = thaiqr("balance", "--json", THAIQR_API_KEY="tq_test_wrong")
    assert (done.code, done.stdout) == (3, "")
    assert json.loads(done.stderr)["error"]["code"] == "authentication_failed"


def test_configured_key_is_checked_stored_and_used(thaiqr: CommandLine) -> None:
    wrong = thaiqr("configure", "--base-url", thaiqr.base_url, input="tq_test_wrong\n")
    assert wrong.code == 3
    stored = thaiqr("configure", "--base-url", thaiqr.base_url, input=f"{thaiqr.key}\n")
    assert stored.code == 0, stored
    assert thaiqr.ok("balance", THAIQR_API_KEY="").stdout.startswith("available")
