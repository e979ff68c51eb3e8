"""Orders that a restore lost: compare them with the list of the bank, and record them again."""

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from approvals.models import Approval
from audit_trail.acts import Act
from audit_trail.models import AuditRecord
from banks import TransferResult
from core import clock, ids
from operations.audit import lost_orders
from refunds.completion import TRANSFER_HANDLER as REFUNDS
from refunds.models import Refund
from tests.conftest import SandboxBankClient, Shop
from tests.refunds.builders import RefundShop
from tests.transfers.builders import Serving
from tests.withdrawals.builders import balance, fund, send_due_withdrawals, withdrawn
from transfers import safe_mode, services as transfers
from transfers.models import Transfer, TransferState
from withdrawals.models import Withdrawal

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("audit_is_clean")]
DONE, MISSING = TransferResult("succeeded", "b-1"), TransferResult("unknown")
PAYEE = ("--bank", "SCB", "--account", "4051234567", "--name", "Somtam House")


def record(*arguments: str, reason: str = "In the list of the bank") -> str:
    return str(call_command("record_lost_order", *arguments, reason=reason, stdout=StringIO()))


def lost_withdrawal(shop: Shop, order_id: str = "") -> tuple[str, ...]:
    order_id = order_id or ids.new("wd_", clock.now())
    return ("withdrawal", order_id, shop.merchant.id, "--amount", "100000", *PAYEE)


@pytest.fixture
def paused() -> None:
    safe_mode.pause(reason="A restore", now=clock.now())


@pytest.mark.usefixtures("paused")
@pytest.mark.slow
def test_lost_withdrawal_is_recorded_and_ends_as_at_its_bank(
    shop: Shop, bank: SandboxBankClient, served_by: Serving
) -> None:
    fund(shop, bank)
    asked, arguments = served_by(inquiries=[DONE]), lost_withdrawal(shop)
    assert "Its bank says: succeeded" in record(*arguments)
    send_due_withdrawals()
    found = Withdrawal.objects.get()
    assert (found.id, found.status, found.amount) == (arguments[1], "succeeded", 100_000)
    assert (asked.sent, balance(shop)) == ([], (50_000, 0))
    written = AuditRecord.objects.get(act=Act.LOST_ORDER_RECORDED)
    assert (written.object_id, written.reason) == (found.id, "In the list of the bank")


@pytest.mark.usefixtures("paused")
@pytest.mark.slow
def test_lost_refund_is_recorded_and_ends_as_at_its_bank(
    shop: Shop, bank: SandboxBankClient, served_by: Serving
) -> None:
    payment_id = RefundShop(shop, bank).paid()
    asked, refund_id = served_by(inquiries=[DONE]), ids.new("ref_", clock.now())
    record("refund", refund_id, payment_id, "--amount", "50000")
    transfers.run_due("refund", REFUNDS, now=clock.now)
    found = Refund.objects.get()
    assert (found.id, found.status, found.amount, asked.sent) == (refund_id, "completed", 50_000, [])
    assert shop.payment(payment_id)["amount_refunded"] == 50_000


@pytest.mark.usefixtures("paused")
@pytest.mark.slow
def test_lost_order_above_the_limit_waits_for_a_second_person(
    shop: Shop, bank: SandboxBankClient, served_by: Serving, settings: Settings
) -> None:
    settings.APPROVAL_ITEM_LIMIT = 50_000
    fund(shop, bank)
    served_by(inquiries=[DONE])
    record(*lost_withdrawal(shop))
    send_due_withdrawals()
    assert Transfer.objects.get().state == TransferState.HELD and Approval.objects.get().status == "waiting"


@pytest.mark.usefixtures("paused")
@pytest.mark.slow
def test_order_that_its_bank_does_not_have_is_not_recorded(
    shop: Shop, bank: SandboxBankClient, served_by: Serving
) -> None:
    fund(shop, bank)
    served_by(inquiries=[MISSING])
    with pytest.raises(CommandError, match="does not say that it has"):
        record(*lost_withdrawal(shop))
    assert not Withdrawal.objects.exists()


def test_order_is_not_recorded_while_money_is_sent(shop: Shop, served_by: Serving) -> None:
    served_by(inquiries=[DONE])
    with pytest.raises(CommandError, match="Safe mode is off"):
        record(*lost_withdrawal(shop))


@pytest.mark.usefixtures("paused")
@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        ({1: "ref_1"}, "is no id that begins with wd_"),
        ({1: "wd_x"}, "is no id that begins with wd_"),
        ({2: "mch_nobody"}, "No merchant mch_nobody"),
        ({4: "9000000"}, "balance"),
        ({6: "NOBANK"}, "--bank: this bank does not exist"),
    ],
)
def test_wrong_lost_order_is_refused(
    shop: Shop, served_by: Serving, changes: dict[int, str], refusal: str
) -> None:
    served_by(inquiries=[DONE])
    arguments = list(lost_withdrawal(shop))
    for at, text in changes.items():
        arguments[at] = text
    with pytest.raises(CommandError, match=refusal):
        record(*arguments)
    assert not Withdrawal.objects.exists()


@pytest.mark.usefixtures("paused")
@pytest.mark.slow
def test_known_order_is_not_recorded_again(shop: Shop, bank: SandboxBankClient, served_by: Serving) -> None:
    fund(shop, bank)
    served_by(inquiries=[DONE])
    known = withdrawn(shop)["withdrawal_id"]
    with pytest.raises(CommandError, match="is in this database"):
        record(*lost_withdrawal(shop, known))


@pytest.mark.usefixtures("paused")
def test_lost_refund_of_a_lost_payment_is_refused(served_by: Serving) -> None:
    served_by(inquiries=[DONE])
    payment_id = ids.new("pay_", clock.now())
    with pytest.raises(CommandError, match=f"No payment {payment_id}"):
        record("refund", ids.new("ref_", clock.now()), payment_id, "--amount", "50000")


def test_every_answer_of_a_bank_about_its_order_is_known() -> None:
    assert set(lost_orders.KNOWN) == {"processing", "succeeded", "failed", "returned"}


# --- the list of the bank ------------------------------------------------------------------------------


def compare(folder: Path, *rows: tuple[str, str]) -> tuple[str, bool]:
    """The output of the command about these rows, and whether it failed."""
    file, output = folder / "orders.csv", StringIO()
    file.write_text("reference,amount\n" + "".join(f'{order_id},"{amount}"\n' for order_id, amount in rows))
    try:
        call_command("compare_orders", str(file), stdout=output)
    except CommandError:
        return output.getvalue(), True
    return output.getvalue(), False


@pytest.mark.slow
def test_list_of_the_bank_is_compared_with_our_orders(
    shop: Shop, bank: SandboxBankClient, served_by: Serving, tmp_path: Path
) -> None:
    fund(shop, bank)
    served_by(sends=[DONE])
    sent: dict[str, Any] = withdrawn(shop)
    send_due_withdrawals()
    waiting, lost = withdrawn(shop, amount=20_000), ids.new("wd_", clock.now())
    here = sent["withdrawal_id"], "1,000.00"
    assert compare(tmp_path, here) == ("All 1 orders of the bank are here.\n", False)
    shown, is_refused = compare(tmp_path, here, (lost, "5.00"), (waiting["withdrawal_id"], "200.00"))
    assert is_refused and here[0] not in shown
    assert f"missing here: {lost} 5.00 THB" in shown
    assert f"not sent from here: {waiting['withdrawal_id']} 200.00 THB: queued" in shown
    shown, is_refused = compare(tmp_path, (here[0], "999.00"))
    assert is_refused and "here 1,000.00 THB, ask the bank" in shown


def test_unreadable_line_of_the_list_is_named(tmp_path: Path) -> None:
    file = tmp_path / "orders.csv"
    file.write_text("wd_1,1.00\nwd_2,many\n")
    with pytest.raises(CommandError, match="Line 2 is not an id and an amount in baht"):
        call_command("compare_orders", str(file))
