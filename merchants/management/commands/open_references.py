from typing import Any

from django.core.management.base import CommandParser

from merchants import services
from merchants.command_output import MerchantCommand


class Command(MerchantCommand):
    help = "Whether a reference of a merchant can have one open QR code, or several."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("open_codes", choices=["one", "several"], help="Open codes of one reference.")
        parser.add_argument("merchant_id")

    def handle(self, *args: Any, **options: Any) -> str:
        merchant = services.find_merchant(options["merchant_id"])
        services.set_policy(merchant.id, refuses_open_reference=options["open_codes"] == "one")
        return f"Open QR codes of one reference of {merchant.id}: {options['open_codes']}."
