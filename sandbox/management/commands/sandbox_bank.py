"""`manage.py sandbox_bank`: send the callbacks of the sandbox bank, and charge test cards."""

import signal
from contextlib import nullcontext
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from sandbox.acquirer_server import run_acquirer_server
from sandbox.callbacks import CallbackWorker

# The server looks so often whether it has to stop.
STOP_SECONDS = 0.5


class Command(BaseCommand):
    help = "Run the sandbox bank until SIGTERM or SIGINT. Several processes may run at once."

    def handle(self, *_args: Any, **_options: Any) -> None:
        if not settings.SANDBOX_BANK_SECRET:
            raise CommandError("The sandbox bank needs SANDBOX_BANK_SECRET.")
        worker = CallbackWorker()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: worker.stop())
        with run_acquirer_server(STOP_SECONDS) if settings.SANDBOX_ACQUIRER_URL else nullcontext():
            worker.run()
