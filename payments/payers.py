"""Who paid, and whether that is the client whom the merchant named."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core import plain_text
from core.thai import person_names
from core.thai.person_names import Match
from merchants.models import HoldsPayers, Merchant
from payments.models import HOLD_OF, PayerMatch, Payment

HELD: Mapping[str, Collection[str]] = {
    HoldsPayers.OFF: (),
    HoldsPayers.NO: (PayerMatch.NO,),
    HoldsPayers.UNKNOWN: (PayerMatch.NO, PayerMatch.UNKNOWN),
}


@dataclass(frozen=True, slots=True)
class Payer:
    """Who paid, and by which bank transaction. A field is empty if the bank does not report it."""

    name: str = ""
    bank_code: str = ""
    account: str = ""
    transaction_id: str = ""


def reported(payment: Payment) -> Payer:
    """Who paid, by the bank transaction that was credited. The copy on the payment is for showing only."""
    bank_transaction = payment.bank_transactions.credited().first()
    return Payer() if bank_transaction is None else bank_transaction.payer


def matches(payment: Payment, payer: Payer) -> Match | None:
    """Whether the payer is the client whom the merchant named, or None if it named nobody.

    Name and the last digits of the account count, as far as both sides have them. Banks cut names and mask
    accounts, so this blocks nothing.
    """
    account, name = payment.client_bank_account, payment.client_name
    if not account and not name:
        return None
    found: set[Match] = set()
    if account and payer.account:
        found.add("yes" if _last_four(account) == _last_four(payer.account) else "no")
    if name and payer.name:
        found.add(person_names.compare(name, payer.name))
    return "no" if "no" in found else "yes" if "yes" in found else "unknown"


def add_holds(changes: Sequence[tuple[Payment, dict[str, Any]]]) -> None:
    """Add `hold` to the fields of payments that succeed, by the settings of their merchants.

    One statement reads the settings, if the payer of a payment may not be the named client.
    """
    doubted = {payment.merchant_id for payment, fields in changes if fields["payer_matches"] in HOLD_OF}
    merchants = Merchant.objects.filter(pk__in=doubted).values_list("pk", "holds_payers") if doubted else ()
    settings = dict(merchants)
    for payment, fields in changes:
        match, held = fields["payer_matches"], HELD[settings.get(payment.merchant_id, HoldsPayers.OFF)]
        fields["hold"] = HOLD_OF[match] if match in held else None


def _last_four(account: str) -> str:
    """The last four digits or letters. Clients write `405-1-23789-0` and banks `4051237890`."""
    return "".join(filter(str.isalnum, plain_text.folded(account)))[-4:]
