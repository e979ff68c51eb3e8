"""The statements of the sandbox bank, which knows nothing of our reading, are read."""

import pytest

from core import clock
from core.clock import BANGKOK
from reconciliation.models import BankTransaction
from sandbox import services as sandbox
from sandbox.models import SandboxEntry
from sandbox.statements import FORMATS
from tests.conftest import Shop
from tests.reconciliation.statements.statement_files import import_file, import_results

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("audit_is_clean")]


@pytest.mark.parametrize("form", FORMATS)
def test_sandbox_statement_matches_the_payments(shop: Shop, form: str) -> None:
    now, code = clock.now(), shop.qr_code()
    sandbox.execute(sandbox.plan(qr_data=code["qr_data"], scenario="reversed", now=now), now=now)
    day, entries = now.astimezone(BANGKOK).date(), SandboxEntry.objects.order_by("occurred_at", "id")
    biller_id = entries[0].payment.biller_id
    body = b"".join(FORMATS[form].write(biller_id, day, entries))
    results = import_results(body)
    assert [(result.result, result.match_result) for result in results] == [
        ("new", "applied"),
        ("new", "reversed"),
    ]
    payer = entries[0].payment
    movement = BankTransaction.objects.get(kind="credit")
    assert (movement.payer_name, movement.payer_bank_code) == (payer.payer_name, payer.payer_bank_code)
    assert import_file(body).is_clean
