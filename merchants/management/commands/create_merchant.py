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
        printing.add_json_option(parser)

    def handle(self, *args: Any, **options: Any) -> str:
        try:
            merchant, secret = services.create_merchant(
                name=options["name"], mode=options["mode"], now=clock.now()
            )
        except ValidationError as error:
            raise CommandError(f"--name: {' '.join(error.messages)}") from None
        values = {"merchant_id": merchant.id, "key_id": merchant.keys.get().id, "secret_key": secret}
        return printing.report(values, as_json=options["json"])
