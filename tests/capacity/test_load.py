"""What the bank of a measurement reports."""

import json

from django.conf import settings

from banks.base import ReportedTransaction
from banks.sandbox import SandboxBank
from config.capacity.load import notification
from core import clock
from core.thai import thaiqr

BILLER = "099400000000001"
REFERENCE = "ABCDEFGHIJ0123456789"
QR_DATA = thaiqr.bill_payment(biller_id=BILLER, reference1=REFERENCE, amount=150_000)


def test_service_reads_the_notification_of_the_bank() -> None:
    report, headers = notification(QR_DATA)
    body, adapter = json.dumps(report).encode(), SandboxBank(settings.SANDBOX_BANK_SECRET)
    adapter.verify(headers=headers, body=body, now=clock.now())
    reported = adapter.parse_notification(body)
    assert isinstance(reported, ReportedTransaction)
    assert (reported.biller_id, reported.reference1, reported.amount) == (BILLER, REFERENCE, 150_000)


def test_each_notification_is_about_another_bank_transaction() -> None:
    reports = [notification(QR_DATA)[0] for _ in range(2)]
    assert reports[0]["transaction_id"] != reports[1]["transaction_id"]
