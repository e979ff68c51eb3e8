"""The statements of the sandbox bank, which knows nothing of our reading, are read."""

import pytest

from core import clock
from core.clock import BANGKOK
from receipts.models import Receipt
from sandbox import services as sandbox
from sandbox.models import SandboxEntry
from sandbox.statements import FORMS
from tests.conftest import Shop
from tests.receipts.statements.cast import load, results_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("books_are_right")]


@pytest.mark.parametrize("form", FORMS)
def test_what_the_sandbox_bank_writes_is_what_happened(shop: Shop, form: str) -> None:
    now, code = clock.now(), shop.qr_code()
    sandbox.carry_out(sandbox.order(qr_data=code["qr_data"], scenario="reversed", now=now), now=now)
    day, entries = now.astimezone(BANGKOK).date(), SandboxEntry.objects.order_by("at", "id")
    biller_id = entries[0].payment.biller_id
    body = b"".join(FORMS[form].write(biller_id, day, entries))
    results = results_of(body)
    assert [(result.result, result.outcome) for result in results] == [
        ("new", "applied"),
        ("new", "reversed"),
    ]
    payer = entries[0].payment
    receipt = Receipt.objects.get(kind="credit")
    assert (receipt.payer_name, receipt.payer_bank_code) == (payer.payer_name, payer.payer_bank_code)
    assert load(body).is_clean
