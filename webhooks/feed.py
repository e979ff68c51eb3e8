"""The feed of a merchant's events: a sequence without gaps, which no reader skips or repeats.

Events get their sequence after the commit: when somebody reads, and by a task. So the statement that writes
an event never waits for another one of its merchant, and a transaction that commits late gets a later
sequence. Why: docs/decisions/55-event-feed.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import OperationalError, transaction
from psycopg.errors import LockNotAvailable

from core.database import rows
from core.deadlines import Deadline
from webhooks import bodies
from webhooks.models import MAX_BLOCK_EVENTS

# Events of one merchant that one commit numbers. A page of the feed has at most 100.
BATCH = 200
MERCHANTS = 20
NUMBER_SECONDS = 4.0  # a task ends after 4 s, before the next one starts
# So long a reader waits for another one that numbers, then it answers with what has a sequence.
READER_WAIT_MS = 500

LOCK = """
SELECT set_config('lock_timeout', %s, true), pg_advisory_xact_lock(hashtextextended('feed ' || %s, 0))
"""
# The next merchants with unnumbered events, and whether their lock is ours. Each step of the recursion is one
# look into the index, however many events wait.
LOCK_NEXT = """
WITH RECURSIVE waiting (merchant_id, place) AS (
    SELECT min(merchant_id), 1 FROM webhooks_unnumberedevent WHERE merchant_id > %s
    UNION ALL
    SELECT (
        SELECT min(other.merchant_id) FROM webhooks_unnumberedevent AS other
        WHERE other.merchant_id > waiting.merchant_id
    ), place + 1
    FROM waiting WHERE merchant_id IS NOT NULL AND place < %s
)
SELECT merchant_id, pg_try_advisory_xact_lock(hashtextextended('feed ' || merchant_id, 0))
FROM waiting WHERE merchant_id IS NOT NULL
"""
# A trigger numbers the rows that are deleted. Each batch of a run begins after the one before: deleted rows
# stay in the index until vacuum. Rows that commit later with a lower id wait for the next run.
NUMBER = """
WITH numbered AS (
    DELETE FROM webhooks_unnumberedevent WHERE ctid = ANY(ARRAY(
        SELECT oldest.ctid FROM unnest(%s::text[], %s::bigint[]) AS merchant (id, after), LATERAL (
            SELECT waiting.ctid FROM webhooks_unnumberedevent AS waiting
            WHERE waiting.merchant_id = merchant.id AND waiting.id > merchant.after
            ORDER BY waiting.id LIMIT %s
        ) AS oldest
    ))
    RETURNING merchant_id, id
)
SELECT merchant_id, count(*), max(id) FROM numbered GROUP BY merchant_id
"""
IS_WAITING = "EXISTS (SELECT FROM webhooks_unnumberedevent WHERE merchant_id = %(merchant_id)s)"
# One row at least: the newest sequence, and whether events wait for theirs. Sequences have no gaps, so both
# bounds of the blocks are known: a page reads few, whatever the statistics say.
PAGE = f"""
SELECT newest.sequence, newest.is_waiting, page.sequence, event.id || subject_id, body
FROM (
    SELECT coalesce((
        SELECT first_sequence + cardinality(event_ids) - 1 FROM webhooks_feedblock
        WHERE merchant_id = %(merchant_id)s ORDER BY first_sequence DESC LIMIT 1
    ), 0) AS sequence, {IS_WAITING} AS is_waiting
) AS newest
LEFT JOIN (
    SELECT first_sequence + nth - 1 AS sequence, event_id
    FROM webhooks_feedblock, unnest(event_ids) WITH ORDINALITY AS numbered (event_id, nth)
    WHERE merchant_id = %(merchant_id)s
        AND first_sequence > %(after)s::bigint + 1 - {MAX_BLOCK_EVENTS}
        AND first_sequence <= %(after)s::bigint + %(limit)s::bigint
        AND first_sequence + nth - 1 > %(after)s::bigint
    ORDER BY sequence LIMIT %(limit)s::bigint
) AS page ON true
LEFT JOIN webhooks_event AS event ON event.id = page.event_id
ORDER BY page.sequence
"""  # noqa: S608
# The first of the blocks that end at the event or later has it, unless the event was committed late: then it
# is in one of the next blocks of the same minute.
SEQUENCES = """
SELECT wanted.id, block.first_sequence + array_position(block.event_ids, wanted.id) - 1
FROM unnest(%(event_ids)s::text[]) AS wanted (id), LATERAL (
    SELECT first_sequence, event_ids FROM webhooks_feedblock
    WHERE merchant_id = %(merchant_id)s
        AND last_event_id >= wanted.id AND last_event_id < left(wanted.id, 8) || '~'
        AND wanted.id = ANY(event_ids)
    ORDER BY last_event_id LIMIT 1
) AS block
"""


@dataclass(frozen=True, slots=True)
class FeedPage:
    """Sequences and bodies of events, the lowest first. `total`: how many events follow `after_sequence`."""

    events: list[tuple[int, bytes]]
    total: int


def page(merchant_id: str, *, after_sequence: int, limit: int) -> FeedPage:
    """Up to `limit` events of the merchant after a sequence. First numbers events that wait, if needed."""
    values = {"merchant_id": merchant_id, "after": after_sequence, "limit": limit}
    found = rows.run(PAGE, values).fetchall()
    newest, is_waiting, last, *_ = found[-1]
    if is_waiting and (last is None or len(found) < limit):
        number(merchant_id)
        found = rows.run(PAGE, values).fetchall()
        newest = found[-1][0]
    events = [(number, bodies.unpack(body, own)) for *_, number, own, body in found if number is not None]
    return FeedPage(events, max(0, newest - after_sequence))


def sequences(merchant_id: str, event_ids: Sequence[str]) -> dict[str, int]:
    """The sequences of events of the merchant. Missing: more than a batch of older events wait for theirs."""
    values = {"merchant_id": merchant_id, "event_ids": list(event_ids)}
    found = rows.run(SEQUENCES, values).fetchall()
    if len(found) < len(event_ids):
        number(merchant_id)
        found = rows.run(SEQUENCES, values).fetchall()
    return dict(found)


def number(merchant_id: str) -> int:
    """Number up to BATCH waiting events of the merchant. Returns how many: 0 if the lock is busy."""
    try:
        with transaction.atomic():
            rows.run(LOCK, [str(READER_WAIT_MS), merchant_id])
            return sum(_number({}, [merchant_id]))
    except OperationalError as error:
        if isinstance(error.__cause__, LockNotAvailable):
            return 0
        raise


def number_all() -> int:
    """Number the events of all merchants that wait, until none is left or a deadline. Returns how many.

    Skips merchants for which another process numbers. In each round a merchant gets one batch. Events that
    come meanwhile wait for the next run: so blocks are full under load.
    """
    last, total, is_more, deadline = "", 0, False, Deadline.after(NUMBER_SECONDS)
    done: dict[str, int] = {}  # the newest id that this run numbered, by merchant
    while not deadline.is_past:
        with transaction.atomic():
            found = rows.run(LOCK_NEXT, [last, MERCHANTS]).fetchall()
            counts = _number(done, [merchant_id for merchant_id, is_locked in found if is_locked])
        total += sum(counts)
        is_more = is_more or BATCH in counts
        last = found[-1][0] if len(found) == MERCHANTS else ""
        if not last:  # the round is over
            if not is_more:
                break
            is_more = False
    return total


def _number(done: dict[str, int], merchant_ids: Sequence[str]) -> list[int]:
    """Number a batch of each merchant after its id in `done`, and return the sizes. They are locked."""
    after = [done.get(merchant_id, 0) for merchant_id in merchant_ids]
    numbered = rows.run(NUMBER, [list(merchant_ids), after, BATCH]).fetchall()
    done.update((merchant_id, newest_id) for merchant_id, _, newest_id in numbered)
    return [count for _, count, _ in numbered]
