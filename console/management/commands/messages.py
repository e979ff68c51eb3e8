from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand
from django.core.management.commands import makemessages

import banks
from console.lists import labels
from console.people import roles
from core.errors import CATALOGUE
from reconciliation.statements import reasons
from reconciliation.statements.table_format import COLUMNS

NOT_FOR_STAFF = (".venv", "tests", "bench", "clients", "node_modules")
# Errors of the API that the console repeats. They come from services that both call.
REPEATED_ERRORS = (
    *("payout_account_not_allowed", "payout_account_too_new", "insufficient_funds", "merchant_not_found"),
    *("payment_not_refundable", "refund_amount_exceeded", "invalid_amount", "partial_refund_not_supported"),
    *("refund_not_cancelable", "withdrawal_not_cancelable", "qr_code_not_expirable", "bank_not_configured"),
    *("delivery_not_redeliverable", "webhook_not_replayable", "webhook_not_testable", "key_not_rollable"),
    *("reference_in_use", "merchant_suspended", "email_not_configured", "too_many_exports"),
    *("invalid_url", "invalid_to", "invalid_token", "invalid_quiet_hours", "too_many_webhooks"),
    *("too_many_destinations", "evidence_not_ready"),
)


class Collector(makemessages.Command):
    # A guess from a similar text would be shown to staff.
    msgmerge_options = [*makemessages.Command.msgmerge_options, "--no-fuzzy-matching"]


class Command(BaseCommand):
    help = "Collect the texts that staff see into locale/th, and compile the translations."

    def handle(self, *args: Any, **options: Any) -> None:
        # The collector reads files, so texts that are in no call of gettext are in one meanwhile.
        collected = settings.BASE_DIR / "console" / "label_texts.py"
        try:
            collected.write_text("".join(f"gettext({text!r})\n" for text in texts()))
            ignored = [part for name in NOT_FOR_STAFF for part in ("-i", name)]
            call_command(Collector(), "-l", "th", "--no-location", "--no-wrap", "--no-obsolete", *ignored)
        finally:
            collected.unlink()
        call_command("compilemessages", "-l", "th", "-i", ".venv")


def texts() -> list[str]:
    """Texts in no call of gettext: labels, sections, acts, errors of the API, banks and statements."""
    found = {*labels.texts(), *roles.texts(), *reasons.TEXTS, *(each["label"] for each in COLUMNS.values())}
    found |= {CATALOGUE[code].message for code in REPEATED_ERRORS}
    for bank in banks.LIVE_BANKS.values():
        found |= {bank.title, bank.authentication_note, bank.reference3_help}
        found |= {credential.help for credential in bank.credential_fields}
    return sorted(found - {""})
