"""Postings for one merchant, each with a new subject unless one is given."""

from dataclasses import dataclass, field
from typing import Any

from django.db import transaction
from django.db.models import Sum

from core import clock, ids
from ledger import accounts, services as ledger
from ledger.journal_types import JournalType
from ledger.models import Account, Entry, PendingEntry
from tests.factories import MerchantFactory

BANK = accounts.bank("sandbox")


@dataclass
class MerchantLedger:
    """Each method is one commit; amounts are satang."""

    merchant_id: str = field(default_factory=lambda: str(MerchantFactory().id))

    @transaction.atomic
    def credit(self, amount: int, *, count: int = 1, subject_id: str | None = None) -> None:
        credits = [
            ledger.Credit(self.merchant_id, subject_id or ids.new("pay_", clock.now()), amount)
            for _ in range(count)
        ]
        ledger.credit(credits, type=JournalType.PAYMENT, source=BANK, now=clock.now())

    @transaction.atomic
    def reserve(self, amount: int, **fields: Any) -> None:
        ledger.reserve(**self._fields(JournalType.WITHDRAWAL_RESERVED, amount) | fields)

    @transaction.atomic
    def release(self, amount: int) -> None:
        fields = self._fields(JournalType.WITHDRAWAL_RELEASED, amount)
        ledger.release(**fields | {"amounts": {fields.pop("subject_id"): fields.pop("amount")}})

    @transaction.atomic
    def pay_out(self, amount: int) -> None:
        ledger.pay_out(**self._fields(JournalType.WITHDRAWAL_PAID, amount), to=BANK)

    @transaction.atomic
    def reverse(self, amount: int) -> int:
        fields = self._fields(JournalType.REVERSAL, amount)
        del fields["type"]
        return ledger.reverse(**fields, source_id="pay_1", to=BANK)

    @transaction.atomic
    def hold(self, amount: int) -> None:
        ledger.hold({ids.new("btx_", clock.now()): amount}, source=BANK, now=clock.now())

    @transaction.atomic
    def accept(self, amount: int) -> None:
        fields = self._fields(JournalType.ACCEPTED, amount)
        del fields["type"]
        ledger.accept(**fields, held_from=BANK)

    @transaction.atomic
    def send_back(self, amount: int) -> None:
        subject_id = ids.new("btx_", clock.now())
        ledger.send_back(subject_id=subject_id, amount=amount, to=BANK, now=clock.now())

    def roll_up(self, _amount: int = 0) -> int:
        return ledger.roll_up_due(now=clock.now())

    def balance(self) -> tuple[int, int, int]:
        """Return what is available, reserved and owed."""
        balance = ledger.balance(self.merchant_id)
        return balance.available, balance.reserved, balance.debt

    def _fields(self, type: JournalType, amount: int) -> dict[str, Any]:
        now = clock.now()
        fields = {"merchant_id": self.merchant_id, "type": type, "subject_id": ids.new("sub_", now)}
        return {**fields, "amount": amount, "now": now}


def check_ledger() -> dict[str, int]:
    """Check that entries sum to zero and that every balance agrees with them. Return the balances."""
    by_entries = dict(Entry.objects.values_list("account_id").annotate(Sum("amount")))
    pending = dict(PendingEntry.objects.values_list("account_id").annotate(Sum("amount")))
    balances = {each.id: each.rolled_up_balance + pending.get(each.id, 0) for each in Account.objects.all()}
    assert balances == {code: by_entries.get(code, 0) for code in balances}
    assert sum(by_entries.values()) == 0
    return balances
