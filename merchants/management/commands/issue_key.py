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

    def handle(self, *args: Any, **options: Any) -> str:
        now, hours = clock.now(), options["expires_in_hours"]
        if hours is not None and not 0 < hours <= MAX_HOURS:
            raise CommandError(f"--expires-in-hours must be more than 0 and at most {MAX_HOURS:,}.")
        key, secret = services.issue_key(
            merchant=services.find_merchant(options["merchant_id"]),
            now=now,
            expires_at=None if hours is None else now + timedelta(hours=hours),
            scopes=options["scopes"],
            networks=options["networks"],
        )
        return command_output.format_key(key, secret, as_json=options["json"])
