"""`manage.py sandbox_bank`: the sandbox bank at work, sending its callbacks."""

import signal
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from sandbox.switchboard import Switchboard


class Command(BaseCommand):
    help = "Send the sandbox bank's callbacks until SIGTERM or SIGINT. May run several times at once."

    def handle(self, *_args: Any, **_options: Any) -> None:
        if not settings.SANDBOX_BANK_SECRET:
            raise CommandError("There is no sandbox bank without SANDBOX_BANK_SECRET.")
        switchboard = Switchboard()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: switchboard.stop())
        switchboard.run()
