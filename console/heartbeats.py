"""Signs of life of the background parts."""

from datetime import datetime, timedelta

from django.conf import settings

from console.models import Heartbeat

BEAT = "beat"
SILENCE = timedelta(seconds=30)  # six missed signs


def sign(name: str, *, now: datetime) -> None:
    Heartbeat.objects.bulk_create(
        [Heartbeat(name=name, at=now)], update_conflicts=True, update_fields=["at"], unique_fields=["name"]
    )


def silent(*, now: datetime) -> dict[str, bool]:
    """For beat and each queue: whether nothing was heard of it lately."""
    heard = dict(Heartbeat.objects.values_list("name", "at"))
    oldest = now - SILENCE
    return {name: name not in heard or heard[name] < oldest for name in (BEAT, *settings.QUEUES)}
