"""The TypeScript client as a shop installs it, and programs that use it."""

import atexit
import functools
import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests import judges, webhook_receiver
from tests.stack import ROOT
from tests.webhook_receiver import ReceivedRequest, Receiver, Script

PACKAGE = ROOT / "clients" / "typescript"
PROGRAMS = Path(__file__).with_name("typescript")
KEY = "tq_test_abcdefgh_secret"


@functools.cache
def project() -> Path:
    """A folder in which the client is installed. Another test checks its types, so this is quick."""
    folder = Path(tempfile.mkdtemp(prefix="thaiqr-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    installed = folder / "node_modules" / "thai-qr-payments"
    for form in (with_types(), with_types() / "cjs"):
        compile_with("--project", form, "--noCheck", folder=folder)
    shutil.copytree(with_types(), installed)
    (folder / "package.json").write_text('{"type": "module"}')
    return folder


@functools.cache
def with_types() -> Path:
    """A copy of the package with the types of the API, which the build makes from the OpenAPI document."""
    folder = Path(tempfile.mkdtemp(prefix="thaiqr-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    built = shutil.ignore_patterns("node_modules", "dist")
    shutil.copytree(PACKAGE, folder, ignore=built, dirs_exist_ok=True)
    options = ("--default-non-nullable=false", "--output", folder / "src" / "schema.ts")
    done = judges.run_node(judges.OPENAPI_TYPESCRIPT, judges.DOCUMENT, *options, folder=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def compile_with(*arguments: str | Path, folder: Path) -> None:
    """Run the compiler. Skips the test if it is not installed; fails if it finds anything."""
    done = judges.run_node(judges.TYPESCRIPT, *arguments, folder=folder)
    assert done.returncode == 0, done.stdout + done.stderr


def compile_programs(*names: str) -> None:
    """Compile programs of the project, as strictly as a shop can, without the types of browsers."""
    options = ("--strict", "--skipLibCheck", "--noEmitOnError", "--target", "es2022", "--lib", "es2023")
    types = ("--module", "nodenext", "--types", "node", "--typeRoots", judges.MODULES / "@types")
    compile_with(*options, *types, *names, folder=project())


def run(program: str, given: Any = None, **environment: str) -> Any:
    """Run a program of the folder `typescript`, which Node.js does as it is; return the JSON it prints."""
    judges.require(judges.TYPESCRIPT)
    copied = project() / program
    shutil.copy(PROGRAMS / program, copied)
    done = judges.run_node(copied, folder=project(), given=json.dumps(given), **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


@dataclass(frozen=True)
class Case:
    """A call of the client, and the replies of the service to its attempts. The last one is repeated."""

    method: str
    arguments: Sequence[Any] = ()
    replies: Sequence[Script] = ()
    options: dict[str, Any] = field(default_factory=dict)
    ends_after: int | None = None
    take: int | None = None


@dataclass(frozen=True)
class Outcome:
    """What came of a case. `shown` is what a log of the client, or of the error, would show."""

    requests: list[ReceivedRequest]
    warnings: list[str]
    seconds: float
    shown: str = ""
    value: Any = None
    error: dict[str, Any] | None = None

    @property
    def kind(self) -> str | None:
        return self.error["kinds"][0] if self.error else None


class CasesService(Receiver):
    """Stands for the service. Each case has a base URL of its own, with its name as the path."""

    cases: dict[str, list[Script]]

    def reply_to(self, request: ReceivedRequest) -> Script:
        replies = self.cases[request.path.split("/")[1]]
        return replies.pop(0) if len(replies) > 1 else replies[0]


def carry_out(cases: dict[str, Case], **environment: str) -> dict[str, Outcome]:
    """Carry out all cases at the same time, in one process."""
    with CasesService.running() as service:
        service.cases = {name: [*case.replies] for name, case in cases.items()}
        given = [_call(case, f"{service.base_url}/{name}") for name, case in cases.items()]
        outcomes = run("calls.ts", given, **environment)
        received = {name: list(_sent(service.requests, name)) for name in cases}
    return {name: Outcome(received[name], **found) for name, found in zip(cases, outcomes, strict=True)}


def _call(case: Case, base_url: str) -> dict[str, Any]:
    called = {
        "method": case.method,
        "arguments": case.arguments,
        "take": case.take,
        "endsAfter": case.ends_after,
    }
    options = {"apiKey": KEY, "baseUrl": base_url} | case.options
    return {name: value for name, value in called.items() if value is not None} | {"options": options}


def _sent(requests: Sequence[ReceivedRequest], name: str) -> Iterator[ReceivedRequest]:
    return (request for request in requests if request.path.split("/")[1] == name)


def refusal(status: int, code: str, kind: str, **headers: str) -> webhook_receiver.Reply:
    """An error as the API answers it."""
    error = {"code": code, "message": "No.", "type": kind, "param": "amount", "detail": "is wrong"}
    body = json.dumps({"error": error}).encode()
    return webhook_receiver.Reply(status, {"X-Request-Id": "req-1", **headers}, body)
