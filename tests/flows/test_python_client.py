"""Shops written with the Python client alone, against a whole instance."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from thaiqr import AsyncThaiQR, Event, PaymentEvent, RefundEvent, ThaiQR, errors, webhooks
from thaiqr.choices import EventType

from core.thai.slips import Slip, slip_payload
from qrcodes import images
from tests.flows import flawed_proxy
from tests.flows.conftest import SECRET
from tests.flows.flawed_proxy import FlawedProxy
from tests.stack import Stack, wait_until
from tests.webhook_receiver import Receiver

pytestmark = pytest.mark.slow
EVENTS: tuple[EventType, ...] = ("payment.pending", "payment.succeeded", "refund.completed")
FLAWS = [
    flawed_proxy.loses_answer,
    flawed_proxy.cuts_answer,
    flawed_proxy.cuts_request,
    flawed_proxy.fails,
    flawed_proxy.is_busy,
]


@pytest.fixture
def client(stack: Stack) -> Iterator[ThaiQR]:
    with ThaiQR(stack.secret_key, base_url=stack.base_url) as running:
        yield running


@pytest.fixture
def proxy(stack: Stack) -> Iterator[FlawedProxy]:
    with FlawedProxy.running() as running:
        running.target, running.flaws = stack.base_url, []
        yield running


def received(endpoint: Receiver, event: str, payment_id: str) -> Any:
    """Wait for the webhook about a payment; return its verified event."""

    def matches(each: Event) -> bool:
        about = each.data.payment_id if isinstance(each, PaymentEvent | RefundEvent) else None
        return (each.event, about) == (event, payment_id)

    endpoint.wait_for(lambda _: any(matches(each) for each in events_of(endpoint)))
    return next(each for each in events_of(endpoint) if matches(each))


def events_of(endpoint: Receiver) -> list[Event]:
    return [webhooks.unwrap(request.body, request.headers, SECRET) for request in [*endpoint.requests]]


def test_shop_with_the_blocking_client(client: ThaiQR, endpoint: Receiver) -> None:
    hook = client.webhooks.create(url=endpoint.url(), events=EVENTS, secret=SECRET)
    code = client.qr_codes.create(
        amount=150_000, reference="order-17", metadata={"table": 4}, idempotency_key="python-order-17"
    )
    again = client.qr_codes.create(
        amount=150_000, reference="order-17", metadata={"table": 4}, idempotency_key="python-order-17"
    )
    assert again.qr_code_id == code.qr_code_id
    assert client.qr_codes.card(code.qr_code_id, size=300, lang="en").startswith(b"\x89PNG")
    client.sandbox.pay(qr_data=code.qr_data)
    paid: PaymentEvent = received(endpoint, "payment.succeeded", code.payment_id)
    assert (paid.data.amount, paid.data.reference, paid.data.metadata) == (150_000, "order-17", {"table": 4})

    refund = client.refunds.create(payment_id=code.payment_id, amount=75_000, reason="requested_by_customer")
    sent_back: RefundEvent = received(endpoint, "refund.completed", code.payment_id)
    assert (sent_back.data.refund_id, sent_back.data.amount) == (refund.refund_id, 75_000)
    payment = client.payments.get(code.payment_id)
    assert (payment.status, payment.amount_refunded, payment.refunds.remaining) == (
        "succeeded",
        75_000,
        75_000,
    )
    assert payment.completed_at is not None

    client.webhooks.delete(hook.webhook_id)
    with pytest.raises(errors.NotFoundError, match="webhook_not_found"):
        client.webhooks.get(hook.webhook_id)


def test_shop_with_the_async_client(stack: Stack, endpoint: Receiver) -> None:
    async def shop() -> None:
        async with AsyncThaiQR(stack.secret_key, base_url=stack.base_url) as client:
            hook = await client.webhooks.create(url=endpoint.url(), events=EVENTS, secret=SECRET)
            first, second = await asyncio.gather(
                client.qr_codes.create(amount=20_000, reference="async-1"),
                client.qr_codes.create(amount=30_000, reference="async-1"),
            )
            await client.sandbox.pay(qr_data=first.qr_data)
            paid = await asyncio.to_thread(received, endpoint, "payment.succeeded", first.payment_id)
            assert paid.data.amount == 20_000
            await client.refunds.create(payment_id=first.payment_id, amount=10_000)
            await asyncio.to_thread(received, endpoint, "refund.completed", first.payment_id)
            found = [each async for each in client.payments.list(reference="async-1", page_size=1)]
            assert {each.payment_id for each in found} == {first.payment_id, second.payment_id}
            ended = await client.qr_codes.expire(second.qr_code_id)
            assert ended.status == "expired"
            await client.webhooks.delete(hook.webhook_id)

    asyncio.run(shop())


def test_lists_of_the_service_are_read_to_their_end(client: ThaiQR) -> None:
    made = [client.qr_codes.create(amount=100 + number, reference="paged") for number in range(5)]
    newest_first = [code.payment_id for code in reversed(made)]
    assert [each.payment_id for each in client.payments.list(reference="paged", page_size=2)] == newest_first
    assert [each.payment_id for each in client.qr_codes.list(reference="paged", page_size=3)] == newest_first
    assert client.payments.list(reference="paged", page_size=2).first_page().total == 5
    timeline = client.payments.timeline(made[0].payment_id, page_size=1)
    assert "payment.pending" in {entry.type for entry in timeline}
    feed = list(client.events.follow(page_size=2))
    assert [each.sequence for each in feed] == list(range(1, len(feed) + 1))
    assert {code.payment_id for code in made} <= {
        each.data.payment_id for each in feed if isinstance(each, PaymentEvent)
    }
    assert len({bank.bank_code for bank in client.banks.list()}) > 20
    assert client.balance.get().currency == "THB"
    assert list(client.balance.transactions(page_size=50)) is not None
    assert list(client.requests.list(page_size=2, route="/v1/nothing")) == []


@pytest.mark.parametrize("flaw", FLAWS, ids=lambda flaw: flaw.__name__)
def test_retries_over_a_flawed_network_create_one_payment(
    stack: Stack, proxy: FlawedProxy, flaw: flawed_proxy.Flaw
) -> None:
    reference = f"flawed-{flaw.__name__}"
    with ThaiQR(stack.secret_key, base_url=proxy.base_url) as client:
        proxy.flaws = [flaw, flaw, flaw]
        code = client.qr_codes.create(amount=10_000, reference=reference)
        found = list(client.payments.list(reference=reference))
    assert [each.payment_id for each in found] == [code.payment_id]
    assert len(proxy.to("/v1/qr-codes")) == 4


def test_deleting_a_webhook_whose_answer_is_lost_succeeds(
    stack: Stack, proxy: FlawedProxy, endpoint: Receiver
) -> None:
    with ThaiQR(stack.secret_key, base_url=proxy.base_url) as client:
        hook = client.webhooks.create(url=endpoint.url(), events=["refund.failed"])
        assert len(client.webhooks.get_secret(hook.webhook_id).secret) > 30
        proxy.flaws = [flawed_proxy.loses_answer]
        client.webhooks.delete(hook.webhook_id)


def test_every_refusal_reaches_the_shop_as_its_error(stack: Stack, client: ThaiQR) -> None:
    with pytest.raises(errors.ValidationError) as raised:
        client.qr_codes.create(amount=99)
    assert (raised.value.code, raised.value.param, raised.value.status) == ("invalid_amount", "amount", 400)
    assert raised.value.request_id
    with pytest.raises(errors.PaymentError) as declined:
        client.payments.create(token_id="tok_test_declined", amount=10_000)
    assert client.payments.get(declined.value.payment_id or "").status == "failed"
    client.qr_codes.create(amount=10_000, idempotency_key="python-one-order")
    with pytest.raises(errors.IdempotencyError, match="idempotency_key_reused"):
        client.qr_codes.create(amount=10_001, idempotency_key="python-one-order")
    with (
        ThaiQR("tq_test_wrong", base_url=stack.base_url) as stranger,
        pytest.raises(errors.AuthenticationError),
    ):
        stranger.balance.get()


def test_test_merchant_lets_time_pass(client: ThaiQR) -> None:
    code = client.qr_codes.create(amount=10_000, expiry_minutes=5)
    moved = client.sandbox.advance_clock(advance_minutes=6)
    assert (moved.advanced_seconds >= 360, moved.moved.expired >= 1) == (True, True)
    assert client.payments.get(code.payment_id).status == "expired"
    client.sandbox.reset_clock()
    assert client.sandbox.get_clock().advanced_seconds == 0


def test_withdrawal_is_created_and_read(client: ThaiQR) -> None:
    code = client.qr_codes.create(amount=50_000)
    client.sandbox.pay(qr_data=code.qr_data)
    wait_until(lambda: client.payments.get(code.payment_id).status == "succeeded", 60)
    sent = client.withdrawals.create(
        amount=20_000, bank_code="SCB", bank_account="4051234567", account_name="Somtam House"
    )
    read: Callable[[], Any] = lambda: client.withdrawals.get(sent.withdrawal_id)  # noqa: E731
    wait_until(lambda: read().status == "succeeded", 60)
    assert (read().bank_account, read().amount) == ("4567", 20_000)


def test_pictures_of_slips_are_checked(client: ThaiQR, stack: Stack) -> None:
    code = client.qr_codes.create(amount=150_000)
    picture = images.png(slip_payload(Slip("014", "NOBODYKNOWSTHIS00000")))
    found = client.slips.check(picture=picture, payment_id=code.payment_id, amount=150_000)
    assert (found.verdict, found.bank, found.payment_id) == ("not_found", "014", None)
    assert client.slips.check(picture=picture + bytes(6_000_000)).verdict == "not_found"
    assert client.slips.check(qr_data="x").verdict == "unreadable"
    with pytest.raises(errors.ValidationError) as refused:
        client.slips.check(picture=bytes(10_100_000))
    assert refused.value.code == "request_too_large"
    with (
        ThaiQR(stack.secret_key[:-1] + "x", base_url=stack.base_url) as stranger,
        pytest.raises(errors.AuthenticationError),
    ):
        stranger.slips.check(picture=picture)
