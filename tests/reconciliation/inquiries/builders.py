"""A bank with scripted answers, and runs of inquiries at a chosen time."""

import json
import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models.functions import Now

from banks import InquiryFailed, InquiryRequest, InquiryResult, ReportedTransaction
from banks.sandbox import SandboxBank
from core import clock, ids
from core.thai import thaiqr
from payments.models import Payment
from qrcodes.models import QrCode
from reconciliation.inquiries import bank_calls, batches, scan, services as inquiries
from reconciliation.models import BankRateLimit, Inquiry, InquiryAnswer
from tests.conftest import Shop
from tests.factories import PaymentFactory

NOTHING = InquiryResult(b"[]", ())
Reply = InquiryResult | BaseException | Callable[[], InquiryResult]


class FakeBank(SandboxBank):
    """A sandbox bank that gives these answers one after the other, and then repeats the last."""

    def __init__(self, *replies: Reply, per_second: float = 50) -> None:
        super().__init__(settings.SANDBOX_BANK_SECRET)
        self.calls_per_second = per_second
        self.replies: list[Reply] = list(replies) or [NOTHING]
        self.questions: list[InquiryRequest] = []
        self.silent_about: set[str | None] = set()
        self._lock = threading.Lock()

    def inquire(self, question: InquiryRequest) -> InquiryResult:
        with self._lock:
            self.questions.append(question)
            if question.reference1 in self.silent_about:
                raise InquiryFailed
            reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, BaseException):
            raise reply
        return reply if isinstance(reply, InquiryResult) else reply()

    @property
    def references(self) -> list[str]:
        """The reference1 of each inquiry."""
        return [question.reference1 for question in self.questions]


Answering = Callable[..., FakeBank]


class Killed(BaseException):
    """The process dies here: no product code may catch this."""


def create_codes(shop: Shop, count: int = 1, *, minutes: int = 60) -> list[str | None]:
    """Create codes and return their references."""
    codes = [shop.qr_code(expiry_minutes=minutes) for _ in range(count)]
    return [thaiqr.parse(code["qr_data"]).reference1 for code in codes]


def found(*reports: dict[str, Any]) -> InquiryResult:
    """An answer with these bank transactions."""
    adapter = SandboxBank(settings.SANDBOX_BANK_SECRET)
    notifications = [adapter.parse_notification(json.dumps(each).encode()) for each in reports]
    return InquiryResult(
        json.dumps(reports).encode(),
        tuple(each for each in notifications if isinstance(each, ReportedTransaction)),
    )


def sweep(seconds: float = 6, *, since: datetime | None = None) -> int:
    """Make the inquiries that are due in some seconds, with every bank available. Returns how many."""
    at = clock.to_millisecond((since or clock.now()) + timedelta(seconds=seconds))
    BankRateLimit.objects.update(available_at=Now())
    return inquiries.inquire_due(now=lambda: at)


def run_batch(seconds: float = 6) -> tuple[int, float]:
    """Run one batch in some seconds, with every bank available.

    Returns how many questions were put, and for how many seconds the bank is left alone after them.
    """
    at = clock.to_millisecond(clock.now() + timedelta(seconds=seconds))
    BankRateLimit.objects.update(available_at=Now())
    scan.create_inquiries(now=at)
    batch = batches.start(at)
    if batch is None:
        return 0, 0.0
    answers = [bank_calls.prepare_call(inquiry, at)() for inquiry in batch.inquiries]
    before = database_now()
    batches.finish(batch, answers, at)
    assert (
        before
        <= BankRateLimit.objects.get(pk=batch.rate_limit.pk).available_at - batch.pause
        <= database_now()
    )
    return len(answers), batch.pause.total_seconds()


def database_now() -> datetime:
    """The time of the database, which time_machine does not change."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        now: datetime = cursor.fetchone()[0]
    return now


def end_leases() -> None:
    """End all leases, as if the workers had crashed."""
    Inquiry.objects.update(lease_until=Now())
    BankRateLimit.objects.update(available_at=Now())


def code_expiry() -> datetime:
    """The expiry of the only code."""
    expires_at = Payment.objects.get().expires_at
    assert expires_at is not None
    return expires_at


def outcomes() -> list[str]:
    """The outcomes of all inquiries in order."""
    answers = InquiryAnswer.objects.order_by("id")
    return [answer.outcome for answer in answers for _ in range(answer.answer_count)]


def create_payments(shop: Shop, at: datetime, count: int = 1, **fields: Any) -> list[str]:
    """Create payments and the rows of their codes, and return their ids."""
    payments = PaymentFactory.build_batch(count, merchant=shop.merchant, created_at=at, **fields)
    Payment.objects.bulk_create(payments)
    terms = {"bank": shop.merchant.bank, "biller_id": shop.merchant.biller_id, "qr_data": "-"}
    QrCode.objects.bulk_create(
        QrCode(merchant=each.merchant, payment=each, reference1=each.pk[-20:], created_at=at, **terms)
        for each in payments
        if each.qr_code_id
    )
    return [payment.id for payment in payments]


def copy_ten_thousand(shop: Shop, at: datetime) -> None:
    """Copy rows by SQL: the factory would take minutes."""
    (first,) = create_payments(shop, at)
    copies = [ids.new("pay_", at) for _ in range(9999)]
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO payments_payment SELECT (jsonb_populate_record(first, jsonb_build_object("
            "'id', copy, 'qr_code_id', replace(copy, 'pay_', 'qr_')))).* "
            "FROM payments_payment first, unnest(%s::text[]) copy WHERE first.id = %s",
            [copies, first],
        )


def shared_buffers(plan: str) -> int:
    """The number of 8 kB pages that a statement read."""
    line = next(line for line in plan.splitlines() if "Buffers:" in line)
    return sum(int(part.split("=")[1]) for part in line.split() if part.startswith(("hit=", "read=")))
