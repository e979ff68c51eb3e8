from datetime import timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from core import clock
from merchants import printing, services
from merchants.errors import MerchantNotFound

MOST_HOURS = 100 * 366 * 24


class Command(BaseCommand):
    help = "Issue another secret key for a merchant; the key is shown once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("merchant_id")
        parser.add_argument("--expires-in-hours", type=float, help="The key ends by itself after this time.")
        printing.add_key_options(parser)
        printing.add_json_option(parser)

    def handle(self, *args: Any, **options: Any) -> str:
        now, hours = clock.now(), options["expires_in_hours"]
        if hours is not None and not 0 < hours <= MOST_HOURS:
            raise CommandError(f"--expires-in-hours must be more than 0 and at most {MOST_HOURS:,}.")
        try:
            merchant = services.merchant_by_id(options["merchant_id"])
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
            raise CommandError(printing.complaint(error)) from None
        values: printing.Values = {"merchant_id": merchant.id, "key_id": key.id, "secret_key": secret}
        values |= printing.key_fields(key) | {"expires_at": clock.iso_or_none(expires_at)}
        return printing.report(values, as_json=options["json"])
