from collections.abc import Sequence
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError
from django.db.models import Model

from core.commands import ProgressBar
from operations.data_protection import resealing
from operations.data_protection.resealing import MAX_LISTED, ResealCounts
from operations.models import EncryptionKeyCheck

RUN_AGAIN = "Finished rows stay sealed; run it again."


class Command(BaseCommand):
    help = (
        "Seal every secret and account number in the database with the newest of FIELD_ENCRYPTION_KEYS, so "
        "that older keys can be dropped. The service may run meanwhile; safe to interrupt and to repeat."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        unopened, locations = 0, list[str]()
        try:
            for model, columns in resealing.sealed_columns().items():
                # If a row cannot be opened, the key check stays as it is and shows that a key is missing.
                if model is not EncryptionKeyCheck or not unopened:
                    counts = self._reseal(model, columns)
                    unopened, locations = unopened + counts.unopened, locations + counts.locations
        except KeyboardInterrupt:
            raise CommandError(f"Interrupted. {RUN_AGAIN}", returncode=130) from None
        except OperationalError as error:
            raise CommandError(f"{str(error).strip().splitlines()[0]}. {RUN_AGAIN}") from None
        if unopened:
            named, more = ", ".join(locations[:MAX_LISTED]), unopened - MAX_LISTED
            raise CommandError(
                f"No key of FIELD_ENCRYPTION_KEYS opens {named}{f' and {more} more' if more > 0 else ''}. "
                "Drop no key; add the one that is missing."
            )
        self.stdout.write("Everything is sealed with the newest key.")

    def _reseal(self, model: type[Model], columns: Sequence[str]) -> ResealCounts:
        name = model._meta.label
        bar = ProgressBar(self.stdout, name, model._base_manager.count)
        counts = resealing.reseal(model, columns, on_progress=bar.advance)
        bar.clear()
        shown = f"{name}: {counts.resealed} resealed, {counts.up_to_date} had the newest key already"
        self.stdout.write(shown)
        return counts
