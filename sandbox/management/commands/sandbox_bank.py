"""`manage.py sandbox_bank`: the sandbox bank at work, sending its callbacks and charging test cards."""

import signal
from contextlib import nullcontext
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from sandbox.acquirer_server import run_acquirer_server
from sandbox.callback_worker import CallbackWorker


class Command(BaseCommand):
    help = "Be the sandbox bank until SIGTERM or SIGINT. May run several times at once."

    def handle(self, *_args: Any, **_options: Any) -> None:
        if not settings.SANDBOX_BANK_SECRET:
            raise CommandError("There is no sandbox bank without SANDBOX_BANK_SECRET.")
        worker = CallbackWorker()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: worker.stop())
        with run_acquirer_server() if settings.SANDBOX_ACQUIRER_URL else nullcontext():
            worker.run()
