import json
import sys
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser

import banks
from core import clock
from core.commands import SealingCommand
from merchants import links, printing
from merchants.errors import MerchantNotFound
from merchants.links import Terms
from merchants.models import BankLink


class Command(SealingCommand):
    help = (
        "Connect a live merchant to its bank, or renew its credentials. Prints the address that the bank is "
        "to call, once: it holds a secret. See docs/banks.md."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.epilog = _needs()
        parser.add_argument("merchant_id")
        parser.add_argument("--bank", required=True, choices=sorted(banks.LIVE))
        parser.add_argument("--biller-id", required=True, help="15 digits, given by the bank.")
        parser.add_argument("--reference2", default="", help="Sent in each code if given.")
        parser.add_argument("--reference3", default="", help="Sent in each code; the prefix at SCB.")
        parser.add_argument(
            "--credentials", required=True, metavar="FILE", help="A JSON object; - reads standard input."
        )
        parser.add_argument(
            "--callers",
            nargs="+",
            default=[],
            metavar="CIDR",
            help="Networks that the bank calls from. Left out, also when renewing: any.",
        )
        parser.add_argument("--renew-door", action="store_true", help="The old address stops working.")
        printing.add_json_option(parser)

    def handle(self, *args: Any, **options: Any) -> str:
        terms = Terms(
            bank=options["bank"],
            biller_id=options["biller_id"],
            reference2=options["reference2"],
            reference3=options["reference3"],
            credentials=_credentials(options["credentials"]),
            callers=options["callers"],
        )
        try:
            link, secret = links.connect(
                merchant_id=options["merchant_id"],
                terms=terms,
                now=clock.now(),
                renew_door=options["renew_door"],
            )
        except MerchantNotFound as error:
            raise CommandError(error.text) from None
        except ValidationError as error:
            raise CommandError(printing.complaint(error)) from None
        return printing.report(_told(link, secret), as_json=options["json"])


def _told(link: BankLink, secret: str | None) -> printing.Values:
    told: printing.Values = {
        "merchant_id": link.merchant_id,
        "bank": link.bank,
        "biller_id": link.merchant.biller_id,
        "callers": ", ".join(link.callers) or "any",
    }
    url = f"{settings.BASE_URL}/banks/{link.bank}/notices/{secret}" if secret else None
    return {**told, "callback_url": url}


def _credentials(source: str) -> dict[str, object]:
    try:
        told = json.loads(sys.stdin.read() if source == "-" else Path(source).read_text())
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no JSON"
        raise CommandError(f"--credentials: {source} cannot be read: {reason}.") from None
    if not isinstance(told, dict):
        raise CommandError("--credentials: a JSON object is needed, such as " + _example())
    return told


def _example() -> str:
    return json.dumps({need.name: "..." for need in banks.LIVE["scb"].needs if need.default is None})


def _needs() -> str:
    """What the credentials of each bank are."""
    told = (
        f"{name}: {', '.join(need.name for need in bank.needs if need.default is None)}; and if they differ, "
        f"{', '.join(need.name for need in bank.needs if need.default is not None)}."
        for name, bank in sorted(banks.LIVE.items())
    )
    return f"Credentials by bank. {' '.join(told)}"
