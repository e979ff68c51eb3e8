"""A primary and a standby that streams from it, for tests of reads on the standby."""

import secrets
import signal
import subprocess
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psycopg

from config.devstack import ports
from config.devstack.postgres import Cluster, make_service_role
from config.devstack.programs import Program
from tests.stack import wait_until

START_SECONDS = 120.0


@dataclass
class Pair:
    """Both servers, in folders of their own below `home`, which must be reachable for `nobody`."""

    home: Path
    primary: Cluster = field(init=False)
    standby: Cluster = field(init=False)
    running: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        password, service = secrets.token_hex(), secrets.token_hex()
        options = ("-c", "max_connections=200")
        self.primary = Cluster(self.home / "primary", ports.pick(), password, options, service)
        self.standby = replace(self.primary, home=self.home / "standby", port=ports.pick())
        for cluster in (self.primary, self.standby):
            cluster.home.mkdir()
            cluster.home.chmod(0o711)

    @property
    def urls(self) -> dict[str, str]:
        return {
            "DATABASE_URL": self.primary.service_url,
            "MIGRATION_DATABASE_URL": self.primary.url,
            "DATABASE_REPLICA_URL": self.standby.service_url,
        }

    def start(self) -> None:
        server = self.primary.prepare()
        self.running["primary"] = server.spawn()
        wait_until(self.primary.is_ready, START_SECONDS)
        make_service_role(self.primary.url, self.primary.service_password)
        self._copy(server)
        self.start_standby()

    def _copy(self, server: Program) -> None:
        """Make the data of the standby by a base backup."""
        account, data = server.account, self.standby.data
        if account is not None:
            account.own(self.standby.home)
        command: list[Any] = [Path(server.command[0]).with_name("pg_basebackup"), "-D", data, "-R"]
        subprocess.run(
            [*command, "--checkpoint=fast", "-d", self.primary.url],
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=[] if account else None,
            cwd="/",
            check=True,
        )

    def start_standby(self) -> None:
        self.running["standby"] = self.standby.prepare().spawn()
        wait_until(self._streams, START_SECONDS)

    def _streams(self) -> bool:
        try:
            query = "SELECT pg_is_in_recovery() AND EXISTS (SELECT FROM pg_stat_wal_receiver)"
            return bool(self.ask(query))
        except psycopg.OperationalError:
            return False

    def ask(self, query: str) -> Any:
        """One value, from the standby."""
        with psycopg.connect(self.standby.url, autocommit=True, connect_timeout=5) as connection:
            row = connection.execute(query).fetchone()
        return row[0] if row else None

    def pause_replay(self) -> None:
        self.ask("SELECT pg_wal_replay_pause()")
        wait_until(lambda: self.ask("SELECT pg_get_wal_replay_pause_state()") == "paused", START_SECONDS)

    def resume_replay(self) -> None:
        self.ask("SELECT pg_wal_replay_resume()")

    def rows_read(self) -> int:
        """How many rows of payments the standby has read."""
        query = """SELECT coalesce(sum(seq_tup_read) + sum(idx_tup_fetch), 0) FROM pg_stat_user_tables
                   WHERE relname = 'payments_payment'"""
        return int(self.ask(query))

    def stop_standby(self) -> None:
        server = self.running.pop("standby")
        server.send_signal(signal.SIGINT)
        server.wait()
        server.stdout.close()

    def stop(self) -> None:
        for server in reversed(self.running.values()):
            server.send_signal(signal.SIGINT)
            server.wait()
            server.stdout.close()
