from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from core import clock
from merchants import printing, services
from merchants.models import Mode


class Command(BaseCommand):
    help = "Create a merchant and its first secret key, which is shown once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--name", required=True, help="What the shop is called.")
        parser.add_argument("--mode", required=True, choices=Mode.values)
        printing.add_key_options(parser)
        printing.add_json_option(parser)

    def handle(self, *args: Any, **options: Any) -> str:
        try:
            merchant, secret = services.create_merchant(
                name=options["name"],
                mode=options["mode"],
                now=clock.now(),
                scopes=options["scopes"],
                networks=options["networks"],
            )
        except ValidationError as error:
            raise CommandError(printing.complaint(error)) from None
        key = merchant.keys.get()
        values: printing.Values = {"merchant_id": merchant.id, "key_id": key.id, "secret_key": secret}
        return printing.report(values | printing.key_fields(key), as_json=options["json"])
