from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.http import HttpRequest

from audit_trail.acts import Act
from audit_trail.recording import recorded
from console.people import lockouts


class Command(BaseCommand):
    help = "Lift a lockout of the console: of a user name or of an address."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("subject", help="such as somsri, 203.0.113.7/32 or 2001:db8::/64")

    def handle(self, *args: Any, **options: Any) -> str:
        subject = options["subject"]
        person = User.objects.filter(username=subject).first()
        if person is not None:
            with recorded(Act.LOCKOUT_LIFTED, person):
                lockouts.lift(HttpRequest(), person)
        elif not lockouts.lift_address(subject):
            raise CommandError(f"{subject} is no user name and no address.")
        return f"The failed logins of {subject} are deleted."
