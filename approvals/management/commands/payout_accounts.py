from datetime import datetime
from typing import Any

from django.core.management.base import CommandError, CommandParser

from approvals import payout_accounts as accounts
from approvals.models import PayoutAccount
from approvals.payout_accounts import PayoutAccountListed, PayoutAccountNotFound
from core import clock, plain_text
from core.clock import iso
from core.commands import SealingCommand
from core.thai import thaibanks
from merchants import services
from merchants.command_output import MerchantCommand
from merchants.models import Merchant


class Command(MerchantCommand, SealingCommand):
    help = "The accounts that a merchant's money may go to. A list has no effect until it is switched on."

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        for action, help_text in [
            ("list", "Show the list."),
            ("on", "Send money to listed accounts only."),
            ("off", "Send money to any account."),
        ]:
            actions.add_parser(action, help=help_text).add_argument("merchant_id")
        add = actions.add_parser("add", help="Add an account; it can be used after the waiting period.")
        add.add_argument("merchant_id")
        add.add_argument("--bank", required=True, help="Its 3-digit code or short name.")
        add.add_argument("--account", required=True, help="Digits only.")
        add.add_argument("--name", required=True, help="The name of the account holder at the bank.")
        remove = actions.add_parser("remove", help="Remove an account at once.")
        remove.add_argument("account_id")

    def handle(self, *args: Any, **options: Any) -> str:
        now, action = clock.now(), options["action"]
        if action == "remove":
            try:
                return f"Removed: {accounts.remove(options['account_id'], now=now)}"
            except PayoutAccountNotFound:
                raise CommandError("No such account is on a list.") from None
        merchant = services.find_merchant(options["merchant_id"])
        if action in ("on", "off"):
            accounts.restrict(merchant, action == "on", now=now)
            return f"The list of {merchant.id} is {action}."
        if action == "list":
            rows = PayoutAccount.objects.filter(merchant=merchant, removed_at=None).order_by("added_at", "id")
            lines = [f"{row.id}  {row}  {row.account_name}  usable from {iso(row.usable_at)}" for row in rows]
            state = "on" if accounts.is_restricted(merchant.pk) else "off"
            return "\n".join([f"The list is {state}.", *lines])
        made = _add(merchant, options, now)
        return f"Added: {made.id} {made}, to be used from {iso(made.usable_at)} on"


def _add(merchant: Merchant, options: dict[str, Any], now: datetime) -> PayoutAccount:
    bank, account = thaibanks.find(options["bank"]), plain_text.compact(options["account"])
    if bank is None:
        raise CommandError("--bank: this bank does not exist.")
    try:
        thaibanks.check_account(bank.code, account)
    except ValueError as refusal:
        raise CommandError(f"--account: {refusal}") from None
    try:
        return accounts.add(
            merchant,
            bank_code=bank.code,
            bank_account=account,
            account_name=plain_text.name(options["name"]),
            now=now,
        )
    except PayoutAccountListed:
        raise CommandError("--account: it is on the list already.") from None
