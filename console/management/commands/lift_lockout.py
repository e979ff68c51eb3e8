from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from console import lockouts


class Command(BaseCommand):
    help = "Lift a lockout of the console: of a user name or of an address."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("subject", help="such as somsri, 203.0.113.7/32 or 2001:db8::/64")

    def handle(self, *args: Any, **options: Any) -> str:
        subject = options["subject"]
        lifted = [lockouts.lift(f"{kind}:{subject}") for kind in ("user", "code", "address")]
        if not any(lifted):
            raise CommandError(f"No failed logins are counted for {subject}.")
        return f"The failed logins of {subject} are deleted."
