from datetime import timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from core import clock
from merchants import command_output, services
from merchants.errors import MerchantNotFound

MAX_HOURS = 100 * 366 * 24


class Command(BaseCommand):
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
        try:
            merchant = services.find_merchant(options["merchant_id"])
        except MerchantNotFound as error:
            raise CommandError(error.text) from None
        expires_at = None if hours is None else now + timedelta(hours=hours)
        try:
            key, secret = services.issue_key(
                merchant=merchant,
                now=now,
                expires_at=expires_at,
                scopes=options["scopes"],
                networks=options["networks"],
            )
        except ValidationError as error:
            raise CommandError(command_output.validation_message(error)) from None
        values: command_output.Values = {"merchant_id": merchant.id, "key_id": key.id, "secret_key": secret}
        values |= command_output.key_fields(key) | {"expires_at": clock.iso_or_none(expires_at)}
        return command_output.format_output(values, as_json=options["json"])
