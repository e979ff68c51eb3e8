"""Two beats and five workers share the deliveries, and no delivery is sent twice."""

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import IO

import psycopg
import pytest
from celery import Celery

from config.workers import BEAT_ARGUMENTS, WORKERS, arguments_for
from tests.examples import examples
from tests.flows.conftest import ShopClient
from tests.stack import ROOT, STOP_SECONDS, Stack, wait_until
from tests.systems.faults import load
from tests.systems.faults.hooks import Hook, events_by_payment

pytestmark = pytest.mark.slow
MORE_WORKERS = 4
CELERY = (sys.executable, "-m", "celery", "--quiet", "-A", "config.celery:app")
HOOKS = 4
CODES = examples(800)


@contextmanager
def running(stack: Stack, commands: list[list[str]]) -> Iterator["list[subprocess.Popen[bytes]]"]:
    """Run more processes beside those of the instance."""
    with stack.log.open("ab") as log, ExitStack() as ending:
        processes = [_start(stack, command, log) for command in commands]
        for process in processes:
            ending.callback(_end, process)
        try:
            yield processes
        finally:
            for process in processes:
                process.terminate()


def _start(stack: Stack, command: list[str], log: IO[bytes]) -> "subprocess.Popen[bytes]":
    environ = {**stack.environ, **stack.env}
    return subprocess.Popen(
        command, cwd=ROOT, env=environ, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
    )


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Raises TimeoutExpired if it does not end by itself."""
    try:
        process.wait(STOP_SECONDS)
    finally:
        process.kill()


def more_commands() -> list[list[str]]:
    """A second beat, and four webhook workers beside the worker of all queues."""
    workers = [arguments_for(f"webhooks-{number}", WORKERS["webhooks"]) for number in range(MORE_WORKERS)]
    return [[*CELERY, *arguments] for arguments in (BEAT_ARGUMENTS, *workers)]


def workers_that_answer(stack: Stack) -> set[str]:
    with Celery(broker=stack.env["REDIS_URL"], set_as_current=False) as app:
        replies = app.control.ping(timeout=5) or []
    return {name for reply in replies for name in reply if name.startswith("webhooks")}


def test_many_workers_deliver_each_event_to_each_webhook_once(
    stack: Stack, shop_client: ShopClient, register: Callable[[str], Hook], database: psycopg.Connection
) -> None:
    hooks = [register(f"/{number}") for number in range(HOOKS)]
    with running(stack, more_commands()) as more:
        wait_until(lambda: len(workers_that_answer(stack)) == MORE_WORKERS, 300)
        with load.steady(shop_client, pause=0) as codes:
            codes.wait_for_more(CODES)
        shown = events_by_payment(shop_client)
        assert shown.keys() == codes.payment_ids
        for hook in hooks:
            hook.wait_for_success(len(shown), 180)
        assert [process.poll() for process in more] == [None] * len(more)

    assert [hook.delivered() for hook in hooks] == [Counter(shown.values())] * HOOKS
    ids = [hook.id for hook in hooks]
    tried_again = """SELECT d.id FROM webhooks_delivery d
        JOIN webhooks_deliveryattempt a ON a.delivery_id = d.id
                     WHERE d.endpoint_id = ANY(%s) GROUP BY d.id HAVING count(*) > 1 OR d.attempt_count > 1"""
    assert database.execute(tried_again, [ids]).fetchall() == []
