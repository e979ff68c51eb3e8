"""The hash chain over the audit trail.

A chain has one writer at a time. Pages do not wait for it: they insert records, and a task chains them
seconds later. A killed task leaves no half batch, and the records still wait.
"""

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from audit_trail.acts import Act
from audit_trail.models import AuditRecord, ChainLink, UnchainedRecord
from core.database import rows

# Any constant. Tasks that chain take turns under this advisory lock.
CHAIN_LOCK_ID = 7_218_440_611
BATCH = 500
READ_BATCH = 5_000
# A record that waits longer is a finding. The task runs every few seconds.
UNCHAINED_LIMIT = timedelta(minutes=5)
# Records are chained in the order of their commits. No transaction of staff lasts this long.
MAX_TIME_BACK = timedelta(hours=1)


def content(record: AuditRecord) -> bytes:
    """All columns of a record in one fixed form."""
    columns = {each.attname: _plain(getattr(record, each.attname)) for each in record._meta.concrete_fields}
    return orjson.dumps(columns, option=orjson.OPT_SORT_KEYS)


def link_hash(number: int, previous_hash: str, record: AuditRecord) -> str:
    """SHA-256 of the number, the hash of the link before, and the record."""
    return hashlib.sha256(f"{number}\n{previous_hash}\n".encode() + content(record)).hexdigest()


def chain_waiting() -> int:
    """Chain the records that wait, in batches. Returns their number; 0 if another process does it."""
    total = 0
    while count := _chain_batch():
        total += count
    return total


@transaction.atomic
def _chain_batch() -> int:
    if not rows.run("SELECT pg_try_advisory_xact_lock(%s)", [CHAIN_LOCK_ID]).fetchone()[0]:
        return 0
    waiting = list(UnchainedRecord.objects.order_by("pk").values_list("pk", flat=True)[:BATCH])
    links = _links(AuditRecord.objects.filter(pk__in=waiting).order_by("pk"))
    ChainLink.objects.bulk_create(links)
    UnchainedRecord.objects.filter(pk__in=waiting).delete()
    return len(waiting)


def _links(records: Any) -> list[ChainLink]:
    head, links = ChainLink.objects.order_by("-number").first(), []
    number, previous_hash = (head.number, head.hash) if head else (0, "")
    for record in records:
        number += 1
        made = link_hash(number, previous_hash, record)
        links.append(ChainLink(number=number, record=record, previous_hash=previous_hash, hash=made))
        previous_hash = made
    return links


class Verification:
    """A complete check of the chain, in bounded memory.

    `findings` yields what is wrong as (id, text), without content of records. Afterwards `number` and `hash`
    are those of the newest link. A later check with them as `expected` also finds a chain that was cut off,
    or written again completely. Keep them outside of the database for that.
    """

    def __init__(self, expected: tuple[int, str] | None = None) -> None:
        self.number, self.hash = 0, ""
        self._expected = expected
        self._newest_at = datetime.fromtimestamp(0, UTC)
        self._imported: list[range] = []

    def findings(self) -> Iterator[tuple[str, str]]:
        imports = AuditRecord.objects.filter(act=Act.MERCHANT_IMPORTED).values_list("after", flat=True)
        self._imported = [range(each["first_record"], each["next_record"]) for each in imports]
        rest, found = ChainLink.objects.order_by("number"), Q()  # also of numbers that no link can have
        while links := list(rest.filter(found)[:READ_BATCH]):
            found = Q(number__gt=links[-1].number)
            records = AuditRecord.objects.in_bulk([link.record_id for link in links])
            for link in links:
                yield from self._check(link, records.get(link.record_id))
        if self._expected and self._expected[0] > self.number:
            yield f"link {self._expected[0]}", f"missing: the chain ends at link {self.number}"
        late = AuditRecord.objects.filter(link=None, created_at__lt=Now() - UNCHAINED_LIMIT).order_by("pk")
        for record_id in late.values_list("pk", flat=True).iterator(chunk_size=READ_BATCH):
            yield f"record {record_id}", "has no link in the chain"

    def _check(self, link: ChainLink, record: AuditRecord | None) -> Iterator[tuple[str, str]]:
        name = f"link {link.number}"
        if link.number != self.number + 1:
            yield f"link {self.number + 1}", f"missing: the next link is {link.number}"
        if link.previous_hash != self.hash:
            yield name, "does not follow the link before it"
        if record is None:
            yield name, f"its record {link.record_id} is missing"
        else:
            if link.hash != link_hash(link.number, link.previous_hash, record):
                yield name, f"record {record.pk} was changed or replaced"
            # Records of a merchant that moved here are older, and have the order of their import.
            if not any(record.pk in each for each in self._imported):
                if record.created_at < self._newest_at - MAX_TIME_BACK:
                    yield name, f"record {record.pk} is older than the records before it"
                self._newest_at = max(self._newest_at, record.created_at)
        if self._expected and self._expected[0] == link.number and self._expected[1] != link.hash:
            yield name, "has another hash than the expected one"
        self.number, self.hash = link.number, link.hash


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds")
    return value
