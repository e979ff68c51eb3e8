"""A merchant reads its own requests: list, filters, one request, and what is never in the log."""

import json
import re
import threading
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.contrib.admin.utils import quote
from django.db import DatabaseError, connection
from django.http import HttpResponse
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import Resolver404, resolve
from pytest_django import Settings

from core import clock, ids, request_context
from core.database import rows
from core.observing import measurements
from operations.metrics import process_reports
from request_log import recorder as recorders, services
from request_log.models import RequestRecord
from request_log.recorder import Recorder
from tests.conftest import SandboxBankClient, Shop, new_client
from tests.request_log.builders import log_text, make_records
from tests.webhooks.api_calls import error_code

pytestmark = pytest.mark.django_db
CODES = "/v1/qr-codes"
SECRET = "whsec_Y2FuYXJ5LWNhbmFyeS1jYW5hcnktY2FuYXJ5"
PAYMENT = "pay_0oDFPZjiZAWmp6O2BO6aMzhgtUt"
CODE = {"amount": 150_000, "currency": "THB"}


def listed(shop: Shop, query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = shop.get(f"/v1/requests{query}").json()["requests"]
    return found


def test_request_is_in_the_log_with_its_answer(shop: Shop, recorder: Recorder) -> None:
    shop.post(CODES, CODE | {"amount": 0}, key="order-1", **{"X-Request-Id": "till-7"})
    assert recorder.write() == 1
    (request,) = listed(shop)
    assert request["id"].startswith("rlg_")
    assert {name: request[name] for name in ("request_id", "method", "route", "path", "status")} == {
        "request_id": "till-7",
        "method": "POST",
        "route": CODES,
        "path": CODES,
        "status": 400,
    }
    assert (request["error_code"], request["idempotency"]) == ("invalid_amount", "first")
    assert request["key"] == shop.secret_key.removeprefix("tq_test_")[:8]
    assert request["address"] == "127.0.0.1"
    assert request["duration_ms"] >= 0
    found = shop.get("/v1/requests/till-7").json()
    assert found | request == found
    assert found["request_body"] == '{"amount":0,"currency":"THB"}'
    assert '"code":"invalid_amount"' in found["response_body"]


def test_route_is_shown_and_found_as_the_reference_writes_it(shop: Shop, recorder: Recorder) -> None:
    shop.get(f"/v1/payments/{PAYMENT}")
    shop.get("/v1/payments")
    recorder.write()
    (request,) = listed(shop, "?route=/v1/payments/{payment_id}")
    assert (request["route"], request["path"]) == ("/v1/payments/{payment_id}", f"/v1/payments/{PAYMENT}")


def test_requests_about_a_payment_are_found(shop: Shop, recorder: Recorder) -> None:
    made = shop.post(CODES, CODE).json()
    shop.post(CODES, CODE)
    shop.get("/v1/payments")
    shop.get(f"/v1/payments/{made['payment_id']}")
    shop.get(f"/Thai/v1/qr-codes/{made['qr_code_id']}")
    shop.post("/v1/refunds", {"payment_id": made["payment_id"]})
    recorder.write()
    found = listed(shop, f"?payment_id={made['payment_id']}")
    assert [each["status"] for each in found] == [400, 200, 200, 200]
    assert {each["payment_id"] for each in found} == {made["payment_id"]}
    assert len(listed(shop, "?payment_id=pay_x")) == 0


@pytest.mark.parametrize(
    ("method", "path", "sent", "answered", "found"),
    [
        ("GET", f"/v1/payments/{PAYMENT}", b"", b"{}", PAYMENT),
        ("POST", "/v1/payments", b"{}", b'{"error":{"payment_id":"%s"}}' % PAYMENT.encode(), PAYMENT),
        ("POST", "/v1/refunds", b'{"payment_id" : "%s"}' % PAYMENT.encode(), b'{"error":{}}', PAYMENT),
        ("POST", "/v1/refunds", b'{"payment_id": "pay_x"}', b'{"error":{}}', ""),
        ("GET", "/v1/payments/pay_x", b"", b'{"payment_id":"%s"}' % PAYMENT.encode(), ""),
        ("GET", "/v1/payments", b"", b'{"payments":[{"payment_id":"%s"}]}' % PAYMENT.encode(), ""),
        ("GET", "/v1/nothing", b"", b"{}", ""),
    ],
)
def test_payment_of_a_request_is_in_its_path_or_in_a_body(
    method: str, path: str, sent: bytes, answered: bytes, found: str
) -> None:
    request = RequestFactory().generic(method, path)
    with suppress(Resolver404):
        request.resolver_match = resolve(path)
    request._body, request.merchant_id = sent, "mch_x"  # type: ignore[attr-defined]
    made = recorders._finished(request, HttpResponse(answered), 0.001)
    (row,) = recorders._rows([made])
    assert dict(zip(recorders.COLUMNS, row, strict=True))["payment_id"] == found


def test_only_the_first_requests_and_refusals_of_a_merchant_have_bodies(
    shop: Shop, other_shop: Shop, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorders, "MAX_BODIES_PER_MERCHANT", 1)
    for number, amount in enumerate([100, 200, 0, 1]):
        shop.post(CODES, CODE | {"amount": amount}, **{"X-Request-Id": f"own-{number}"})
    other_shop.post(CODES, CODE | {"amount": 300}, **{"X-Request-Id": "other"})
    recorder.write()
    bodies = {each.request_id: each.request_body for each in RequestRecord.objects.all()}
    assert '"amount":100,' in bodies["own-0"]
    assert '"amount":0,' in bodies["own-2"]
    assert '"amount":300,' in bodies["other"]
    assert bodies["own-1"] == "[34 bytes]"
    assert bodies["own-3"] == "[32 bytes]"


@pytest.mark.slow
def test_page_of_a_payment_leads_to_its_requests(
    shop: Shop, recorder: Recorder, admin_client: Client
) -> None:
    made = [shop.post(CODES, CODE).json()["payment_id"] for _ in range(2)]
    recorder.write()
    address = f"/admin/request_log/requestrecord/?q={made[0]}"
    assert address in admin_client.get(f"/admin/payments/payment/{made[0]}/change/").content.decode()
    assert admin_client.get(address).context["cl"].result_count == 1
    whole = admin_client.get("/admin/request_log/requestrecord/", {"merchant": shop.merchant.id})
    assert whole.context["cl"].result_count == 2
    record = RequestRecord.objects.latest("pk")
    page = admin_client.get(f"/admin/request_log/requestrecord/{quote(record.pk)}/change/").content.decode()
    assert "&quot;amount&quot;:150000" in page


def test_replayed_request_is_marked(shop: Shop, recorder: Recorder) -> None:
    for _ in range(2):
        shop.post(CODES, CODE, key="order-1")
    shop.post(CODES, CODE)
    recorder.write()
    marks = sorted(str(each["idempotency"]) for each in listed(shop))
    assert marks == ["None", "first", "replayed"]


@pytest.mark.slow
def test_secrets_and_personal_data_are_not_in_the_log(
    shop: Shop, bank: SandboxBankClient, recorder: Recorder, settings: Settings
) -> None:
    settings.WEBHOOK_PROBE = "off"
    given = {"bank_code": "014", "bank_account": "4051234567", "account_name": "Somchai Jaidee"}
    shop.post("/v1/withdrawals", CODE | given)
    shop.post("/v1/payments", CODE | {"token_id": "tok_test_visa"})
    hook = {"url": "https://shop.example/hook?token=hush", "events": ["payment.succeeded"]}
    shop.post("/v1/webhooks", hook | {"secret": SECRET})
    made = shop.post(CODES, CODE | {"client_name": "Somchai Jaidee", "description": "for Somchai"}).json()
    bank.notify(made, payer_name="Somchai Jaidee", payer_account="4051234567")
    shop.get(f"/v1/payments/{made['payment_id']}", **{"X-Request-Id": shop.secret_key})
    shop.get(f"/v1/payments/{shop.secret_key}")
    shop.get(f"/v1/payments?reference=4051234567&key={shop.secret_key}&payer=Somchai")
    assert recorder.write() == 7
    text = log_text()
    assert "S*** J***" in text
    secrets = [
        shop.secret_key[16:],
        SECRET[6:],
        "tok_test_visa",
        "hush",
        "4051234567",
        "Somchai",
        "Jaidee",
        "Bearer",
    ]
    assert [secret for secret in secrets if secret in text] == []


@pytest.mark.slow
def test_log_has_only_requests_of_the_merchant_with_a_valid_key(
    shop: Shop, other_shop: Shop, recorder: Recorder
) -> None:
    shop.get("/v1/payments", **{"X-Request-Id": "mine"})
    new_client().get("/v1/payments", headers={"Authorization": "Bearer tq_test_wrong"})
    new_client().get("/v1/payments")
    new_client().get("/healthz")
    assert recorder.write() == 1
    assert listed(other_shop) == []
    assert error_code(other_shop.get("/v1/requests/mine")) == (404, "request_not_found")


@pytest.mark.parametrize("request_id", ["unknown", "a" * 65, "%00", "a%20b", "%F0%9F%8D%9C"])
def test_unknown_request_is_not_found(shop: Shop, request_id: str) -> None:
    assert error_code(shop.get(f"/v1/requests/{request_id}")) == (404, "request_not_found")


def test_request_is_found_by_an_id_of_which_the_log_masks_a_part(shop: Shop, recorder: Recorder) -> None:
    given = "Somchai-4051234567"
    shop.get("/v1/payments?after=Somchai%20Jaidee", **{"X-Request-Id": given})
    recorder.write()
    found = shop.get(f"/v1/requests/{given}").json()
    assert found["request_id"] == "S...-...4567"
    assert "Somchai" not in json.dumps(found)
    assert [each["id"] for each in listed(shop, f"?request_id={given}")] == [found["id"]]


def test_newest_of_several_requests_with_the_same_id_is_returned(shop: Shop) -> None:
    make_records(shop, 1, created_at=clock.now() - timedelta(hours=1), status=500)
    make_records(shop, 1)
    assert shop.get("/v1/requests/req_x").json()["status"] == 200


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("", 3),
        ("?status=4xx", 1),
        ("?status=2xx", 2),
        ("?status=5xx", 0),
        ("?method=POST", 1),
        ("?route=/v1/refunds", 1),
        ("?key=abcd1234", 1),
        ("?request_id=req_x", 3),
        ("?request_id=other", 0),
        ("?start_date=2026-11-21", 2),
        ("?start_date=2026-11-21&timezone=Asia/Bangkok", 2),
        ("?start_date=2026-11-22&timezone=Pacific/Kiritimati", 0),
        ("?end_date=2026-11-20&timezone=America/New_York", 3),
        ("?end_date=2026-11-20", 1),
        ("?start_date=2026-11-21T03:00:00.500Z", 1),
        ("?end_date=2026-11-21T03:00:00.100Z", 2),
    ],
)
def test_requests_are_found_by_filters(shop: Shop, query: str, count: int) -> None:
    at = datetime(2026, 11, 21, 3, 0, 0, 100_000, tzinfo=UTC)
    make_records(shop, 1, created_at=at, method="POST", status=404)
    make_records(shop, 1, created_at=at + timedelta(milliseconds=700), key_id="abcd1234")
    make_records(shop, 1, created_at=at - timedelta(days=1), route="/v1/refunds")
    assert len(listed(shop, query)) == count


@pytest.mark.parametrize(
    "query",
    [
        "status=200",
        "method=PUT",
        "limit=0",
        "limit=101",
        "after=rlg_x",
        "after=pay_0oDFPXrTS4spMBBZozkykNHKN2t",
        "after=%00",
        "key=%00",
        "start_date=x",
        "timezone=Bangkok",
        "payment_id=",
        "start_date=2026-11-22&end_date=2026-11-20",
    ],
)
def test_wrong_query_of_the_request_log_is_refused(shop: Shop, query: str) -> None:
    assert error_code(shop.get(f"/v1/requests?{query}")) == (400, "invalid_parameters")


def test_pages_follow_each_other(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    made = make_records(shop, 5)
    seen, after = [], ""
    while True:
        page = shop.get(f"/v1/requests?limit=2{after}").json()
        seen += [each["id"] for each in page["requests"]]
        if page["next_after"] is None:
            break
        after = f"&after={page['next_after']}"
    assert seen == made


def test_page_with_filters_looks_at_a_bounded_number_of_rows(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "SCANNED", 2)
    (oldest,) = make_records(shop, 1, created_at=clock.now() - timedelta(hours=1), status=500)
    make_records(shop, 5)
    seen, after, pages = [], "", 0
    while True:
        page = shop.get(f"/v1/requests?status=5xx{after}").json()
        seen += [each["id"] for each in page["requests"]]
        pages += 1
        if page["next_after"] is None:
            break
        after = f"&after={page['next_after']}"
    assert seen == [oldest]
    assert pages >= 3


def test_log_that_is_switched_off_records_nothing(shop: Shop, recorder: Recorder, settings: Settings) -> None:
    settings.REQUEST_LOG_RETENTION_DAYS = 0
    shop.get("/v1/payments")
    assert recorder.write() == 0


def dropped() -> int:
    """How many requests were dropped since the last call. Stores all measurements."""
    taken = measurements.OF_PROCESS.take()
    process_reports.add(taken)
    return sum(count for key, (count, _) in taken.items() if key.name == measurements.DROPPED_REQUEST)


@pytest.mark.slow
def test_busy_merchant_does_not_push_out_others(
    shop: Shop, other_shop: Shop, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorders, "MAX_RECORDS_PER_MERCHANT", 2)
    for _ in range(5):
        shop.get("/v1/balance")
    other_shop.get("/v1/balance")
    assert recorder.write() == 3
    assert dropped() == 3
    assert "thaiqr_request_log_dropped_total 3.0" in new_client().get("/metrics").content.decode()


def test_full_buffer_drops_and_never_waits(
    shop: Shop, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorders, "MAX_BYTES", 100)
    shop.get("/v1/payments/pay_x")
    shop.get("/v1/payments")
    shop.get("/v1/payments/pay_x")
    assert recorder.write() + dropped() == 3


def test_records_are_dropped_while_the_database_fails(
    shop: Shop, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object) -> None:
        raise DatabaseError("down")

    shop.get("/v1/balance")
    with monkeypatch.context() as patch:
        patch.setattr(rows, "copy_values", fail)
        assert recorder.write() == 0
    shop.get("/v1/balance")
    assert recorder.write() == 1
    assert dropped() == 1


@pytest.mark.slow
def test_process_that_stops_waits_for_the_write_under_way(
    shop: Shop, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, may_end = threading.Event(), threading.Event()

    def hold(*args: object) -> None:
        began.set()
        may_end.wait(30)

    def write() -> None:
        recorder.write()
        connection.close()

    monkeypatch.setattr(rows, "copy_values", hold)
    shop.get("/v1/balance")
    write_under_way, stop = (threading.Thread(target=write, daemon=True) for _ in range(2))
    write_under_way.start()
    assert began.wait(30)
    stop.start()
    stop.join(0.3)
    assert stop.is_alive()
    may_end.set()
    stop.join(30)
    write_under_way.join(30)
    assert not stop.is_alive()


def test_request_id_of_the_service_finds_its_request(
    shop: Shop, other_shop: Shop, recorder: Recorder, admin_client: Client
) -> None:
    own = shop.get("/v1/balance")["X-Request-Id"]
    given = f"req_{'x' * 27}"
    shop.get("/v1/payments", **{"X-Request-Id": given})
    recorder.write()
    for request_id, path in ((own, "/v1/balance"), (given, "/v1/payments")):
        found = shop.get(f"/v1/requests/{request_id}").json()
        assert (found["request_id"], found["path"]) == (request_id, path)
        assert [each["id"] for each in listed(shop, f"?request_id={request_id}")] == [found["id"]]
        searched = admin_client.get("/admin/request_log/requestrecord/", {"q": request_id}).context["cl"]
        assert [(each.pk, each.request_id) for each in searched.result_list] == [(found["id"], request_id)]
        assert error_code(other_shop.get(f"/v1/requests/{request_id}")) == (404, "request_not_found")


def test_client_that_sends_back_an_id_of_the_service_changes_no_request(
    shop: Shop, other_shop: Shop, recorder: Recorder
) -> None:
    own = shop.get("/v1/balance")["X-Request-Id"]
    other_shop.get("/v1/payments", **{"X-Request-Id": own})
    shop.get("/v1/payments", **{"X-Request-Id": own})
    assert recorder.write() == 3
    assert [each["path"] for each in listed(shop, f"?request_id={own}")] == ["/v1/payments", "/v1/balance"]
    assert shop.get(f"/v1/requests/{own}").json()["path"] == "/v1/payments"
    assert [each["path"] for each in listed(other_shop, f"?request_id={own}")] == ["/v1/payments"]


@pytest.mark.parametrize("path", ["/Thai/v1/payments/{}", "/v1/payments/{}?x=1", "/v1/payments/{}/timeline"])
def test_path_is_shown_that_the_row_does_not_repeat(shop: Shop, recorder: Recorder, path: str) -> None:
    asked = path.format(shop.qr_code()["payment_id"])
    shop.get(asked)
    recorder.write()
    assert listed(shop)[0]["path"] == asked.replace("x=1", "x=[a+string+of+1+characters]")
    assert RequestRecord.objects.filter(path="").count() == 1 + ("?" not in path)


@pytest.mark.parametrize("given", ["", "till-7"])
def test_time_of_a_request_is_when_it_began(given: str) -> None:
    began_at = datetime(2026, 11, 21, 3, 4, 5, 123_000, tzinfo=UTC)
    with time_machine.travel(began_at, tick=False):
        request = RequestFactory().get("/v1/payments", headers={"X-Request-Id": given} if given else {})
        request.merchant_id = "mch_x"  # type: ignore[attr-defined]
        request_context.begin(request_id=request_context.request_id_for(given))
    with time_machine.travel(began_at + timedelta(seconds=2.5), tick=False):
        (row,) = recorders._rows([recorders._finished(request, HttpResponse(b""), 2.5)])
    values = dict(zip(recorders.COLUMNS, row, strict=True))
    assert (values["created_at"], values["duration_ms"]) == (began_at, 2_500)
    assert values["id"][:11] == ids.first("rlg_", began_at)[:11]


def rows_skipped(statement: str) -> int:
    """How many rows a query reads and leaves out."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN ANALYZE {statement}")
        plan = "\n".join(line for (line,) in cursor.fetchall())
    return sum(int(count) for count in re.findall(r"Rows Removed by .*: ([0-9]+)", plan))


def test_page_reads_no_rows_of_other_merchants(shop: Shop, other_shop: Shop) -> None:
    """A third of the rows are of this one, all old. By the primary key they seem to be near."""
    hour_ago = clock.now() - timedelta(hours=1)
    for second in range(500):
        at = hour_ago + timedelta(seconds=second)
        make_records(shop, 1, created_at=at, payment_id=PAYMENT)
        make_records(other_shop, 1, created_at=at)
    make_records(other_shop, 500)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE request_log_requestrecord")
    for filters in ({}, {"payment_id": PAYMENT}, {"request_id": "x"}):
        with CaptureQueriesContext(connection) as asked:
            services.page(shop.merchant, limit=20, **filters)  # type: ignore[arg-type]
        assert [statement for each in asked if rows_skipped(statement := each["sql"]) > 0] == []


def test_deferred_columns_are_read(shop: Shop) -> None:
    make_records(shop, 1)
    (record,) = RequestRecord.objects.only("status")
    assert (record.path, record.request_id) == ("/v1/payments", "req_x")


def test_request_of_an_unknown_path_or_method_is_recorded(shop: Shop, recorder: Recorder) -> None:
    shop.delete("/v1/payments")
    recorder.write()
    (request,) = listed(shop)
    assert (request["status"], request["error_code"]) == (405, "method_not_allowed")


def test_client_cannot_break_the_log_by_a_long_request_id(shop: Shop, recorder: Recorder) -> None:
    longest = ("tq_test_abcdefghx-" * 4)[:64]
    shop.get("/v1/payments", **{"X-Request-Id": longest})
    shop.get("/v1/payments/%00", **{"X-Request-Id": "x" * 64})
    assert recorder.write() == 2
