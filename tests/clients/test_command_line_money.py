"""Commands that move money: a script that repeats them never pays twice, whatever its output is."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.command_line import CommandLine
from tests.webhook_receiver import Receiver, Reply

pytestmark = pytest.mark.slow

KEY = "tq_test_abcdefgh_secret"
HOLDER = "สมหญิง ใจดี é 😀"
SENT = {
    "withdrawal_id": "wd_1",
    "status": "pending",
    "awaiting_approval": False,
    "pending_reason": None,
    "amount": 10_000,
    "amount_display": "100.00 THB",
    "currency": "THB",
    "bank_code": "014",
    "bank_name": "ไทยพาณิชย์",
    "bank_account": "4567",
    "account_name": HOLDER,
    "reference": None,
    "failure_code": None,
    "bank_reference": None,
    "metadata": None,
    "created_at": "2026-11-21T03:04:05.123Z",
    "updated_at": "2026-11-21T03:04:05.123Z",
    "completed_at": None,
}
WITHDRAW = (
    "withdraw",
    "--bank",
    "SCB",
    "--account",
    "4051234567",
    "--name",
    HOLDER,
    "--amount",
    "100",
    "--yes",
)


@pytest.fixture
def service() -> Iterator[Receiver]:
    body = json.dumps(SENT, ensure_ascii=False).encode()
    with Receiver.running(Reply(headers={"Content-Type": "application/json"}, body=body)) as service:
        yield service


@pytest.fixture
def thaiqr(service: Receiver, tmp_path: Path) -> CommandLine:
    return CommandLine(KEY, service.base_url, tmp_path)


def run(thaiqr: CommandLine, *arguments: str, encoding: str) -> tuple[int, str, str]:
    """Run it in a process of its own, whose output has this encoding."""
    thaiqr.env["PYTHONIOENCODING"] = encoding
    with thaiqr.running(*arguments, encoding=encoding) as process:
        shown, told = process.communicate(timeout=60)
    return process.returncode, shown, told


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "cp874", "utf-8"])
def test_withdrawal_is_shown_in_every_encoding(thaiqr: CommandLine, service: Receiver, encoding: str) -> None:
    code, shown, told = run(thaiqr, *WITHDRAW, encoding=encoding)
    assert (code, "wd_1" in shown, len(service.requests)) == (0, True, 1)
    assert service.requests[0].json["account_name"] == HOLDER
    assert f"Idempotency key: {service.requests[0].headers['idempotency-key']}" in told
    code, shown, told = run(thaiqr, *WITHDRAW, "--json", encoding=encoding)
    assert (code, json.loads(shown)["account_name"]) == (0, HOLDER)
    assert json.loads(told) == {"idempotency_key": service.requests[1].headers["idempotency-key"]}


def test_withdrawal_whose_reader_has_gone_is_no_error(thaiqr: CommandLine, service: Receiver) -> None:
    """As in `thaiqr withdraw ... | true`: exit code 1 would say that the service refused it."""
    reader, writer = os.pipe()
    os.close(reader)
    with thaiqr.running(*WITHDRAW, stdout=writer) as process:
        os.close(writer)
        _, told = process.communicate(timeout=60)
    assert (process.returncode, len(service.requests)) == (0, 1)
    assert f"Idempotency key: {service.requests[0].headers['idempotency-key']}" in told


def test_withdrawal_is_shown_in_a_terminal_without_a_width(thaiqr: CommandLine, service: Receiver) -> None:
    done = thaiqr(*WITHDRAW, COLUMNS="0")
    assert (done.code, "wd_1" in done.stdout, "Idempotency key: " in done.stderr) == (0, True, True)


@pytest.mark.parametrize("command", [WITHDRAW, ("refund", "pay_1", "--yes")], ids=["withdraw", "refund"])
def test_idempotency_key_is_told_before_money_is_sent(
    thaiqr: CommandLine, service: Receiver, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("thaiqr.attempts.FIRST_PAUSE", 0.001)
    answer, service.default = service.default, Reply(closes=True)
    done = thaiqr(*command)
    [told] = re.findall(r"Idempotency key: (\S+)", done.stderr)
    assert (done.code, {each.headers["idempotency-key"] for each in service.requests}) == (4, {told})
    service.default = answer
    again = thaiqr(*command, "--idempotency-key", told)
    assert service.requests[-1].headers["idempotency-key"] == told
    assert f"Idempotency key: {told}" in again.stderr


def test_error_after_the_request_is_never_wrong_usage(
    thaiqr: CommandLine, service: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    for error in (ValueError("broken"), OSError(28, "No space left on device"), KeyError("status")):

        def fail(*_: object, error: Exception = error) -> None:
            raise error

        monkeypatch.setattr("thaiqr.cli.output.Output.show", fail)
        done = thaiqr(*WITHDRAW, "--idempotency-key", "payout-17")
        assert (done.code, "--idempotency-key payout-17" in done.stderr) == (4, True)
    assert len(service.requests) == 3


def test_request_that_is_still_running_is_not_refused(
    thaiqr: CommandLine, service: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("thaiqr.attempts.FIRST_PAUSE", 0.001)
    running = {"code": "idempotency_key_in_progress", "message": "It runs.", "type": "idempotency_error"}
    service.default = Reply(status=409, body=json.dumps({"error": running}).encode())
    assert thaiqr(*WITHDRAW, "--idempotency-key", "payout-17").code == 4


def test_full_disk_after_the_request_is_never_wrong_usage(thaiqr: CommandLine, service: Receiver) -> None:
    with Path("/dev/full").open("w") as full, thaiqr.running(*WITHDRAW, stdout=full) as process:
        _, told = process.communicate(timeout=60)
    assert process.returncode not in (0, 1, 2), told
    assert "Repeat it with --idempotency-key" in told
    assert len(service.requests) == 1


def test_empty_idempotency_key_sends_nothing(thaiqr: CommandLine, service: Receiver) -> None:
    for command in (WITHDRAW, ("refund", "pay_1", "--yes"), ("qr", "create", "--amount", "1")):
        done = thaiqr(*command, "--idempotency-key", "")
        assert (done.code, "--idempotency-key" in done.stderr) == (2, True)
    assert not service.requests


def test_closed_output_is_no_error(thaiqr: CommandLine, service: Receiver) -> None:
    for options in ((), ("--json",)):
        command = [sys.executable, "-m", "thaiqr", *WITHDRAW, *options]
        with subprocess.Popen(
            ["sh", "-c", 'exec "$@" >&-', "sh", *command], env={**os.environ, **thaiqr.environment({})}
        ) as process:
            assert process.wait(60) == 0
    assert len(service.requests) == 2
