from collections.abc import Sequence
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError
from django.db.models import Model

from console import resealing
from console.models import KeyCheck
from console.resealing import Tally
from core.progress import Bar

AGAIN = "What is done stays done; run it again."


class Command(BaseCommand):
    help = (
        "Seal every secret and account number in the database with the newest of FIELD_ENCRYPTION_KEYS, so "
        "that older keys can be dropped. The service may run meanwhile; safe to interrupt and to repeat."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        total = Tally()
        try:
            for model, columns in resealing.tables().items():
                # While something is lost, the key check must go on saying which key is missing.
                if model is not KeyCheck or not total.lost:
                    total += self._reseal(model, columns)
        except KeyboardInterrupt:
            raise CommandError(f"Interrupted. {AGAIN}", returncode=130) from None
        except OperationalError as error:
            raise CommandError(f"{str(error).strip().splitlines()[0]}. {AGAIN}") from None
        if total.lost:
            raise CommandError(_complaint(total))
        self.stdout.write("Everything found is sealed with the newest key.")

    def _reseal(self, model: type[Model], columns: Sequence[str]) -> Tally:
        name = model._meta.label
        bar = Bar(self.stdout, name, model._base_manager.count)
        tally = resealing.reseal(model, columns, passed=bar.advance)
        bar.clear()
        self.stdout.write(f"{name}: {tally.resealed} resealed, {tally.newest} had the newest key already")
        return tally


def _complaint(total: Tally) -> str:
    more = total.lost - len(total.where)
    named = ", ".join(total.where) + (f" and {more} more" if more else "")
    return f"No key of FIELD_ENCRYPTION_KEYS opens {named}. Drop no key; add the one that is missing."
