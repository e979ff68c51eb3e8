"""What every command needs: the client, the output, and errors turned into exit codes."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, NoReturn

import typer

from thaiqr.cli import exits, profiles
from thaiqr.cli.exits import Exit
from thaiqr.cli.output import Output
from thaiqr.client import ThaiQR
from thaiqr.errors import ThaiQRError

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON only, without colour.")]
Profile = Annotated[
    str | None,
    typer.Option("--profile", metavar="NAME", envvar=profiles.PROFILE, help="Use this profile of the file."),
]
TEST_PREFIX = "tq_test_"

log = logging.getLogger("thaiqr")


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
def opened(profile: str | None, *, json: bool = False, timeout: float = 30.0) -> Iterator[Session]:
    """The session of a command. Errors within the block end the command with their exit code."""
    output = Output(json)
    warnings = _Warnings(output)
    log.addHandler(warnings)
    try:
        login = profiles.find(profile or None)
        with ThaiQR(login.api_key, base_url=login.base_url, timeout=timeout) as client:
            yield Session(client, output, login)
    except profiles.ProfileError as error:
        output.fail(str(error))
        raise typer.Exit(
            Exit.NOT_AUTHENTICATED if isinstance(error, profiles.NoKeyError) else Exit.USAGE
        ) from None
    except ThaiQRError as error:
        _end(output, error)
    except ValueError as error:
        output.fail(str(error))
        raise typer.Exit(Exit.USAGE) from None
    except KeyboardInterrupt:
        raise typer.Exit(Exit.INTERRUPTED) from None
    except BrokenPipeError:
        sys.stderr.close()
        raise typer.Exit(Exit.OK) from None
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
