from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from merchants import services
from merchants.errors import MerchantNotFound


class Command(BaseCommand):
    help = "Set the sites that may frame a merchant's payment page and to which it links back."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("merchant_id")
        parser.add_argument("origins", nargs="*", help="Such as https://shop.example; none removes all.")

    def handle(self, *args: Any, **options: Any) -> str:
        try:
            merchant = services.find_merchant(options["merchant_id"])
            origins = services.set_page_origins(merchant.id, options["origins"])
        except MerchantNotFound as error:
            raise CommandError(error.text) from None
        except ValueError as error:
            raise CommandError(str(error)) from None
        return f"Sites of the payment page of {merchant.id}: {' '.join(origins) or 'none'}."
