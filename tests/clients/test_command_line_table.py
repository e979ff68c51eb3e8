"""Commands that call one method of the client send its operation, and show what it answers."""

import copy
import json
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from thaiqr.cli import commands, listening

from apidocs.code_samples import METHODS
from tests.clients import openapi
from tests.clients.command_line import WIDTH, CommandLine
from tests.webhook_receiver import Receiver, Reply

pytestmark = pytest.mark.slow

KEY = "tq_test_abcdefgh_secret"
OPERATIONS = {method: operation for operation, method in METHODS.items()}
# Commands that do more than call one method.
BY_HAND = {
    "qr_codes.create", "qr_codes.get", "refunds.create", "refunds.create_claim_link",
    "refunds.get_claim_link", "withdrawals.create", "webhooks.create", "webhooks.get", "webhooks.change",
    "webhooks.get_secret", "webhooks.replay", "balance.get", "banks.list", "requests.list", "sandbox.pay",
}  # fmt: skip
LEFT_OUT = {
    "qr_codes.card": "a picture: open the page instead",
    "payment_links.picture": "another",
    "payments.evidence": "`thaiqr get /v1/payments/ID/evidence`",
    "payments.timeline": "`thaiqr get /v1/payments/ID/timeline`",
    "refunds.set_destination": "the payer names the account: `thaiqr claim-link`",
    "destinations.change": "pages of the shop",
    "destinations.deliveries": "`thaiqr get /v1/destinations/ID/deliveries`",
    "transactions.list": "`thaiqr get /v1/transactions`",
    "transactions.get": "another",
    "balance.transactions": "`thaiqr get /v1/balance/transactions`",
    "slips.check": "at the till",
}
TABLE = [(group, each) for group, (_, listed) in commands.GROUPS.items() for each in listed]
# What a command needs beside ids.
NEEDED = {
    "payments.create": ["--token", "tok_test_visa", "--amount", "1,500.00"],
    "payment_links.create": ["--amount", "1,500.00"],
    "destinations.create": ["--type", "line", "--to", "U4af4980629f4a1b3c6d7e8f9a0b1c2d3"],
    "sandbox.advance_clock": ["--minutes", "30"],
}


@pytest.fixture
def service() -> Iterator[Receiver]:
    with Receiver.running() as service:
        yield service


@pytest.fixture
def thaiqr(service: Receiver, tmp_path: Path) -> CommandLine:
    return CommandLine(KEY, service.base_url, tmp_path)


def reply(body: Any, status: int = 200) -> Reply:
    return Reply(status, {"Content-Type": "application/json"}, json.dumps(body).encode())


def example(method: str) -> Any:
    """The example of an answer in the OpenAPI document; None for 204."""
    operation = openapi.merchant_operations()[OPERATIONS[method]]
    responses = openapi.DOCUMENT["paths"][operation.path][operation.method.lower()]["responses"]
    if "200" not in responses:
        return None
    shown = copy.deepcopy(responses["200"]["content"]["application/json"]["example"])
    if method.startswith("events."):
        # The reference shows a part of the data.
        for event in shown.get("events", [shown]):
            event["data"] = message(event["event"])["data"]
    return shown


def message(event: str) -> Any:
    content = openapi.DOCUMENT["webhooks"][event]["post"]["requestBody"]["content"]
    return content["application/json"]["example"]


def call(group: str, command: commands.Command) -> list[str]:
    """The words of a command, with an id for each place in the path."""
    path = openapi.merchant_operations()[OPERATIONS[command.method]].path
    ids = [f"its-{name}" for name in re.findall(r"\{(\w+)\}", path)]
    asked = ["--yes"] if command.asks else []
    name = command.name or command.method.rpartition(".")[2]
    return [group, name, *ids, *NEEDED.get(command.method, []), *asked]


each_command = pytest.mark.parametrize(
    ("group", "command"), TABLE, ids=[f"{group} {each.method}" for group, each in TABLE]
)


def test_every_method_has_a_command_or_a_reason_without() -> None:
    by_table = {each.method for _, each in TABLE}
    assert by_table | BY_HAND | LEFT_OUT.keys() == set(OPERATIONS) - {None}
    assert not by_table & BY_HAND
    assert not (by_table | BY_HAND) & LEFT_OUT.keys()


@each_command
def test_command_sends_its_operation_and_prints_the_answer(
    thaiqr: CommandLine, service: Receiver, group: str, command: commands.Command
) -> None:
    operation, answer = openapi.merchant_operations()[OPERATIONS[command.method]], example(command.method)
    service.default = reply(answer) if answer is not None else Reply(204, {}, b"")
    words = call(group, command)
    done = thaiqr.ok(*words, "--json")
    request = service.requests[0]
    path = re.sub(r"\{(\w+)\}", r"its-\1", operation.path)
    assert (request.method, request.path.partition("?")[0]) == (operation.method, path)
    rows = [value for value in (answer or {}).values() if isinstance(value, list)]
    assert done.lines == (rows[0] if "limit" in operation.parameters else [answer or done.json])
    is_post = operation.method == "POST"
    assert done.stderr == (
        json.dumps({"idempotency_key": request.headers["idempotency-key"]}) + "\n" if is_post else ""
    )


@each_command
def test_ids_are_whole_and_lines_fit_a_terminal(
    thaiqr: CommandLine, service: Receiver, group: str, command: commands.Command
) -> None:
    answer = example(command.method)
    service.default = reply(answer) if answer is not None else Reply(204, {}, b"")
    shown = thaiqr.ok(*call(group, command)).stdout
    assert shown
    if not command.method.rpartition(".")[2].startswith(("list", "deliveries")):
        return
    [row] = next(value for value in answer.values() if isinstance(value, list))
    key = row[command.shown.split()[0]]
    for width in ("20", str(WIDTH)):
        shown = thaiqr.ok(*call(group, command), COLUMNS=width).stdout
        assert f"{key} " in shown
        assert max(len(line) for line in shown.splitlines()) <= WIDTH


def test_amount_is_in_one_line_of_a_terminal(thaiqr: CommandLine, service: Receiver) -> None:
    [row] = example("payments.list")["payments"]
    rows = [row | {"amount_display": "1,234,567.89 THB", "reference": "order-a4c87068"}]
    service.default = reply({"payments": rows, "total": 1})
    assert "1,234,567.89 THB " in thaiqr.ok("payments", "list").stdout


def test_list_without_rows_says_so(thaiqr: CommandLine, service: Receiver) -> None:
    service.default = reply({"settlements": [], "total": 0})
    assert thaiqr.ok("settlements", "list").stdout == "Nothing found.\n"


@pytest.mark.parametrize(
    "words",
    [
        ["--json", "payments", "list"],
        ["payments", "--json", "list"],
        ["payments", "list", "--json"],
        ["--json", "payments", "list", "--json"],
    ],
    ids=" ".join,
)
def test_json_may_stand_before_or_after_the_command(
    thaiqr: CommandLine, service: Receiver, words: list[str]
) -> None:
    service.default = reply(example("payments.list"))
    assert thaiqr.ok(*words).lines == example("payments.list")["payments"]


def test_json_before_a_command_without_a_group(thaiqr: CommandLine, service: Receiver) -> None:
    service.default = reply(example("balance.get"))
    assert thaiqr.ok("--json", "balance").json == example("balance.get")
    service.default = reply({"webhook_id": "wh_1", "secret": "whsec_x"})
    assert thaiqr.ok("--json", "webhooks", "secret", "wh_1").json["secret"] == "whsec_x"


def test_options_of_a_list_are_its_filters(thaiqr: CommandLine, service: Receiver) -> None:
    service.default = reply({"refunds": [], "total": 0})
    thaiqr.ok(
        "refunds", "list", "--payment", "pay_1", "--status", "failed", "--since", "2026-11-01", "-n", "3"
    )
    thaiqr.ok("refunds", "list")
    assert [each.path for each in service.requests] == [
        "/v1/refunds?limit=3&status=failed&payment_id=pay_1&start_date=2026-11-01&timezone=Asia%2FBangkok",
        "/v1/refunds?limit=20",
    ]


def test_payment_link_is_made_of_options(thaiqr: CommandLine, service: Receiver) -> None:
    service.default = reply(example("payment_links.create"))
    thaiqr.ok(
        "payment-links", "create", "--amount-min", "20", "--amount-max", "1,000.50", "--max-payments", "0"
    )
    thaiqr.ok("payment-links", "create", "--satang", "150", "--metadata", "table=4")
    assert [each.json for each in service.requests] == [
        {"amount_min": 2_000, "amount_max": 100_050, "currency": "THB", "max_payments": None},
        {"amount": 150, "currency": "THB", "metadata": {"table": "4"}, "max_payments": 1},
    ]


def test_destination_gets_all_events_unless_some_are_named(thaiqr: CommandLine, service: Receiver) -> None:
    service.default = reply(example("destinations.create"))
    words = ["destinations", "create", *NEEDED["destinations.create"]]
    thaiqr.ok(*words)
    thaiqr.ok(*words, "-e", "payment.succeeded")
    assert [each.json["events"] for each in service.requests] == [[*commands.EVENTS], ["payment.succeeded"]]


def test_declined_card_ends_with_1_and_names_its_payment(thaiqr: CommandLine, service: Receiver) -> None:
    error = {"code": "card_declined", "message": "Declined.", "type": "payment_error", "payment_id": "pay_1"}
    service.default = reply({"error": error}, 402)
    done = thaiqr("payments", "create", *NEEDED["payments.create"], "--json")
    told = json.loads(done.stderr.splitlines()[-1])["error"]
    assert (done.code, done.stdout, told["payment_id"]) == (1, "", "pay_1")


def test_error_names_its_field(thaiqr: CommandLine, service: Receiver) -> None:
    error = {"code": "invalid_status", "message": "Wrong.", "type": "validation_error", "param": "status"}
    service.default = reply({"error": error}, 400)
    done = thaiqr("refunds", "list", "--status", "lost")
    assert (done.code, "Wrong. status." in done.stderr) == (1, True)


def test_event_is_sent_again_to_the_webhooks_that_it_was_for(thaiqr: CommandLine, service: Receiver) -> None:
    event, delivery = example("events.list")["events"][0], example("webhooks.deliveries")["deliveries"][0]
    other = delivery | {"event_id": "evt_other", "delivery_id": "dlv_other"}
    hooks = [example("webhooks.get") | {"webhook_id": name} for name in ("wh_1", "wh_2")]
    service.on(f"/v1/events/{event['event_id']}", reply(event))
    service.on("/v1/webhooks?limit=100", reply({"webhooks": hooks, "total": 2}))
    made = f"limit=100&event={event['event']}&start_date=2026-11-21T03%3A05%3A42.310000%2B00%3A00"
    until = "&end_date=2026-11-21T03%3A05%3A43.310000%2B00%3A00"
    for name, found in (("wh_1", [other, delivery | {"webhook_id": "wh_1"}]), ("wh_2", [other])):
        service.on(f"/v1/webhooks/{name}/deliveries?{made}{until}", reply({"deliveries": found, "total": 1}))
    again = f"/v1/webhooks/wh_1/deliveries/{delivery['delivery_id']}/redeliver"
    service.on(again, reply(delivery | {"delivery_id": "dlv_new"}))
    assert thaiqr.ok("events", "resend", event["event_id"], "--json").json["delivery_id"] == "dlv_new"
    assert [each.path for each in service.requests if each.method == "POST"] == [again]
    done = thaiqr("events", "resend", event["event_id"], "--webhook", "wh_2")
    assert (done.code, "replay" in done.stderr) == (1, True)


def test_page_is_opened_in_the_browser(thaiqr: CommandLine, service: Receiver, tmp_path: Path) -> None:
    """A script stands for the browser."""
    script, opened = tmp_path / "browser", tmp_path / "opened"
    script.write_text(f'#!/bin/sh\necho "$1" >> {opened}\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    code, link = example("qr_codes.get"), example("payment_links.get")
    card = example("payments.get") | {"qr_code_id": None, "authorize_uri": "https://acs.example/3ds"}
    service.on("/v1/qr-codes/qr_1", reply(code))
    service.on("/v1/payments/pay_1", reply(example("payments.get") | {"qr_code_id": "qr_1"}))
    service.on("/v1/payments/pay_2", reply(card))
    service.on("/v1/payments/pay_3", reply(card | {"authorize_uri": None}))
    service.on("/v1/payment-links/pl_1", reply(link))
    expected = [code["payment_page_url"]] * 2 + [card["authorize_uri"], link["url"]]
    for name, url in zip(("qr_1", "pay_1", "pay_2", "pl_1"), expected, strict=True):
        with thaiqr.running("open", name, "--json") as process:
            assert json.loads(process.communicate(timeout=60)[0]) == {"url": url}
    thaiqr.env["BROWSER"] = f"{script} %s"
    for name, url in zip(("qr_1", "pay_1", "pay_2", "pl_1"), expected, strict=True):
        with thaiqr.running("open", name) as process:
            assert process.communicate(timeout=60)[0] == f"{url}\n"
    assert opened.read_text().splitlines() == expected
    done = thaiqr("open", "pay_3")
    assert (done.code, "by card" in done.stderr) == (1, True)


def test_claim_link_is_made_and_its_address_printed(thaiqr: CommandLine, service: Receiver) -> None:
    service.default = reply(example("refunds.get_claim_link"))
    shown = thaiqr.ok("claim-link", "ref_1", "--hours", "48").stdout
    assert example("refunds.get_claim_link")["claim_url"] in shown
    made, read = service.requests
    assert (made.method, made.json) == ("POST", {"expires_in_hours": 48})
    assert read.path == "/v1/refunds/ref_1/claim-link"


def test_any_path_can_be_read(thaiqr: CommandLine, service: Receiver) -> None:
    service.default = reply({"anything": [1, "ก"]})
    assert thaiqr.ok("get", "/v1/payments?limit=3&metadata[table]=4").stdout == (
        '{\n  "anything": [\n    1,\n    "ก"\n  ]\n}\n'
    )
    assert thaiqr.ok("get", "/Thai/v1/balance", "--json").stdout == '{"anything": [1, "ก"]}\n'
    assert [each.path for each in service.requests] == [
        "/v1/payments?limit=3&metadata[table]=4",
        "/Thai/v1/balance",
    ]


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("/hook", "http://localhost:3000/hook"),
        ("/", "http://localhost:3000/"),
        ("4242", "http://localhost:4242"),
        (":4242/hook", "http://localhost:4242/hook"),
        ("4242/hook", "http://localhost:4242/hook"),
        ("localhost:4242/hook", "http://localhost:4242/hook"),
        ("shop.test/hook", "http://shop.test/hook"),
        ("https://shop.test:444/hook?a=1", "https://shop.test:444/hook?a=1"),
    ],
)
def test_listen_takes_a_path_a_port_or_a_url(given: str, url: str) -> None:
    assert listening.url_of(given, None, 3000) == listening.url_of(None, given, 3000) == url


@pytest.mark.parametrize(
    "given", ["http://", "ftp://a/", "http://[", "a:99999/hook", "a:0", "99999/hook", "://"]
)
def test_listen_refuses_what_is_no_address(given: str) -> None:
    with pytest.raises(ValueError, match="localhost:3000/hook"):
        listening.url_of(given, None, 3000)
