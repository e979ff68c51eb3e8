from typing import Any

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit_trail.acts import Act
from audit_trail.recording import recorded
from console.people import invitations
from console.people.login_log import record_change
from core.observing.security_log import SecurityEvent


class Command(BaseCommand):
    help = "Make the first superuser; print the link with which this person chooses a password, once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username", help="It never changes, because records name staff by it.")
        parser.add_argument("email")

    def handle(self, *args: Any, **options: Any) -> str:
        name = options["username"]
        person = User.objects.filter(username=name).first() or User(username=name)
        if person.has_usable_password() and person.pk:
            raise CommandError(f"{name} exists, and has a password.")
        person.email, person.is_staff, person.is_superuser = options["email"], True, True
        try:
            person.clean_fields(exclude=["password"])
        except ValidationError as error:
            raise CommandError(error.messages[0]) from None
        with recorded(Act.INVITED) as recording:
            recording.row = person
            person.save()
            link = invitations.new_link(person)
        record_change(SecurityEvent.ROLE_CHANGED, person, "+is_superuser")
        return link
