"""One movement of money is one receipt, whoever tells of it: lines of statements have no transaction id.

They are known by what they move. Whoever is about to make a receipt or to join one first holds a lock on
that, until the commit, so that a callback, an answer and a line that come at once find each other.
"""

import hashlib
from collections.abc import Iterable
from datetime import datetime, time, timedelta
from typing import Any, Protocol

from django.db import transaction
from django.db.models import Q

from banks.reading import AROUND_MIDNIGHT
from core import rows, vault
from core.clock import BANGKOK
from receipts.models import Kind, Receipt, Source

SECOND = timedelta(seconds=1)
# What messages of the same money may leave out, beside the payer's account.
OPTIONAL = ["payer_name", "slip_reference"]
LOCK = "SELECT count(pg_advisory_xact_lock(name)) FROM unnest(%s::bigint[]) AS name"


class Movement(Protocol):
    """What a notice, a receipt and a line of a statement say of the money."""

    @property
    def kind(self) -> str: ...
    @property
    def biller_id(self) -> str: ...
    @property
    def reference1(self) -> str: ...
    @property
    def amount(self) -> int: ...
    @property
    def paid_at(self) -> datetime: ...


def name_of(bank: str, movement: Movement) -> str:
    """The lock of all movements that might be one. Without kind and time: a reversal looks for its credit."""
    return f"money {bank} {movement.biller_id} {movement.reference1} {movement.amount}"


def hold(names: Iterable[str]) -> None:
    """Hold these locks until the commit. In one order for everybody, so that nobody waits in a circle."""
    rows.run(LOCK, [sorted({_number(name) for name in names})])


def are_one(one: Movement, other: Movement) -> bool:
    """Whether two reports, of which one has no transaction id, are the same movement.

    Sources round times and have clocks of their own, so the bank day counts. The time of a reversal does not
    count: a bank reverses a credit only once.
    """
    return _what(one) == _what(other) and (
        one.kind == Kind.REVERSAL or in_one_bank_day(one.paid_at, other.paid_at)
    )


def in_one_bank_day(one: datetime, other: datetime) -> bool:
    """Whether two sources can mean one movement by these times: one day in Bangkok.

    At midnight a source can round up, or its clock can be ahead, by `AROUND_MIDNIGHT` at most. The database
    has the same rule: `receipts_in_one_bank_day`.
    """
    is_same_day = one.astimezone(BANGKOK).date() == other.astimezone(BANGKOK).date()
    return is_same_day or abs(one - other) <= AROUND_MIDNIGHT


def bank_days(moments: Iterable[datetime]) -> tuple[datetime, datetime]:
    """The first instant that `in_one_bank_day` accepts for any of these moments, and the first one after."""
    found = sorted(moments)
    first = datetime.combine(found[0].astimezone(BANGKOK), time(), BANGKOK)
    last = datetime.combine(found[-1].astimezone(BANGKOK), time(), BANGKOK)
    return first - AROUND_MIDNIGHT, last + timedelta(days=1) + AROUND_MIDNIGHT


def distance(one: Movement, other: Movement) -> tuple[bool, timedelta]:
    """Sorts the reports that fit: those of the same second first, then by the time between them."""
    return _second(one.paid_at) != _second(other.paid_at), abs(one.paid_at - other.paid_at)


def credited_before(reversal: Movement) -> datetime:
    """What a reversal takes back came before this instant: by the end of its second, for lines tell no more.

    Some banks tell a reversal with the time of its credit.
    """
    return _second(reversal.paid_at) + SECOND


def are_parted(one: Movement, other: Movement, reversals: Iterable[Movement]) -> bool:
    """Whether the bank reversed this money between the two times: then the later one is other money."""
    first, last = sorted([one.paid_at, other.paid_at])
    return any(first < credited_before(reversal) <= last for reversal in reversals)


def told_by_line(draft: Receipt) -> Receipt | None:
    """The receipt that a line made of this money and no message has joined. The caller holds the lock."""
    fitting = [receipt for receipt in _nameless(draft.bank, draft.kind, draft) if are_one(receipt, draft)]
    if draft.kind == Kind.REVERSAL:
        fitting = _debits_of(draft, fitting)
    elif fitting:
        fitting = _credits_of(draft, fitting)
    return min(fitting, key=lambda receipt: distance(receipt, draft), default=None)


def named(bank: str, transaction_id: str, kind: str) -> Receipt | None:
    """The receipt that this bank calls so, by its first name or its second."""
    # The empty name is left out for the planner, which else does not see that the partial index will do.
    second = Q(also_known_as=transaction_id) & ~Q(also_known_as="")
    known = Receipt.objects.filter(Q(bank_transaction_id=transaction_id) | second, bank=bank, kind=kind)
    found: Receipt | None = known.first()
    return found


def name(receipt: Receipt, transaction_id: str) -> None:
    """The bank has told its id of what a line made known. The caller holds the locks of both."""
    receipt.also_known_as = transaction_id
    receipt.save(update_fields=["also_known_as"])


@transaction.atomic
def learn(receipt: Receipt, told: Receipt) -> None:
    """Bring what another message says of the same money and nobody has said before; what is there stays.

    told: the receipt that the message would have made.
    """
    if not _news(receipt, told):
        return
    known = Receipt.objects.locked(receipt.id)
    news = _news(known, told)
    for field, value in news.items():
        setattr(known, field, value)
    known.save(update_fields=list(news))


def name_credit_of(reversal: Receipt) -> None:
    """A bank takes money back by the id of its credit: if only a line told of that, it has no id yet.

    The caller holds the locks. Where several credits fit nobody knows which, and staff decide.
    """
    if named(reversal.bank, reversal.bank_transaction_id, Kind.CREDIT):
        return
    nameless = list(nameless_credits(reversal)[:2])
    if len(nameless) == 1:
        name(nameless[0], reversal.bank_transaction_id)


def nameless_credits(reversal: Receipt) -> Any:
    """What this reversal may take back of what lines told: not named, and not taken back by another."""
    taken_back = Receipt.objects.filter(
        bank=reversal.bank, kind=Kind.REVERSAL, biller_id=reversal.biller_id, reference1=reversal.reference1
    )
    return (
        _nameless(reversal.bank, Kind.CREDIT, reversal)
        .filter(paid_at__lt=credited_before(reversal))
        .exclude(bank_transaction_id__in=taken_back.values("bank_transaction_id"))
    )


def _credits_of(draft: Receipt, credits: list[Receipt]) -> list[Receipt]:
    """Those that may be this credit: none that was reversed before it, or under another transaction id.

    The same second proves more than a reversal, which may have joined the wrong line.
    """
    if same := [credit for credit in credits if _second(credit.paid_at) == _second(draft.paid_at)]:
        return same
    reversals = list(
        Receipt.objects.filter(
            bank=draft.bank,
            kind=Kind.REVERSAL,
            biller_id=draft.biller_id,
            reference1=draft.reference1,
            amount=draft.amount,
        )
    )
    ids = {each.bank_transaction_id: each.told_id for each in reversals}
    return [
        credit
        for credit in credits
        if not are_parted(credit, draft, reversals)
        and ids.get(credit.bank_transaction_id, "") in ("", draft.bank_transaction_id)
    ]


def _debits_of(reversal: Receipt, debits: list[Receipt]) -> list[Receipt]:
    """Those that may be this reversal: none that took back a credit which the bank calls otherwise."""
    credit = named(reversal.bank, reversal.bank_transaction_id, Kind.CREDIT)
    taken = [(debit, named(debit.bank, debit.bank_transaction_id, Kind.CREDIT)) for debit in debits]
    undecided = [debit for debit, other in taken if other is None]
    if credit is not None:
        return [debit for debit, other in taken if other == credit] or undecided
    return undecided + [debit for debit, other in taken if other is not None and not other.told_id]


def _news(receipt: Receipt, told: Receipt) -> dict[str, str]:
    news = {field: getattr(told, field) for field in OPTIONAL if not getattr(receipt, field)}
    # An account means nothing but with its bank.
    is_same_bank = receipt.payer_bank_code in ("", told.payer_bank_code)
    if told.payer_account and is_same_bank and not receipt.payer_account_sealed:
        sealed = vault.seal(told.payer_account, context=receipt.id)
        news |= {"payer_bank_code": told.payer_bank_code, "payer_account_sealed": sealed}
    return {field: value for field, value in news.items() if value}


def _nameless(bank: str, kind: str, movement: Movement) -> Any:
    """Receipts that lines made of such a movement and that the bank has not named, oldest first."""
    return Receipt.objects.filter(
        bank=bank,
        biller_id=movement.biller_id,
        reference1=movement.reference1,
        amount=movement.amount,
        kind=kind,
        source=Source.STATEMENT,
        also_known_as="",
    ).order_by("id")


def _what(movement: Movement) -> tuple[str, str, str, int]:
    return str(movement.kind), movement.biller_id, movement.reference1, movement.amount


def _second(moment: datetime) -> datetime:
    return moment.replace(microsecond=0)


def _number(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), signed=True)
