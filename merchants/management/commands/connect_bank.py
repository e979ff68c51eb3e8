import json
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

import banks
from core import clock
from core.commands import SealingCommand
from merchants import bank_connections, command_output
from merchants.bank_connections import ConnectionConfig
from merchants.command_output import MerchantCommand


class Command(MerchantCommand, SealingCommand):
    help = (
        "Connect a live merchant to its bank, or renew its credentials. Prints the notification URL once, "
        "because it contains a secret. See docs/banks.md."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.epilog = _credential_help()
        parser.add_argument("merchant_id")
        parser.add_argument("--bank", required=True, choices=sorted(banks.LIVE_BANKS))
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
        parser.add_argument("--renew-address", action="store_true", help="The old address stops working.")
        parser.add_argument("--standby", action="store_true", help="For codes while its first bank fails.")
        command_output.add_json_option(parser)

    def handle(self, *args: Any, **options: Any) -> str:
        given = ("bank", "biller_id", "reference2", "reference3", "callers")
        config = ConnectionConfig(
            credentials=_credentials(options["credentials"]), **{name: options[name] for name in given}
        )
        connection, secret = bank_connections.connect(
            merchant_id=options["merchant_id"],
            config=config,
            now=clock.now(),
            renew_address=options["renew_address"],
            is_standby=options["standby"],
        )
        values: command_output.Values = {
            "merchant_id": connection.merchant_id,
            "bank": connection.bank,
            "biller_id": config.biller_id,
            "callers": ", ".join(connection.callers) or "any",
            "callback_url": bank_connections.notification_url(connection, secret) if secret else None,
        }
        return command_output.format_output(values, as_json=options["json"])


def _credentials(source: str) -> dict[str, object]:
    try:
        credentials = json.loads(sys.stdin.read() if source == "-" else Path(source).read_text())
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not JSON"
        raise CommandError(f"--credentials: {source} cannot be read: {reason}.") from None
    if not isinstance(credentials, dict):
        needed = [need.name for need in banks.LIVE_BANKS["scb"].credential_fields if need.default is None]
        example = json.dumps(dict.fromkeys(needed, "..."))
        raise CommandError(f"--credentials: a JSON object is needed, such as {example}")
    return credentials


def _credential_help() -> str:
    """What the credentials of each bank are."""
    lines = (
        f"{name}: {', '.join(need.name for need in bank.credential_fields if need.default is None)}; "
        "and if they differ, "
        f"{', '.join(need.name for need in bank.credential_fields if need.default is not None)}."
        for name, bank in sorted(banks.LIVE_BANKS.items())
    )
    return f"Credentials by bank. {' '.join(lines)}"
