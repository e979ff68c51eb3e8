from typing import Any

from django.core.management.base import CommandError, CommandParser

from merchants import services
from merchants.command_output import MerchantCommand


class Command(MerchantCommand):
    help = "Set the sites that may frame a merchant's payment page and to which it links back."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("merchant_id")
        parser.add_argument("origins", nargs="*", help="Such as https://shop.example; none removes all.")

    def handle(self, *args: Any, **options: Any) -> str:
        merchant = services.find_merchant(options["merchant_id"])
        try:
            origins = services.set_page_origins(merchant.id, options["origins"]).page_origins
        except ValueError as error:
            raise CommandError(str(error)) from None
        return f"Sites of the payment page of {merchant.id}: {' '.join(origins) or 'none'}."
