"""What every command needs: the client, the output, and errors turned into exit codes."""

import json as json_format
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Annotated, NoReturn

import httpx
import typer

from thaiqr.cli import exits, profiles
from thaiqr.cli.exits import Exit
from thaiqr.cli.output import Output
from thaiqr.client import ThaiQR
from thaiqr.errors import ThaiQRError
from thaiqr.settings import connected


def _also_before(context: typer.Context, value: bool) -> bool:
    """Whether `--json` stands here, or before the command."""
    return value or (context.parent is not None and bool(context.parent.params.get("json")))


AsJson = Annotated[
    bool, typer.Option("--json", help="Print JSON only, without colour.", callback=_also_before)
]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, help="How many at most.")]
Profile = Annotated[
    str | None,
    typer.Option("--profile", metavar="NAME", envvar=profiles.PROFILE, help="Use this profile of the file."),
]


def _checked_key(value: str | None) -> str | None:
    if value == "":
        raise typer.BadParameter("it is empty. Leave the option out for a new key.")
    return value


Key = Annotated[
    str | None,
    typer.Option("--idempotency-key", help="Repeat safely with the same key.", callback=_checked_key),
]
TEST_PREFIX = "tq_test_"

log = logging.getLogger("thaiqr")


def group(help: str) -> typer.Typer:
    """A group of commands. It takes `--json` before the command, too."""
    made = typer.Typer(no_args_is_help=True, help=help)

    @made.callback()
    def _before_the_command(json: AsJson = False) -> None: ...

    return made


def ask(output: Output, question: str, yes: bool) -> None:
    """Ask before money moves. Raises ValueError where nobody can answer, and typer.Abort for a no."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise ValueError(f"{question} Nobody can answer here: add --yes.")
    if output.json:
        raise ValueError("With --json, add --yes.")
    typer.confirm(question, abort=True)


class Requests:
    """The requests of one command. If asked, it tells the key of each before that is sent."""

    def __init__(self, output: Output, *, tells_key: bool) -> None:
        self._output, self._tells_key = output, tells_key
        self.were_sent = False
        self.keys: dict[str, None] = {}

    def note(self, request: httpx.Request) -> None:
        """Called before each attempt."""
        key = request.headers.get("Idempotency-Key", "")
        if self._tells_key and key and key not in self.keys:
            as_json = json_format.dumps({"idempotency_key": key})
            self._output.note(as_json if self._output.json else f"Idempotency key: {key}")
            self.keys[key] = None
        self.were_sent = True

    @property
    def lost(self) -> str:
        """What to say if an error hides the result."""
        again = f" Repeat it with --idempotency-key {next(iter(self.keys))}." if self.keys else ""
        return f"The request was sent, and its result could not be shown.{again}"


class Session:
    """The client and the output of one command."""

    def __init__(self, client: ThaiQR, output: Output, login: profiles.Login) -> None:
        self.client, self.output, self.login = client, output, login

    def require_test_key(self) -> None:
        """End the command unless the key is of a test merchant, before anything happens."""
        if not self.login.api_key.startswith(TEST_PREFIX):
            self.output.fail("This command is for test keys only: it makes payments that nobody pays.")
            raise typer.Exit(Exit.USAGE)


@contextmanager
def opened(
    profile: str | None, *, json: bool = False, timeout: float = 30.0, tells_key: bool = False
) -> Iterator[Session]:
    """The session of a command. Errors within the block end the command with their exit code.

    After a request was sent, that is never `USAGE`: a script would send it again with another key.
    """
    output = Output(json)
    warnings, requests = _Warnings(output), Requests(output, tells_key=tells_key)
    log.addHandler(warnings)
    try:
        login = profiles.find(profile or None)
        with connected(lambda: httpx.Client(event_hooks={"request": [requests.note]})) as http:
            client = ThaiQR(login.api_key, base_url=login.base_url, timeout=timeout, http_client=http)
            yield Session(client, output, login)
        if sys.stdout is not None:
            sys.stdout.flush()
    except profiles.ProfileError as error:
        output.fail(str(error))
        raise typer.Exit(
            Exit.NOT_AUTHENTICATED if isinstance(error, profiles.NoKeyError) else Exit.USAGE
        ) from None
    except ThaiQRError as error:
        _end(output, error)
    except KeyboardInterrupt:
        raise typer.Exit(Exit.INTERRUPTED) from None
    except (BrokenPipeError, SystemExit):  # rich makes it a SystemExit
        sys.stderr.close()
        raise typer.Exit(Exit.OK if requests.were_sent else Exit.USAGE) from None
    except (typer.Exit, typer.Abort):
        raise
    except Exception as error:
        if not requests.were_sent and not isinstance(error, ValueError | OSError):
            raise
        text = f"{requests.lost} {error}" if requests.were_sent else str(error)
        with suppress(OSError):
            output.fail(exits.as_json(ThaiQRError(text)) if json else text)
        raise typer.Exit(Exit.NETWORK if requests.were_sent else Exit.USAGE) from None
    finally:
        log.removeHandler(warnings)


def _end(output: Output, error: ThaiQRError) -> NoReturn:
    output.fail(exits.as_json(error) if output.json else exits.describe(error))
    raise typer.Exit(exits.exit_of(error)) from None


class _Warnings(logging.Handler):
    """Shows what the service warns of, such as an unusual amount."""

    def __init__(self, output: Output) -> None:
        super().__init__(logging.WARNING)
        self._output = output

    def emit(self, record: logging.LogRecord) -> None:
        self._output.note(record.getMessage())
