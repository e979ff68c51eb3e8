"""A shop with payouts, a bank that remembers them, and what staff do after a restore."""

import csv
import io
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import requests

from operations.metrics.families import PREFIX
from tests.flows.conftest import ShopClient
from tests.stack import Stack, wait_until

SECONDS = 120.0
BANK_TABLES = "SELECT tablename FROM pg_tables WHERE tablename LIKE 'sandbox%'"


@dataclass
class LostMachine:
    """An instance with one shop. programs: the folder of PostgreSQL's programs."""

    stack: Stack
    programs: Path
    merchant_id: str
    client: ShopClient

    @classmethod
    def on(cls, stack: Stack, programs: Path) -> "LostMachine":
        made = json.loads(stack.manage("create_merchant", "--name", "Somtam", "--mode", "test", "--json"))
        client = ShopClient(stack.base_url, made["secret_key"])
        return cls(stack, programs, made["merchant_id"], client)

    # --- the shop

    def receive(self, amount: int, **fields: Any) -> dict[str, Any]:
        """A payment that succeeded."""
        code: dict[str, Any] = self.client.qr_code(amount=amount, **fields)
        self.client.pay(code)
        self.client.wait_for_status(code, "succeeded")
        return code

    def withdraw(self, amount: int) -> str:
        payee = {"bank_code": "SCB", "bank_account": "4051234567", "account_name": "Somtam House"}
        made = self.client.post("/v1/withdrawals", {"amount": amount, "currency": "THB", **payee})
        return str(made["withdrawal_id"])

    def status(self, withdrawal_id: str) -> str:
        return str(self.client.get(f"/v1/withdrawals/{withdrawal_id}")["status"])

    def wait_for(self, withdrawal_id: str, status: str = "succeeded") -> None:
        wait_until(lambda: self.status(withdrawal_id) == status, SECONDS)

    # --- the bank, which is another company: a restore does not change what it knows

    def orders_at_bank(self) -> dict[str, int]:
        """The satang of each order that the bank accepted."""
        with psycopg.connect(self.stack.owner_url) as database:
            return dict(database.execute("SELECT reference, amount FROM sandbox_sandboxorder").fetchall())

    def list_of_bank(self) -> str:
        """The orders as a CSV file, as a bank offers it to its customers."""
        file = io.StringIO()
        csv.writer(file).writerows(
            [
                ("reference", "amount"),
                *((key, f"{satang / 100:.2f}") for key, satang in self.orders_at_bank().items()),
            ]
        )
        return file.getvalue()

    def memory_of_bank(self) -> bytes:
        command: list[str | Path] = [
            self.programs / "pg_dump",
            "--data-only",
            "--table=sandbox_*",
            self.stack.owner_url,
        ]
        return subprocess.check_output(command)

    def remind_bank(self, memory: bytes) -> None:
        with psycopg.connect(self.stack.owner_url, autocommit=True) as database:
            tables = ", ".join(name for (name,) in database.execute(BANK_TABLES))
            database.execute(f"TRUNCATE {tables}")
        self.load(memory)

    def load(self, dump: bytes) -> None:
        """Run the SQL of a dump."""
        command: list[str | Path] = [
            self.programs / "psql",
            "--quiet",
            "--set=ON_ERROR_STOP=1",
            self.stack.owner_url,
        ]
        subprocess.run(command, input=dump, stdout=subprocess.DEVNULL, check=True)

    def statement(self, day: str, folder: Path) -> Path:
        """The statement of the bank, as it is downloaded from the bank."""
        address = f"{self.stack.base_url}/sandbox/v1/statements/{day}?format=bot"
        response = requests.get(
            address, headers={"Authorization": f"Bearer {self.client.secret_key}"}, timeout=60
        )
        file = folder / "statement.txt"
        file.write_bytes(response.content)
        return file

    # --- staff

    def is_in_safe_mode(self) -> bool:
        return self.metric("safe_mode") == 1

    def metric(self, name: str) -> float:
        """The value of this metric without labels."""
        text = requests.get(f"{self.stack.base_url}/metrics", timeout=60).text
        (value,) = [line.split()[1] for line in text.splitlines() if line.startswith(f"{PREFIX}{name} ")]
        return float(value)

    def record_lost(self, withdrawal_id: str, amount: int) -> str:
        return self.stack.manage(
            *("record_lost_order", "withdrawal", withdrawal_id, self.merchant_id, "--amount", str(amount)),
            *("--bank", "SCB", "--account", "4051234567", "--name", "Somtam House"),
            *("--reason", "It is in the list of the bank"),
        )

    def resume(self) -> None:
        """Resume when banks were asked about each order that waits."""

        def is_resumed() -> bool:
            try:
                self.stack.manage("resume_transfers", "--reason", "Compared with the list of the bank")
            except subprocess.CalledProcessError:
                return False
            return True

        wait_until(is_resumed, SECONDS)


def refused(stack: Stack, *arguments: str, given: str = "") -> str:
    """The output of a command that must fail."""
    try:
        stack.manage(*arguments, given=given)
    except subprocess.CalledProcessError as error:
        return str(error.output)
    raise AssertionError(f"{arguments[0]} did not fail")
