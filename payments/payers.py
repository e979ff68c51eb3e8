"""Who paid, and whether that is the client whom the merchant named."""

from dataclasses import dataclass

from core import plain_text
from payments.models import Payment


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


def differs_from_client(payment: Payment, payer: Payer) -> bool:
    """Return whether name or account differ. A field that one side leaves out is not compared.

    Banks cut names and mask accounts, so this blocks nothing: only staff see it.
    """
    account, name = payment.client_bank_account, payment.client_name
    other_account = bool(account and payer.account) and _last_four(account) != _last_four(payer.account)
    other_name = bool(name and payer.name) and plain_text.person(name) != plain_text.person(payer.name)  # type: ignore[arg-type]
    return other_account or other_name


def _last_four(account: str | None) -> str:
    """The last four digits or letters. Clients write `405-1-23789-0` and banks `4051237890`."""
    return "".join(filter(str.isalnum, plain_text.folded(account or "")))[-4:]
