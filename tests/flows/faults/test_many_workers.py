"""Two beats and eight workers share the deliveries, and no delivery is sent twice."""

import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import IO

import psycopg
import pytest
from celery import Celery

from config.devstack import programs
from config.devstack.programs import Program
from tests.examples import examples
from tests.flows.conftest import ShopClient
from tests.flows.faults import load
from tests.flows.faults.hooks import Hook, events_by_payment
from tests.stack import ROOT, STOP_SECONDS, Stack, wait_until

pytestmark = pytest.mark.slow
WORKERS = 8
HOOKS = 4
CODES = examples(800)


@contextmanager
def running(stack: Stack, programs: list[Program]) -> Iterator["list[subprocess.Popen[bytes]]"]:
    """Run more processes beside those of the instance."""
    with stack.log.open("ab") as log, ExitStack() as ending:
        processes = [_start(stack, program, log) for program in programs]
        for process in processes:
            ending.callback(_end, process)
        try:
            yield processes
        finally:
            for process in processes:
                process.terminate()


def _start(stack: Stack, program: Program, log: IO[bytes]) -> "subprocess.Popen[bytes]":
    environ = {**stack.environ, **program.environ}
    return subprocess.Popen(
        program.command, cwd=ROOT, env=environ, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
    )


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Raises TimeoutExpired if it does not end by itself."""
    try:
        process.wait(STOP_SECONDS)
    finally:
        process.kill()


def more_programs(stack: Stack) -> list[Program]:
    """A second beat, and seven more webhook workers."""
    kept = {program.name: program for program in programs.workers(stack.env)}
    worker = [str(part) for part in kept["webhooks"].command]
    named = [[part.replace("webhooks@", f"webhooks-{n}@") for part in worker] for n in range(2, WORKERS + 1)]
    return [kept["beat"], *(replace(kept["webhooks"], command=command) for command in named)]


def workers_that_answer(stack: Stack) -> set[str]:
    with Celery(broker=stack.env["REDIS_URL"], set_as_current=False) as app:
        replies = app.control.ping(timeout=5) or []
    return {name for reply in replies for name in reply if name.startswith("webhooks")}


def test_each_event_reaches_each_webhook_once(
    stack: Stack, shop_client: ShopClient, register: Callable[[str], Hook], database: psycopg.Connection
) -> None:
    hooks = [register(f"/{number}") for number in range(HOOKS)]
    with running(stack, more_programs(stack)) as more:
        wait_until(lambda: len(workers_that_answer(stack)) == WORKERS, 300)
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
