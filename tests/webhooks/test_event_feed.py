"""The feed of events: a sequence for each merchant, without gaps, that no reader skips or repeats."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from threading import Barrier, Event as Signal
from typing import Any

import orjson
import pytest
from django.db import DatabaseError, connection, transaction

from core.database import rows
from tests.concurrency import SECONDS, run_concurrently
from tests.conftest import Shop
from tests.sqlstates import NOT_ALLOWED, as_application, sqlstate, within_a_trigger
from tests.webhooks.api_calls import error_code
from tests.webhooks.builders import NOW, publish
from webhooks import feed
from webhooks.models import Event, FeedBlock, UnnumberedEvent

FEED = "/Thai/v1/events?after_sequence="


def read(shop: Shop, after: int = 0, limit: int = 100) -> Any:
    return shop.get(f"{FEED}{after}&limit={limit}").json()


def sequences(page: Any) -> list[int]:
    return [event["sequence"] for event in page["events"]]


@pytest.mark.django_db
class TestPages:
    def test_events_after_a_sequence_are_listed_with_the_lowest_first(self, shop: Shop) -> None:
        publish(shop, 5)
        page = read(shop, limit=2)
        assert (sequences(page), page["total"], page["limit"]) == ([1, 2], 5, 2)
        assert "offset" not in page
        page = read(shop, after=2)
        assert (sequences(page), page["total"]) == ([3, 4, 5], 3)

    def test_feed_of_a_merchant_has_its_events_only(self, shop: Shop, other_shop: Shop) -> None:
        publish(shop, 2)
        publish(other_shop, 1)
        assert sequences(read(shop)) == [1, 2]
        assert sequences(read(other_shop)) == [1]

    @pytest.mark.parametrize("after", [0, 7, 10**15])
    def test_feed_without_later_events_is_empty(self, shop: Shop, after: int) -> None:
        assert read(shop, after) == {"events": [], "total": 0, "limit": 100}

    def test_event_of_the_feed_is_the_message_with_its_sequence(self, shop: Shop) -> None:
        publish(shop, note="ส้มตำ")
        (event,) = read(shop)["events"]
        body = bytes(Event.objects.get().body)
        assert shop.get(f"/v1/events/{event['event_id']}").content == body[:-1] + b',"sequence":1}'
        assert shop.get("/v1/events").json()["events"] == [event]

    def test_list_and_item_number_events_that_wait(self, shop: Shop) -> None:
        publish(shop, 2)
        listed = shop.get("/v1/events").json()["events"]
        assert {event["sequence"] for event in listed} == {1, 2}
        publish(shop)
        newest = Event.objects.exclude(pk__in=[event["event_id"] for event in listed]).get()
        assert shop.get(f"/v1/events/{newest.pk}").json()["sequence"] == 3

    def test_event_behind_a_long_backlog_has_no_sequence_yet(
        self, shop: Shop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(feed, "BATCH", 2)
        publish(shop, 3)
        listed = shop.get("/v1/events?limit=3").json()["events"]
        assert sorted(str(event["sequence"]) for event in listed) == ["1", "2", "None"]

    @pytest.mark.parametrize(
        "query",
        [
            "after_sequence=-1",
            "after_sequence=x",
            "after_sequence=1.0",
            "after_sequence=",
            "after_sequence=1&after_sequence=2",
            f"after_sequence={10**15 + 1}",
            f"after_sequence={10**30}",
            "after_sequence=1&offset=0",
            "after_sequence=1&event=payment.succeeded",
            "after_sequence=1&start_date=2026-11-21",
            "after_sequence=1&end_date=2026-11-21",
            "after_sequence=1&after=evt_x",
            "after_sequence=1&limit=101",
        ],
    )
    def test_wrong_query_of_the_feed_is_refused(self, shop: Shop, query: str) -> None:
        assert error_code(shop.get(f"/v1/events?{query}")) == (400, "invalid_parameters")

    def test_task_numbers_the_events_of_all_merchants(
        self, shop: Shop, other_shop: Shop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(feed, "BATCH", 2)
        monkeypatch.setattr(feed, "MERCHANTS", 1)
        publish(shop, 5)
        publish(other_shop, 1)
        assert feed.number_all() == 6
        assert not UnnumberedEvent.objects.exists()
        assert feed.number_all() == 0
        assert sequences(read(shop)) == [1, 2, 3, 4, 5]

    def test_sequences_of_many_events_are_found_by_page_and_by_event(self, shop: Shop) -> None:
        """Over blocks that are full, and that end because the next event is of another minute."""
        ages = [0, 0, 300, 0, 300, 300, *[0] * 120]
        for number, age in enumerate(ages):
            publish(shop, at=NOW - timedelta(seconds=age), number=number)
        feed.number(shop.merchant.id)
        assert FeedBlock.objects.count() == 4 + 3
        publish(shop, number=len(ages))
        assert feed.number(shop.merchant.id) == 1
        found = [event for after in range(0, 127, 9) for event in read(shop, after, limit=9)["events"]]
        assert [event["data"]["number"] for event in found] == list(range(127))
        assert [event["sequence"] for event in found] == list(range(1, 128))
        sought = feed.sequences(shop.merchant.id, [event["event_id"] for event in found])
        assert list(sought.values()) == list(range(1, 128))

    def test_events_are_numbered_in_the_order_of_their_inserts(self, shop: Shop) -> None:
        for number in range(20):
            publish(shop, number=number)
        assert [event["data"]["number"] for event in read(shop)["events"]] == list(range(20))


@pytest.mark.django_db
class TestRulesOfTheDatabase:
    @pytest.mark.parametrize(
        "sql",
        [
            "UPDATE webhooks_feedblock SET first_sequence = first_sequence + 1",
            "DELETE FROM webhooks_feedblock",
            "TRUNCATE webhooks_feedblock",
            "INSERT INTO webhooks_feedblock VALUES ('mch_x', 1, 'evt_x', '{evt_x}')",
            "UPDATE webhooks_unnumberedevent SET event_id = 'evt_x'",
            "TRUNCATE webhooks_unnumberedevent",
            "INSERT INTO webhooks_unnumberedevent (event_id, merchant_id) VALUES ('evt_x', 'mch_x')",
        ],
    )
    def test_only_triggers_number_events(self, shop: Shop, sql: str) -> None:
        publish(shop)
        feed.number(shop.merchant.id)
        publish(shop)
        sentence = r"only triggers|never changes"
        with pytest.raises(DatabaseError, match=sentence), transaction.atomic():
            connection.cursor().execute(sql)

    def test_application_numbers_no_event_by_triggers_of_its_own(self, shop: Shop) -> None:
        """Also not by our functions as triggers of a temporary table."""
        publish(shop)
        with as_application():
            feed.number(shop.merchant.id)
            publish(shop)
            waits = UnnumberedEvent.objects.get().event_id
            for attack in (
                f"INSERT INTO webhooks_unnumberedevent (merchant_id, event_id) VALUES ('mch_x', '{waits}')",
                f"INSERT INTO webhooks_feedblock VALUES ('{shop.merchant.id}', 2, '{waits}', '{{{waits}}}')",
                "UPDATE webhooks_unnumberedevent SET event_id = 'evt_x'",
            ):
                assert sqlstate(within_a_trigger(attack)) == NOT_ALLOWED, attack
            made = """CREATE TEMPORARY TABLE fake (LIKE webhooks_event) ON COMMIT DROP;
                CREATE TRIGGER one AFTER INSERT ON fake FOR EACH ROW EXECUTE FUNCTION webhooks_"""
            for function in ("wait_for_sequence", "number_events"):
                assert sqlstate(f"{made}{function}()") == NOT_ALLOWED, function

    def test_event_never_changes(self, shop: Shop) -> None:
        publish(shop)
        for change in ("SET body = '{}'", "SET subject_id = 'pay_x'"):
            assert sqlstate(f"UPDATE webhooks_event {change}") == NOT_ALLOWED
        assert sqlstate("DELETE FROM webhooks_event") == NOT_ALLOWED

    def test_event_that_no_longer_waits_has_a_sequence(self, shop: Shop) -> None:
        publish(shop, 3)
        rows.run("DELETE FROM webhooks_unnumberedevent", [])
        assert sequences(read(shop)) == [1, 2, 3]


@dataclass
class Reader:
    """Follows the feed as a merchant does, and keeps what it got."""

    merchant_id: str
    limit: int
    seen: list[tuple[int, str]] = field(default_factory=list)

    def follow(self, is_over: Callable[[], bool]) -> None:
        """Read until the writers are finished and nothing follows."""
        while True:
            was_over = is_over()
            last = self.seen[-1][0] if self.seen else 0
            page = feed.page(self.merchant_id, after_sequence=last, limit=self.limit)
            self.seen += [(sequence, body.decode()) for sequence, body in page.events]
            if was_over and not page.total:
                return


@dataclass
class Writers:
    """Threads that publish events. Some transactions stay open for long, and some are rolled back."""

    shop: Shop
    rounds: int
    committed: list[str] = field(default_factory=list)
    finished: list[int] = field(default_factory=list)

    def write(self, seed: int) -> None:
        chance = Random(seed)
        for number in range(self.rounds):
            name = f"{seed}/{number}"
            if chance.random() < 0.7:
                publish(self.shop, name=name)  # by one statement, without a transaction
                self.committed.append(name)
            else:
                self._write_slowly(name, chance)
        self.finished.append(seed)

    def _write_slowly(self, name: str, chance: Random) -> None:
        """Commit after others have written and numbered events with higher keys, or roll back."""
        with transaction.atomic():
            publish(self.shop, name=name)
            publish(self.shop, 2, name=name + "/more")
            before = len(self.committed) + len(self.finished)
            for _ in range(chance.choice([0, 5, 50])):
                feed_length(self.shop.merchant.id)
                if len(self.committed) + len(self.finished) > before + 3:
                    break
            is_rolled_back = chance.random() < 0.4
            transaction.set_rollback(is_rolled_back)
        if not is_rolled_back:
            self.committed += [name, name + "/more", name + "/more"]


def feed_length(merchant_id: str) -> int:
    return FeedBlock.objects.filter(merchant_id=merchant_id).count()


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
class TestRaces:
    @pytest.mark.parametrize("batch", [3, feed.BATCH])
    def test_no_reader_skips_or_repeats_an_event(
        self, shop: Shop, batch: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(feed, "BATCH", batch)
        writers, threads = Writers(shop, rounds=40), 6
        readers = [Reader(shop.merchant.id, limit) for limit in (1, 7, 100)]

        def is_over() -> bool:
            return len(writers.finished) == threads

        def number_meanwhile() -> None:
            while not is_over():
                feed.number_all()

        run_concurrently(
            *[lambda seed=seed: writers.write(seed) for seed in range(threads)],
            *[lambda reader=reader: reader.follow(is_over) for reader in readers],
            *[number_meanwhile] * 2,
        )
        expected = len(writers.committed)
        assert 0 < expected == Event.objects.count()
        for reader in readers:
            assert [sequence for sequence, _ in reader.seen] == list(range(1, expected + 1))
            assert sorted(name_of(body) for _, body in reader.seen) == sorted(writers.committed)
            assert reader.seen == readers[0].seen

    def test_event_of_a_transaction_that_commits_late_gets_a_later_sequence(self, shop: Shop) -> None:
        published, may_commit = Signal(), Signal()

        def write_slowly() -> None:
            with transaction.atomic():
                publish(shop, name="late")
                published.set()
                assert may_commit.wait(SECONDS)

        def read_meanwhile() -> list[tuple[int, bytes]]:
            assert published.wait(SECONDS)
            publish(shop, name="early")
            page = feed.page(shop.merchant.id, after_sequence=0, limit=100)
            may_commit.set()
            return page.events

        _, seen = run_concurrently(write_slowly, read_meanwhile)
        assert [(sequence, name_of(body.decode())) for sequence, body in seen or []] == [(1, "early")]
        later = feed.page(shop.merchant.id, after_sequence=1, limit=100)
        assert [(sequence, name_of(body.decode())) for sequence, body in later.events] == [(2, "late")]

    def test_merchants_write_and_read_while_another_one_is_numbered(
        self, shop: Shop, other_shop: Shop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(feed, "READER_WAIT_MS", 20)
        publish(shop)
        with transaction.atomic():
            rows.run(feed.LOCK, ["1000", shop.merchant.id])

            def use_meanwhile() -> tuple[int, int]:
                publish(shop)  # a writer never waits
                publish(other_shop)
                # The task and a reader go on without the merchant whose lock another process has.
                assert feed.number_all() == 1
                locked = feed.page(shop.merchant.id, after_sequence=0, limit=100)
                free = feed.page(other_shop.merchant.id, after_sequence=0, limit=100)
                return len(locked.events), len(free.events)

            assert run_concurrently(use_meanwhile) == [(0, 1)]
        assert sequences(read(shop)) == [1, 2]

    def test_numbering_without_the_lock_gives_no_sequence_twice(self, shop: Shop) -> None:
        publish(shop, 2)
        first, second = UnnumberedEvent.objects.order_by("id")
        barrier = Barrier(2)

        def delete(row: UnnumberedEvent) -> bool:
            try:
                with transaction.atomic():
                    barrier.wait(SECONDS)
                    row.delete()
            except DatabaseError:
                return False
            return True

        deleted = run_concurrently(lambda: delete(first), lambda: delete(second))
        assert any(deleted)
        assert sequences(read(shop)) == [1, 2]


def name_of(body: str) -> str:
    name: str = orjson.loads(body)["data"]["name"]
    return name
