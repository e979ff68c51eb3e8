from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from core import clock
from transfers import safe_mode


class Command(BaseCommand):
    help = "Send no money until `resume_transfers`: no refund, withdrawal or return, and no charge of a card."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--reason", required=True, help="Colleagues read it in the audit trail.")

    def handle(self, *args: Any, **options: Any) -> str:
        safe_mode.pause(reason=options["reason"], now=clock.now())
        return "No money is sent. Banks are still asked about what is under way."
