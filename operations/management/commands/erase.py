from argparse import ArgumentTypeError
from typing import Any

from django.core.management.base import CommandError, CommandParser

from core import plain_text
from core.commands import SealingCommand
from core.thai import thaibanks
from operations.data_protection import erasure
from operations.data_protection.erasure import Counts, Payer

HOW = "as BANK:ACCOUNT, BANK:NAME, or the bank's id of one transaction"


class Command(SealingCommand):
    help = (
        "Erase the names, accounts and messages of one payer. Amounts, ids, times and references stay, as "
        "the books need them. Without --yes it only says what would change."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--payer",
            required=True,
            type=_parse_payer,
            help=f"{HOW}. BANK is the 3-digit code or short name.",
        )
        parser.add_argument(
            "--by", required=True, help="Who decided it. Colleagues read it in the audit trail."
        )
        parser.add_argument(
            "--reason", required=True, help="Such as the number of the request. Name no customer here."
        )
        parser.add_argument("--yes", action="store_true", help="Erase. It cannot be undone.")

    def handle(self, *args: Any, **options: Any) -> str:
        selection = erasure.find(options["payer"])
        if not selection.bank_transaction_ids:
            raise CommandError("No bank transaction is of this payer.")
        if not options["yes"]:
            return f"{_text(erasure.count(selection))}\nNothing was changed. Repeat it with --yes to erase."
        try:
            counts = erasure.erase_recorded(selection, by=options["by"], reason=options["reason"])
        except erasure.NotFinished as error:
            raise CommandError(f"{error} Erase when they have ended; nothing was changed.") from None
        return f"{_text(counts)}\nErased, and recorded in the audit trail."


def _text(counts: Counts) -> str:
    lines = [f"{name}: {number} rows" for name, number in sorted(counts.items())]
    return "\n".join(lines) or "Everything of this payer has been erased before."


def _parse_payer(text: str) -> Payer:
    bank_text, colon, rest = text.partition(":")
    if not colon:
        return Payer(transaction_id=plain_text.visible(text))
    bank, wanted = thaibanks.find(plain_text.visible(bank_text)), plain_text.name(rest)
    if bank is None or not wanted:
        raise ArgumentTypeError(f"give it {HOW}")
    account = erasure.digits(wanted)
    if account.isdigit():
        return Payer(bank_code=bank.code, account=account)
    return Payer(bank_code=bank.code, name=wanted)
