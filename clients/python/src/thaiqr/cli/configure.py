"""`thaiqr configure`: store a key and a URL in a file that only you can read."""

from typing import Annotated

import typer

from thaiqr.cli import profiles
from thaiqr.cli.exits import Exit, describe, exit_of
from thaiqr.cli.output import Output
from thaiqr.client import ThaiQR
from thaiqr.errors import ThaiQRError

LOCAL = "http://127.0.0.1:8000"


def configure(
    profile: Annotated[str, typer.Option("--profile", metavar="NAME", help="Its name.")] = profiles.DEFAULT,
    base_url: Annotated[
        str | None, typer.Option(metavar="URL", help="The service; asked for otherwise.")
    ] = None,
) -> None:
    """Store a key and the URL of its service. The key is asked for, so it is in no history of commands."""
    output = Output()
    url = base_url or typer.prompt("URL of the service", default=LOCAL)
    key = typer.prompt("API key (tq_...)", hide_input=True)
    try:
        with ThaiQR(key, base_url=url) as client:
            client.balance.get()
        path = profiles.store(profile, profiles.Login(key.strip(), url.strip()))
    except ThaiQRError as error:
        output.fail(f"Not stored: {describe(error)}")
        raise typer.Exit(exit_of(error)) from None
    except (ValueError, OSError, profiles.ProfileError) as error:
        output.fail(str(error))
        raise typer.Exit(Exit.USAGE) from None
    output.say(f"Stored as {profile!r} in {path}.")
