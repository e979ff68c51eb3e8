"""`manage.py sandbox_transfer`: let the sandbox bank transfer what it owes for card payments."""

from typing import Any

from django.core.management.base import BaseCommand

from core import clock, money
from sandbox import settlements


class Command(BaseCommand):
    help = "Transfer the card payments that the sandbox bank holds, without waiting for the morning."

    def handle(self, *_args: Any, **_options: Any) -> None:
        transfer = settlements.transfer_all(clock.now())
        if transfer is None:
            self.stdout.write("There is too little to transfer.")
        else:
            self.stdout.write(f"{transfer.id}: {money.display(transfer.net)}")
