"""The drill of docs/restore.md: the machine is lost, pgBackRest restores it to a point in time.

`pytest -rP` prints the times.
"""

import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import pytest

from config.env import OWNER_URL
from core.clock import BANGKOK
from tests import database_template
from tests.backups import BackedUpServer
from tests.flows.staff_browser import StaffBrowser
from tests.memory import server_folder
from tests.stack import Stack
from tests.systems.restores.lost_machine import LostMachine, refused

pytestmark = pytest.mark.slow


@pytest.fixture
def server() -> Iterator[BackedUpServer]:
    with server_folder("thai-qr-drill-") as folder:
        made = BackedUpServer(folder)
        made.create()
        yield made
        made.stop()


def test_machine_is_lost_and_restored_to_a_point_in_time(
    server: BackedUpServer, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    urls = {"DATABASE_URL": database_template.service_url(server.url), OWNER_URL: server.url}
    # A restored server must not be taken for a standby that took over.
    urls["SYNCHRONOUS_STANDBY"] = "1"
    with Stack(tmp_path / "data", RATE_LIMIT="0", SPEEDUP="20", **urls) as stack:
        shop = LostMachine.on(stack, server.programs)
        shop.receive(500_000)
        seconds = {"full backup": timed(lambda: server.pgbackrest("--type=full", "backup"))}
        shop.receive(200_000)
        seconds["incremental backup"] = timed(lambda: server.pgbackrest("--type=incr", "backup"))
        kept = shop.withdraw(50_000)
        shop.wait_for(kept)
        point = server.archive()
        assert 0 <= shop.metric("wal_archive_age_seconds") < 60
        after = shop.receive(70_000, reference="ORDER-70")
        lost = shop.withdraw(120_000)
        shop.wait_for(lost)
        server.archive()
        sent, memory = shop.orders_at_bank(), shop.memory_of_bank()

        server.lose()
        stack.stop()
        seconds["restore"] = server.restore(to=point)
        shop.remind_bank(memory)
        stack.start()

        assert shop.is_in_safe_mode()
        report = stack.manage("resume_transfers")
        assert "The server was restored from a backup" in report and lost in report
        seconds["audit"] = timed(lambda: stack.manage("audit"))

        # What the bank has and we lost: money of a payment, and a payout.
        day = datetime.now(BANGKOK).date().isoformat()
        stack.manage(
            "import_statement", str(shop.statement(day, tmp_path)), "--bank", "sandbox", "--by", "ann"
        )
        differences = refused(stack, "reconcile", day)
        assert "at the bank, not credited" in differences and "unmatched" in differences
        assert f"missing here: {lost}" in refused(stack, "compare_orders", "-", given=shop.list_of_bank())
        shop.record_lost(lost, 120_000)
        shop.wait_for(lost)
        attach(stack, shop, after)
        stack.manage("compare_orders", "-", given=shop.list_of_bank())
        assert shop.orders_at_bank() == sent, "nothing was sent again"

        new = shop.withdraw(30_000)
        shop.resume()
        shop.wait_for(new)
        assert shop.orders_at_bank() == sent | {new: 30_000}
        stack.manage("audit")
        times = "\n".join(f"{name}: {spent:.1f} s" for name, spent in seconds.items())
        request.node.add_report_section("call", "times", times)


def test_damaged_backup_is_found_after_the_next_one(server: BackedUpServer) -> None:
    server.pgbackrest("--type=full", "backup")
    verified = server.verify()
    assert verified.returncode == 0, verified.stdout
    server.damage()
    verified = server.verify()
    assert verified.returncode == 1
    assert "checksum invalid: 1" in verified.stdout


def attach(stack: Stack, shop: LostMachine, lost_code: dict[str, object]) -> None:
    """The shop makes the code of the lost order again, and staff attach the money to it."""
    again = shop.client.qr_code(amount=lost_code["amount"], reference="ORDER-70")
    desk = StaffBrowser(stack.base_url, stack.demo["admin_user"], stack.demo["admin_password"])
    (exception,) = desk.waiting()
    desk.decide(exception, "attach", payment_id=again["payment_id"])
    shop.client.wait_for_status(again, "succeeded")


def timed(act: Callable[[], object]) -> float:
    started = time.monotonic()
    act()
    return time.monotonic() - started
