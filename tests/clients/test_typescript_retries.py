"""What the TypeScript client does when the service is slow, busy, broken or gone: over real sockets."""

import itertools
import json
from typing import Any

import pytest

from tests import webhook_receiver
from tests.clients import typescript_package as package
from tests.clients.typescript_package import KEY, Case, Outcome, refusal
from tests.webhook_receiver import Reply

pytestmark = pytest.mark.slow
BANKS = Reply(body=b'{"banks": []}')
PAID = Reply(body=b'{"bank_transaction_id": "sbp_1", "scenario": "paid", "accepted": true}')
CUT = Reply(closes=True)
HANGS = Reply(hangs=True)
BUSY = refusal(429, "rate_limit_exceeded", "rate_limit_error", **{"Retry-After": "1"})
LONG = refusal(429, "rate_limit_exceeded", "rate_limit_error", **{"Retry-After": "61"})
DOWN = refusal(503, "service_unavailable", "api_error")
GONE = refusal(404, "webhook_not_found", "not_found")
PROXY = Reply(502, body=b"<html>Bad Gateway</html>")
RUNNING = refusal(409, "idempotency_key_in_progress", "idempotency_error", **{"Retry-After": "0"})
SLOW = refusal(408, "request_timeout", "validation_error")
PAY: list[Any] = [{"qr_data": "000201"}]
QUICK = {"timeout": 400}


def payment(status: str) -> Reply:
    return Reply(body=json.dumps({"payment_id": "pay_1", "status": status}).encode())


TEMPORARY = {
    "busy": BUSY, "down": DOWN, "running": RUNNING, "slow": SLOW, "proxy": PROXY, "cut": CUT,
}  # fmt: skip
REFUSALS = {
    "ValidationError": refusal(400, "invalid_amount", "validation_error"),
    "AuthenticationError": refusal(401, "authentication_failed", "authentication_error"),
    "PermissionDeniedError": refusal(403, "insufficient_scope", "permission_error"),
    "NotFoundError": refusal(404, "payment_not_found", "not_found"),
    "PaymentError": refusal(402, "insufficient_funds", "payment_error"),
    "IdempotencyError": refusal(409, "idempotency_key_reused", "idempotency_error"),
    "ApiError": refusal(418, "teapot", "constructor"),
}
NOT_OURS = {
    "login-page": Reply(body=b"<html>a login page</html>"),
    "other-object": Reply(body=b'{"other": 1}'),
    "list": Reply(body=b"[]"),
    "redirect": Reply(302, {"Location": "https://elsewhere.example/"}),
}
SETTINGS: dict[str, dict[str, Any]] = {
    "no-key": {"apiKey": " "}, "key-of-two-words": {"apiKey": "a b"}, "key-of-letters": {"apiKey": "ก"},
    "no-url": {"baseUrl": ""}, "ftp": {"baseUrl": "ftp://x"}, "host": {"baseUrl": "pay.example.com"},
    "query": {"baseUrl": "https://x/?a=1"}, "bracket": {"baseUrl": "http://[x"},
    "timeout": {"timeout": 0}, "retries": {"maxRetries": -1},
}  # fmt: skip
CASES = {
    **{name: Case("banks.list", [], [trouble, trouble, BANKS]) for name, trouble in TEMPORARY.items()},
    **{name: Case("sandbox.pay", PAY, [reply]) for name, reply in REFUSALS.items()},
    **{name: Case("banks.list", [], [reply]) for name, reply in NOT_OURS.items()},
    **{name: Case("banks.list", [], [BANKS], options) for name, options in SETTINGS.items()},
    "same-key": Case("sandbox.pay", PAY, [CUT, DOWN, PAID]),
    "hangs": Case("sandbox.pay", PAY, [HANGS, PAID], QUICK),
    "hangs-always": Case("sandbox.pay", PAY, [HANGS], QUICK | {"maxRetries": 1}),
    "own-key": Case("sandbox.pay", [*PAY, {"idempotencyKey": "order-1"}], [CUT, PAID]),
    "down-always": Case("banks.list", [], [DOWN]),
    "cut-always": Case("sandbox.pay", PAY, [CUT]),
    "never-again": Case("banks.list", [], [DOWN], {"maxRetries": 0}),
    "deleted-before": Case("webhooks.delete", ["wh_1"], [CUT, GONE]),
    "never-there": Case("webhooks.delete", ["wh_1"], [GONE]),
    "long-wait": Case("banks.list", [], [LONG]),
    "ended": Case("banks.list", [], [HANGS], ends_after=200),
    "ended-in-a-pause": Case("banks.list", [], [Reply(429, {"Retry-After": "50"})], ends_after=200),
    "ended-before": Case("banks.list", [], [BANKS], ends_after=0),
    "warned": Case("banks.list", [], [Reply(200, {"Warning-Amount": "100 times"}, BANKS.body)]),
    "quoted-id": Case("payments.get", ["a/../b?c#d e"], [GONE]),
    "once": Case("banks.list", [{"maxRetries": 0}], [DOWN]),
    "soon": Case("banks.list", [{"timeout": 400}], [HANGS, BANKS]),
    "wrong-limit": Case("banks.list", [{"timeout": 0}], [BANKS]),
    "paid": Case("payments.waitUntilPaid", ["pay_1"], [payment("pending"), DOWN, payment("succeeded")]),
    "expired": Case("payments.waitUntilPaid", ["pay_1"], [payment("pending"), payment("expired")]),
    "pending": Case("payments.waitUntilPaid", ["pay_1", {"seconds": 0}], [payment("pending")]),
    "pending-a-while": Case("payments.waitUntilPaid", ["pay_1", {"seconds": 0.5}], [payment("pending")]),
    "ended-waiting": Case("payments.waitUntilPaid", ["pay_1"], [payment("pending")], ends_after=200),
    **{f"id-{given}": Case("payments.get", [given], [GONE]) for given in ("", ".", "..")},
}


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Outcome]:
    return package.carry_out(CASES)


@pytest.fixture
def outcome(outcomes: dict[str, Outcome], request: pytest.FixtureRequest) -> Outcome:
    return outcomes[request.param]


def of(*names: str) -> pytest.MarkDecorator:
    """Run a test on the outcomes of cases."""
    return pytest.mark.parametrize("outcome", names, indirect=True)


def keys(outcome: Outcome) -> list[str]:
    return [request.headers["idempotency-key"] for request in outcome.requests]


@of(*TEMPORARY)
def test_temporary_trouble_is_retried(outcome: Outcome) -> None:
    assert (outcome.value, len(outcome.requests)) == ([], 3)


@of("busy")
def test_retry_after_is_waited_for(outcome: Outcome) -> None:
    first, second, third = (request.received_at for request in outcome.requests)
    assert second - first >= 1
    assert third - second >= 1


@of("same-key", "hangs")
def test_retries_of_a_post_have_the_same_idempotency_key(outcome: Outcome) -> None:
    assert outcome.value["bank_transaction_id"] == "sbp_1"
    assert len(keys(outcome)) >= 2
    assert len(set(keys(outcome))) == 1


def test_each_call_has_a_key_of_its_own_or_the_given_one(outcomes: dict[str, Outcome]) -> None:
    assert keys(outcomes["same-key"])[0] != keys(outcomes["hangs"])[0]
    assert keys(outcomes["own-key"]) == ["order-1", "order-1"]


@of(*REFUSALS)
def test_refusal_is_thrown_at_once_as_the_class_of_its_type(
    outcome: Outcome, request: pytest.FixtureRequest
) -> None:
    error = outcome.error or {}
    assert error["kinds"][0] == error["name"] == request.node.callspec.params["outcome"]
    assert {"ApiError", "ThaiQRError", "Error"} <= set(error["kinds"])
    assert (error["param"], error["detail"], error["message"]) == ("amount", "is wrong", "No.")
    assert (error["requestId"], [error["idempotencyKey"]]) == ("req-1", keys(outcome))


@of("down-always")
def test_last_error_is_thrown_after_all_retries(outcome: Outcome) -> None:
    assert (outcome.kind, len(outcome.requests)) == ("ServerError", 4)
    assert (outcome.error or {})["code"] == "service_unavailable"


@of("never-again")
def test_retries_can_be_turned_off(outcome: Outcome) -> None:
    assert (outcome.kind, len(outcome.requests)) == ("ServerError", 1)


@of("once")
def test_one_call_has_other_retries(outcome: Outcome) -> None:
    assert (outcome.kind, len(outcome.requests)) == ("ServerError", 1)


@of("soon")
def test_one_call_has_another_time_out(outcome: Outcome) -> None:
    assert (outcome.value, len(outcome.requests)) == ([], 2)


@of("paid")
def test_waiting_ends_when_the_payment_is_paid(outcome: Outcome) -> None:
    assert (outcome.value["status"], len(outcome.requests)) == ("succeeded", 3)
    first, second, _ = (request.received_at for request in outcome.requests)
    assert second - first >= 0.9


@of("expired", "pending")
def test_payment_that_is_not_paid_is_an_error(outcome: Outcome, request: pytest.FixtureRequest) -> None:
    assert outcome.kind == "NotPaidError"
    name = request.node.callspec.params["outcome"]
    assert (outcome.error or {})["payment"]["status"] == name
    assert len(outcome.requests) == {"expired": 2, "pending": 1}[name]


@of("pending-a-while")
def test_waiting_lasts_to_its_deadline(outcome: Outcome) -> None:
    assert (outcome.kind, outcome.seconds >= 0.5) == ("NotPaidError", True)


@of("cut-always", "hangs-always")
def test_service_that_is_gone_is_a_network_error_with_the_key(outcome: Outcome) -> None:
    assert outcome.kind == "NetworkError"
    assert set(keys(outcome)) == {(outcome.error or {})["idempotencyKey"]}


def test_pauses_grow(outcomes: dict[str, Outcome]) -> None:
    sent = [request.received_at for request in outcomes["down-always"].requests]
    pauses = [later - earlier for earlier, later in itertools.pairwise(sent)]
    assert all(pause >= least for pause, least in zip(pauses, [0.125, 0.25, 0.5], strict=True))


def test_delete_whose_answer_was_lost_is_done(outcomes: dict[str, Outcome]) -> None:
    assert outcomes["deleted-before"].error is None
    assert outcomes["never-there"].kind == "NotFoundError"


@of("long-wait")
def test_long_retry_after_is_left_to_the_caller(outcome: Outcome) -> None:
    assert (outcome.kind, len(outcome.requests)) == ("RateLimitError", 1)
    assert (outcome.error or {})["retryAfter"] == 61


@of("ended", "ended-in-a-pause", "ended-before", "ended-waiting")
def test_signal_ends_a_request_and_its_retries(outcome: Outcome) -> None:
    assert (outcome.error or {})["name"] in {"TimeoutError", "AbortError"}
    assert len(outcome.requests) <= 1


@of(*NOT_OURS)
def test_answer_that_is_not_of_this_api_is_refused(outcome: Outcome) -> None:
    assert (outcome.kind, len(outcome.requests)) == ("UnexpectedResponseError", 1)


@of("busy")
def test_request_says_who_asks(outcome: Outcome) -> None:
    headers = outcome.requests[0].headers
    assert headers["authorization"] == f"Bearer {KEY}"
    assert headers["user-agent"].startswith("thaiqr-typescript/")


@of("warned")
def test_warnings_of_the_service_are_passed_on(outcome: Outcome) -> None:
    assert outcome.warnings == ["GET /v1/banks: Warning-Amount: 100 times"]


def test_key_appears_in_no_log_of_the_client_or_an_error(outcomes: dict[str, Outcome]) -> None:
    assert [name for name, outcome in outcomes.items() if KEY in outcome.shown] == []


@of(*SETTINGS, "wrong-limit")
def test_missing_or_malformed_settings_are_refused(outcome: Outcome) -> None:
    assert (outcome.kind, outcome.requests) == ("TypeError", [])


def test_settings_come_from_the_environment() -> None:
    with webhook_receiver.running_receiver(BANKS) as service:
        call = {"method": "banks.list", "arguments": [], "options": {}}
        environment = {"THAIQR_API_KEY": KEY, "THAIQR_BASE_URL": service.base_url + "/"}
        [found] = package.run("calls.ts", [call], **environment)
    assert found["value"] == []
    assert service.requests[0].path == "/v1/banks"


@of("id-", "id-.", "id-..")
def test_id_that_names_another_path_is_refused(outcome: Outcome) -> None:
    assert (outcome.kind, outcome.requests) == ("TypeError", [])


@of("quoted-id")
def test_id_is_quoted_in_the_path(outcome: Outcome) -> None:
    assert outcome.requests[0].path == "/quoted-id/v1/payments/a%2F..%2Fb%3Fc%23d%20e"
