from datetime import timedelta
from typing import Any

from django.core.management.base import CommandError, CommandParser

from core import clock
from merchants import command_output, services
from merchants.command_output import MerchantCommand

MAX_HOURS = 100 * 366 * 24


class Command(MerchantCommand):
    help = "Issue another secret key for a merchant; the key is shown once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("merchant_id")
        parser.add_argument("--expires-in-hours", type=float, help="The key expires after this time.")
        command_output.add_key_options(parser)
        command_output.add_json_option(parser)

    def handle(self, *args: Any, **options: Any) -> str:
        now, hours = clock.now(), options["expires_in_hours"]
        if hours is not None and not 0 < hours <= MAX_HOURS:
            raise CommandError(f"--expires-in-hours must be more than 0 and at most {MAX_HOURS:,}.")
        merchant = services.find_merchant(options["merchant_id"])
        expires_at = None if hours is None else now + timedelta(hours=hours)
        key, secret = services.issue_key(
            merchant=merchant,
            now=now,
            expires_at=expires_at,
            scopes=options["scopes"],
            networks=options["networks"],
        )
        values: command_output.Values = {"merchant_id": merchant.id, "key_id": key.id, "secret_key": secret}
        values |= command_output.key_fields(key) | {"expires_at": clock.iso_or_none(expires_at)}
        return command_output.format_output(values, as_json=options["json"])
