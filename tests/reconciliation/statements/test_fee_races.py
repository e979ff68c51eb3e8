"""Files with fees, callbacks and decisions of staff at the same moment: one fee for each payment."""

import signal
from datetime import timedelta
from functools import partial

import pytest
from django.db import transaction

from core import clock
from core.database import rows
from ledger.models import Journal
from payments.models import Payment
from reconciliation.matching import services as matching
from reconciliation.models import BankNotification, BankTransaction, StatementLine
from tests import killed_worker
from tests.concurrency import run_concurrently
from tests.conftest import SandboxBankClient, Shop, new_client
from tests.examples import examples
from tests.payments.test_fees import set_terms
from tests.reconciliation.builders import decide
from tests.reconciliation.statements.statement_files import HEADER, csv_file, import_file
from tests.reconciliation.statements.test_fees import WITH_FEE, with_fee
from tests.reconciliation.statements.test_tables import line_of
from tests.stack import wait_until
from tests.tables import LOCKS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("audit_is_clean"),
]
ROUNDS = examples(20)


def callback(code: dict[str, object]) -> None:
    SandboxBankClient(new_client()).notify(code, paid_at=clock.now())


def sweep() -> None:
    matching.apply_unapplied(now=clock.now() + matching.UNAPPLIED_AFTER * 2)


def test_concurrent_callback_and_file_give_the_payment_the_fee_of_the_file(shop: Shop) -> None:
    set_terms(shop, clock.now() - timedelta(days=2), rate=100)
    for _ in range(ROUNDS):
        code = shop.qr_code(amount=150_000)
        file = csv_file(with_fee(code), header=WITH_FEE)
        run_concurrently(partial(callback, code), partial(import_file, file), partial(import_file, file))
        sweep()
        payment = Payment.objects.get(pk=code["payment_id"])
        assert (payment.fee, payment.fee_vat) == (1_200, 84)
        assert not payment.bank_transactions.exclude(notifications__result="fee_differs").exists()
        assert BankTransaction.objects.filter(payment=payment).count() == 1
    assert not StatementLine.objects.filter(is_fee_due=True).exists()


def test_of_two_concurrent_files_with_other_fees_one_is_taken_and_one_is_asked(shop: Shop) -> None:
    for _ in range(ROUNDS):
        code = shop.qr_code(amount=150_000)
        callback(code)
        line = line_of(code)
        files = [csv_file(f"{line},{fee},0.84", header=WITH_FEE) for fee in ("12.00", "13.00")]
        run_concurrently(*(partial(import_file, each) for each in files))
        payment = Payment.objects.get(pk=code["payment_id"])
        assert payment.fee in (1_200, 1_300)
        assert Journal.objects.filter(subject_id=payment.pk, type="fee_added").count() == 1
        asked = BankNotification.objects.filter(bank_transaction__payment=payment, result="conflict")
        assert asked.count() == 1


def test_concurrent_decision_and_file_give_the_payment_the_fee_of_the_file(shop: Shop) -> None:
    for _ in range(ROUNDS):
        code = shop.qr_code(amount=150_000)
        SandboxBankClient(new_client()).notify(code, satang=140_000, paid_at=clock.now())
        held = BankTransaction.objects.get(payment=code["payment_id"])
        file = csv_file(with_fee(code, amount="1400.00"), header=WITH_FEE)
        run_concurrently(partial(decide, "accept", held.id), partial(import_file, file))
        sweep()
        assert Payment.objects.get(pk=code["payment_id"]).fee == 1_200


IMPORT = """
from tests.reconciliation.statements.statement_files import import_file
import_file({body!r})
"""
STOP_AT_FEE = """
CREATE FUNCTION stop_at_fee() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(7);
    RETURN NEW;
END $$;
CREATE TRIGGER stop_at_fee BEFORE UPDATE OF fee ON payments_payment
    FOR EACH ROW EXECUTE FUNCTION stop_at_fee()
"""
BLOCKED = f"SELECT count(*) FROM {LOCKS} WHERE NOT granted AND locktype = 'advisory' AND objid = 7"


@pytest.mark.parametrize("header", [WITH_FEE, HEADER])
def test_sweep_takes_the_fee_of_an_import_that_was_killed(shop: Shop, header: str) -> None:
    """Killed while it corrects the payment. header: of a file before, so that the fee comes later."""
    code = shop.qr_code(amount=150_000)
    callback(code)
    line = line_of(code)
    if header == HEADER:
        import_file(csv_file(line))
    rows.run(STOP_AT_FEE, [])
    try:
        with transaction.atomic():
            rows.run("SELECT pg_advisory_xact_lock(7)", [])
            file = csv_file(f"{line},12.00,0.84", header=WITH_FEE)
            worker = killed_worker.start(IMPORT.strip().replace("\n", "; ").format(body=file))
            wait_until(lambda: rows.run(BLOCKED, []).fetchone() == (1,), 60)
            worker.send_signal(signal.SIGKILL)
            worker.wait()
        wait_until(killed_worker.has_left_the_database, 60)
    finally:
        rows.run("DROP FUNCTION stop_at_fee CASCADE", [])
    assert (Payment.objects.get().fee, StatementLine.objects.get().is_fee_due) == (0, True)
    sweep()
    assert (Payment.objects.get().fee, StatementLine.objects.get().is_fee_due) == (1_200, False)
