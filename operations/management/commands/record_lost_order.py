from typing import Any

from django.core.management.base import CommandError, CommandParser

from core import clock, plain_text
from core.commands import SealingCommand
from core.errors import ApiError
from core.thai import thaibanks
from merchants import services
from operations.audit import lost_orders


class Command(SealingCommand):
    help = (
        "Record a withdrawal or refund again that its bank carried out and that a restore lost. It keeps its "
        "id, and needs safe mode. The bank is asked about it first."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        kinds = parser.add_subparsers(dest="kind", required=True)
        withdrawal = kinds.add_parser("withdrawal", help="Money that left the balance of a merchant.")
        refund = kinds.add_parser("refund", help="Money that went back to a payer.")
        for each, owner in ((withdrawal, "merchant_id"), (refund, "payment_id")):
            is_payout = each is withdrawal
            each.add_argument("order_id", help="Its id at the bank, such as wd_... or ref_...")
            each.add_argument(owner)
            each.add_argument("--amount", type=int, required=True, help="Satang.")
            each.add_argument("--bank", required=is_payout, help="The 3-digit code or short name.")
            each.add_argument("--account", required=is_payout, help="Digits only.")
            each.add_argument("--name", required=is_payout, help="The account holder at the bank.")
            each.add_argument("--reason", required=True, help="Colleagues read it in the audit trail.")

    def handle(self, *args: Any, **options: Any) -> str:
        order_id = options["order_id"]
        known = {"amount": options["amount"], "reason": options["reason"], "now": clock.now()}
        try:
            if options["kind"] == "withdrawal":
                merchant = services.find_merchant(options["merchant_id"])
                answer = lost_orders.record_withdrawal(order_id, merchant, _payee(options) or {}, **known)
            else:
                payment_id = options["payment_id"]
                answer = lost_orders.record_refund(order_id, payment_id, _payee(options), **known)
        except ApiError as error:
            raise CommandError(error.text) from None
        except lost_orders.NotLost as error:
            raise CommandError(str(error)) from None
        return f"Recorded: {order_id}. Its bank says: {answer}. A worker completes it in a minute."


def _payee(options: dict[str, Any]) -> dict[str, str] | None:
    if not options["bank"]:
        return None
    bank = thaibanks.find(options["bank"])
    if bank is None:
        raise CommandError("--bank: this bank does not exist.")
    account, holder = plain_text.compact(options["account"] or ""), plain_text.name(options["name"] or "")
    given = {"bank_code": bank.code, "bank_account": account, "account_name": holder}
    if missing := [name for name, value in given.items() if not value]:
        raise CommandError(f"Missing: {', '.join(missing)}.")
    return given
