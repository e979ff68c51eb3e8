"""The hash chain: what it finds after tampering, with several writers, and after a crash."""

import io
from collections.abc import Callable
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction
from django.db.models import Max

from audit_trail import chain, recording
from audit_trail.acts import Act
from audit_trail.models import AuditRecord, ChainLink, UnchainedRecord
from audit_trail.tasks import chain_waiting
from tests.concurrency import run_concurrently
from tests.conftest import Shop
from tests.context import acting_as

RECORD, LINK = "audit_trail_auditrecord", "audit_trail_chainlink"
INSERT = f"""
    INSERT INTO {RECORD} (
        created_at, act, object_type, object_id, merchant_id, before, after, reason, address, session
    )
    SELECT {{}}, act, object_type, object_id, merchant_id, before, after, reason, address,
    session FROM {RECORD} ORDER BY id LIMIT 1"""
SECOND, THIRD = (f"(SELECT record_id FROM {LINK} WHERE number = {number})" for number in (2, 3))
LAST = f"(SELECT max(number) FROM {LINK})"
TAMPERING = {
    "changed actor": (f"UPDATE {RECORD} SET actor = 'x' WHERE id = {SECOND}", "was changed or replaced"),
    "changed time": (
        f"UPDATE {RECORD} SET created_at = created_at + interval '1 microsecond' WHERE id = {SECOND}",
        "was changed or replaced",
    ),
    "changed values": (
        f"""UPDATE {RECORD} SET after = after || '{{"amount": 1}}' WHERE id = {SECOND}""",
        "was changed or replaced",
    ),
    "changed reason": (f"UPDATE {RECORD} SET reason = 'x' WHERE id = {SECOND}", "was changed or replaced"),
    "deleted record": (f"DELETE FROM {RECORD} WHERE id = {SECOND}", "is missing"),
    "deleted record with its link": (
        f"DELETE FROM {RECORD} WHERE id = {SECOND}; DELETE FROM {LINK} WHERE number = 2",
        "link 2: missing",
    ),
    "deleted first link": (f"DELETE FROM {LINK} WHERE number = 1", "link 1: missing"),
    "link before the first": (
        f"""ALTER TABLE {LINK} DROP CONSTRAINT chainlink_number_positive;
            UPDATE {LINK} SET number = -1 WHERE number = {LAST}""",
        "missing: the next link is -1",
    ),
    "inserted record": (INSERT.format("now() - interval '1 hour'"), "has no link"),
    "swapped records": (
        f"""UPDATE {LINK} SET record_id = -record_id WHERE number IN (2, 3);
            UPDATE {LINK} SET record_id = (
                SELECT -other.record_id FROM {LINK} AS other WHERE other.number = 5 - {LINK}.number
            ) WHERE number IN (2, 3)""",
        "link 2",
    ),
    "changed hash": (f"UPDATE {LINK} SET hash = repeat('0', 64) WHERE number = 2", "does not follow"),
    "changed hash of the newest link": (
        f"UPDATE {LINK} SET hash = repeat('0', 64) WHERE number = {LAST}",
        "was changed or replaced",
    ),
    "link without hash before it": (
        f"UPDATE {LINK} SET previous_hash = repeat('0', 64) WHERE number = 2",
        "does not follow",
    ),
    "record without a link": (f"DELETE FROM {LINK} WHERE number = {LAST}", "has no link"),
}  # fmt: skip


def act(shop: Shop, reason: str = "") -> AuditRecord:
    with transaction.atomic(), acting_as("staff:somsri"):
        return recording.write(Act.CHANGED, shop.merchant, after={"amount": 100}, reason=reason)


def damage(sql: str) -> None:
    """Change rows without triggers, as the owner of the database can."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE; SET LOCAL session_replication_role = replica")
        cursor.execute(sql)
        cursor.execute("SET LOCAL session_replication_role = origin")


def findings(expected: tuple[int, str] | None = None) -> list[str]:
    return [f"{name}: {finding}" for name, finding in chain.Verification(expected).findings()]


@pytest.fixture
def chained(shop: Shop) -> Shop:
    for number in range(5):
        act(shop, f"call {number}")
    damage(f"UPDATE {RECORD} SET created_at = created_at - interval '30 minutes'")
    chain.chain_waiting()
    assert findings() == []
    return shop


def test_task_chains_all_records_in_batches(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain, "BATCH", 2)
    for _ in range(5):
        act(shop)
    chain_waiting()
    links = ChainLink.objects.order_by("number")
    assert [link.number for link in links] == list(range(1, AuditRecord.objects.count() + 1))
    assert not UnchainedRecord.objects.exists()
    act(shop)
    assert chain.chain_waiting() == 1
    assert chain.chain_waiting() == 0
    assert findings() == []


@pytest.mark.parametrize("kind", TAMPERING)
def test_tampering_without_triggers_is_found(chained: Shop, kind: str) -> None:
    sql, finding = TAMPERING[kind]
    damage(sql)
    assert any(finding in each for each in findings()), findings()


def test_every_column_of_a_record_is_part_of_its_hash(chained: Shop) -> None:
    record = AuditRecord.objects.earliest("id")
    before = chain.content(record)
    for field in AuditRecord._meta.concrete_fields:
        changed = AuditRecord.objects.get(pk=record.pk)
        setattr(changed, field.attname, "other")
        assert chain.content(changed) != before, field.attname


def test_backdated_record_is_found_also_with_a_link(chained: Shop) -> None:
    damage(
        INSERT.format("now() - interval '1 day'")
        + ";"
        + f"""
        INSERT INTO audit_trail_unchainedrecord SELECT max(id) FROM {RECORD}"""
    )
    chain.chain_waiting()
    assert [each for each in findings() if "older than the records before it" in each]


def test_end_of_the_chain_that_was_noted_must_stay(chained: Shop) -> None:
    head = ChainLink.objects.latest("number")
    noted = (head.number, head.hash)
    act(chained)
    chain.chain_waiting()
    assert findings(noted) == []
    assert findings((noted[0], "0" * 64)) == [f"link {noted[0]}: has another hash than the expected one"]
    last_record = f"(SELECT max(record_id) FROM {LINK})"
    for _ in range(2):
        damage(f"""DELETE FROM {RECORD} WHERE id = {last_record};
                   DELETE FROM {LINK} WHERE record_id = {last_record}""")
    assert findings() == []
    assert findings(noted) == [f"link {noted[0]}: missing: the chain ends at link {noted[0] - 1}"]


def test_chain_written_again_completely_is_found_by_a_noted_link(chained: Shop) -> None:
    head = ChainLink.objects.latest("number")
    damage(f"""UPDATE {RECORD} SET reason = 'nothing' WHERE id = {SECOND};
               INSERT INTO audit_trail_unchainedrecord SELECT record_id FROM {LINK}; DELETE FROM {LINK}""")
    chain.chain_waiting()
    assert findings() == []
    assert findings((head.number, head.hash)) != []


@pytest.mark.parametrize(
    ("number", "previous"),
    [("max(number) + 2", "max(hash)"), ("max(number)", "''"), ("max(number) + 1", "repeat('0', 64)")],
)
def test_database_refuses_a_gap_or_a_fork_in_the_chain(chained: Shop, number: str, previous: str) -> None:
    record = act(chained)
    sql = f"INSERT INTO {LINK} SELECT {number}, {previous}, 'x', {record.pk} FROM {LINK}"
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql)


@pytest.mark.django_db(transaction=True)
@pytest.mark.slow
def test_chain_is_complete_with_concurrent_writers_and_tasks(shop: Shop) -> None:
    def write() -> None:
        for _ in range(20):
            act(shop)

    def run_task() -> None:
        for _ in range(20):
            chain.chain_waiting()

    run_concurrently(write, write, write, run_task, run_task)
    chain.chain_waiting()
    count = AuditRecord.objects.count()
    assert count >= 60
    assert ChainLink.objects.aggregate(newest=Max("number")) == {"newest": count}
    assert ChainLink.objects.count() == count
    assert findings() == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.slow
def test_writers_do_not_wait_for_the_task_or_for_a_slow_page(shop: Shop) -> None:
    """The transactions of a slow page and of a task are open while others write and chain."""
    with transaction.atomic():
        slow = act(shop)
        (other,) = run_concurrently(lambda: act(shop))
        run_concurrently(chain.chain_waiting)
        assert ChainLink.objects.filter(record=other).exists()
        assert not ChainLink.objects.filter(record=slow).exists()
    with transaction.atomic():
        chain.chain_waiting()
        (later,) = run_concurrently(lambda: act(shop))
        # The other task leaves the work to this one.
        assert run_concurrently(chain.chain_waiting) == [0]
    chain.chain_waiting()
    assert ChainLink.objects.filter(record__in=[slow, later]).count() == 2
    assert findings() == []


class Killed(Exception):
    """The process ends here."""


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("place", ["_links", "bulk_create", "delete"])
def test_task_killed_in_the_middle_leaves_no_trace(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    for _ in range(3):
        act(shop)
    waiting = UnchainedRecord.objects.count()

    def killed(*args: Any, **kwargs: Any) -> None:
        raise Killed

    def killed_after(action: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> None:
            action(*args, **kwargs)
            raise Killed

        return run

    with monkeypatch.context() as patched:
        if place == "_links":
            patched.setattr(chain, "_links", killed)
        elif place == "bulk_create":
            patched.setattr(ChainLink.objects, "bulk_create", killed_after(ChainLink.objects.bulk_create))
        else:
            patched.setattr(type(UnchainedRecord.objects.all()), "delete", killed)
        with pytest.raises(Killed):
            chain.chain_waiting()
    assert (ChainLink.objects.count(), UnchainedRecord.objects.count()) == (0, waiting)
    assert chain.chain_waiting() == waiting
    assert findings() == []


def audit(*arguments: str) -> str:
    output = io.StringIO()
    call_command("audit", *arguments, stdout=output)
    return output.getvalue()


@pytest.mark.django_db(transaction=True)
@pytest.mark.slow
def test_audit_command_verifies_the_chain_and_prints_its_end(shop: Shop) -> None:
    act(shop)
    act(shop)
    chain.chain_waiting()
    head = ChainLink.objects.latest("number")
    noted = f"{head.number}:{head.hash}"
    assert f"Its newest link: {noted}" in audit()
    assert noted in audit("--chain-link", noted)
    with pytest.raises(CommandError, match="Differences: 1"):
        audit("--chain-link", f"{head.number}:{'0' * 64}")
    with pytest.raises(CommandError, match="NUMBER:HASH"):
        audit("--chain-link", "yesterday")
    with transaction.atomic():
        damage(f"UPDATE {RECORD} SET reason = 'x' WHERE id = {SECOND}")
    with pytest.raises(CommandError, match="Differences: 1"):
        audit()
