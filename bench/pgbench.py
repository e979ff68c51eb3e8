"""The baseline: pgbench runs the SQL of the peer with values made by PostgreSQL, without a web server."""

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from urllib.parse import urlsplit

from bench import peer_sql
from config.devstack.postgres_programs import find_programs

# One random number a transaction. Ids begin with the second, like those of the service, so that indexes grow
# at their ends.
DRAW = "\\set n random(1, 9000000000000000000)\n"
BODY_BYTES, EVENT_BYTES, PAYLOAD_CHARACTERS = 700, 330, 140
RATE = re.compile(r"^tps = ([0-9.]+) ", re.MULTILINE)
COUNT = re.compile(r"^number of transactions actually processed: ([0-9]+)", re.MULTILINE)
PROGRESS = re.compile(r"^progress: [0-9.]+ s, ([0-9.]+) tps", re.MULTILINE)
LATENCY = re.compile(r"^latency average = ([0-9.]+) ms", re.MULTILINE)


def create_script(digest: bytes, merchant_id: str) -> str:
    merchant, unique = _text(merchant_id), "'bench' || :n::bigint"
    print_ = f"sha256(({unique})::bytea)"
    statement = _filled(
        peer_sql.CREATE,
        *(merchant, unique, print_, _bytes(BODY_BYTES), "now()", "now() + interval '24 hours'"),
        *(_id("pay_"), _id("qr_"), "150000", "'order-1042'", """'{"table":4}'""", "'Somchai Jaidee'"),
        *("NULL", "NULL", "now() + interval '15 minutes'", "'099400000000000'"),
        *("lpad(:n::bigint::text, 20, '0')", f"repeat('0', {PAYLOAD_CHARACTERS})"),
        *(_id("evt_"), _bytes(EVENT_BYTES), "'{}'", "'{}'", "'{}'"),
    )
    return DRAW + "".join(
        [
            _filled(peer_sql.AUTHENTICATE, _binary(digest)),
            _filled(peer_sql.LOOK_UP_KEY, merchant, unique),
            _filled(peer_sql.LISTENERS, merchant),
            statement,
        ]
    )


def poll_script(digest: bytes, merchant_id: str, payment_id: str) -> str:
    return _filled(peer_sql.AUTHENTICATE, _binary(digest)) + _filled(
        peer_sql.POLL, _text(merchant_id), _text(payment_id)
    )


def _filled(statement: str, *values: str) -> str:
    """The statement with an expression for each `$n`, on one line as pgbench wants it."""
    filled = re.sub(r"\$(\d+)", lambda found: f"({values[int(found[1]) - 1]})", statement)
    return " ".join(filled.split()) + ";\n"


def _text(value: str) -> str:
    return f"'{value}'::text"


def _binary(value: bytes) -> str:
    return f"'\\x{value.hex()}'::bytea"


def _bytes(length: int) -> str:
    return f"repeat('x', {length})::bytea"


def _id(prefix: str) -> str:
    return f"('{prefix}' || extract(epoch FROM now())::bigint || right(lpad(:n::bigint::text, 19, '0'), 17))"


def run(database_url: str, script: Path, *, connections: int, seconds: float) -> tuple[float, float]:
    """Transactions a second and their mean latency in milliseconds. Raises CalledProcessError."""
    shown = _run(database_url, script, connections, seconds).stdout
    return _number(RATE, shown), _number(LATENCY, shown)


@dataclass(frozen=True)
class WarmRun:
    """rate: transactions a second after the warm-up. count: all transactions, also those of the warm-up."""

    rate: float
    count: int


def run_warm(
    database_url: str,
    script: Path,
    *,
    connections: int,
    warm_up: int,
    seconds: float,
    variables: Mapping[str, str],
) -> WarmRun:
    """Run a script whose statements take long to plan: the first seconds do not count.

    Raises CalledProcessError.
    """
    options = ["--progress=1", *(f"--define={name}={value}" for name, value in variables.items())]
    done = _run(database_url, script, connections, warm_up + seconds, *options)
    rates = [float(rate) for rate in PROGRESS.findall(done.stderr)[warm_up:]]
    return WarmRun(fmean(rates), int(_number(COUNT, done.stdout)))


def _run(
    database_url: str, script: Path, connections: int, seconds: float, *options: str
) -> "subprocess.CompletedProcess[str]":
    url = urlsplit(database_url)
    return subprocess.run(
        [
            *(find_programs() / "pgbench", "--no-vacuum", "--protocol=prepared", f"--file={script}"),
            *(f"--client={connections}", "--jobs=1", f"--time={max(1, round(seconds))}", *options),
            *("-h", str(url.hostname), "-p", str(url.port), "-U", str(url.username), url.path[1:]),
        ],
        env={**os.environ, "PGPASSWORD": str(url.password)},
        capture_output=True,
        check=True,
        text=True,
    )


def _number(pattern: re.Pattern[str], text: str) -> float:
    found = pattern.search(text)
    if found is None:
        raise ValueError(f"pgbench answered: {text}")
    return float(found[1])
