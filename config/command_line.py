"""`thaiqr-server`: starts the processes of a deployment, and runs its commands.

Each subcommand runs one program in this process, so signals and exit codes are those of that program. Imports
wait until the settings are in the environment.
"""

import os
import re
import sys
from argparse import REMAINDER, ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from config import workers
from config.deployment import install as installation
from config.version import VERSION

PROGRAM = "thaiqr-server"
ENV_FILE_HELP = "read settings from FILE, one NAME=value a line; variables that are set already win"
QUEUES = ", ".join((*workers.WORKERS, *workers.WORKERS["banks"].queues))
ENV_LINE = re.compile(r"(?P<name>[A-Z][A-Z0-9_]*)=(?P<quote>[\"']?)(?P<value>.*)(?P=quote)")
SET_HELP = "a setting (docs/settings.md) for a new settings file, such as CA_BUNDLE; may be repeated"
LEAST_SECONDS, MOST_SECONDS = 5, 3600  # of a measurement


def web(options: Namespace) -> None:
    _leave_closed_folder()
    from config import server

    server.serve(server.APPLICATION)


def worker(options: Namespace) -> None:
    _celery(*workers.arguments_for(options.name, options.queues))


def beat(options: Namespace) -> None:
    _celery(*workers.BEAT_ARGUMENTS)


def migrate(options: Namespace) -> None:
    from config import management

    management.run(PROGRAM, "migrate", "--no-input")


def manage(options: Namespace) -> None:
    from config import management

    management.run(f"{PROGRAM} manage", *options.arguments)


def shadow(options: Namespace) -> None:
    from config import management

    management.run(PROGRAM, "shadow", *options.arguments)


def check(options: Namespace) -> None:
    """Print the findings. Exits with 1 if there is a problem."""
    _django()
    from config.deployment import check, findings

    found = check.run(options.web, options.workers)
    sys.stdout.write(findings.as_json(found) if options.json else findings.as_text(found))
    sys.exit(findings.exit_level(found) == findings.Level.PROBLEM)


def capacity(options: Namespace) -> None:
    """Exits with 1 if nothing could be measured."""
    from config.capacity import command

    sys.exit(command.run(options.seconds))


def doctor(options: Namespace) -> None:
    """What a person who helps has to know. It has no secrets and no personal data."""
    _django()
    from config.deployment import doctor, findings

    found = doctor.examine()
    sys.stdout.write(findings.json_of(found) if options.json else doctor.as_text(found))


def install(options: Namespace) -> None:
    if os.geteuid() != 0:
        sys.exit(f"{PROGRAM} install: run it as root")
    answers = {name: answer for name in installation.QUESTIONS if (answer := getattr(options, name))}
    installation.Installer(answers, dict(options.set)).run(before_restore=options.before_restore)


def new_secrets(options: Namespace) -> None:
    """Print them as lines of a settings file."""
    for name, value in installation.new_secrets().items():
        sys.stdout.write(f"{name}={value}\n")


def _leave_closed_folder() -> None:
    """Go to / if this user cannot enter the folder of the shell, such as /root. Gunicorn would not start."""
    with suppress(FileNotFoundError):  # it was deleted
        if os.access(Path.cwd(), os.X_OK):
            return
    os.chdir("/")


def _django() -> None:
    os.environ.setdefault("LOG_STREAM", "stderr")
    import django

    django.setup()


def _celery(*arguments: str) -> None:
    from config.celery import app

    app.start(["--quiet", *arguments])


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser().parse_args(arguments)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    if options.env_file is not None:
        _read_env_file(options.env_file)
    options.run(options)


def parser() -> ArgumentParser:
    made = ArgumentParser(
        prog=PROGRAM,
        description="Thai QR Payments: the processes of a deployment, and its commands.",
        epilog="All settings come from the environment; docs/settings.md lists them.",
    )
    made.add_argument("--version", action="version", version=f"{PROGRAM} {VERSION}")
    made.add_argument("--env-file", metavar="FILE", type=Path, help=ENV_FILE_HELP)
    commands = made.add_subparsers(metavar="COMMAND", required=True)

    def add(run: Callable[[Namespace], None], text: str, **how: Any) -> ArgumentParser:
        command = commands.add_parser(run.__name__.replace("_", "-"), help=text, description=text, **how)
        command.set_defaults(run=run)
        return command

    add(web, "serve HTTP (gunicorn); HOST, PORT and WEB_WORKERS choose where and how")
    command = add(worker, "do the work of queues (a Celery worker); run one or more")
    queues = f"separated by commas: {QUEUES}; banks stands for the last three; all if not given"
    command.add_argument("--queues", type=_worker_for, default=workers.ALL, help=queues)
    command.add_argument("--name", default="worker", help="differs between the workers of a machine")
    add(beat, "tell workers what is due (Celery beat); run one, though two do no harm")
    add(migrate, "bring the tables up to date (manage.py migrate); run it once for each release")
    command = add(check, "say what is wrong with this deployment; exits with 1 if there is a problem")
    command.add_argument("--json", action="store_true", help="print JSON")
    every = "web servers of the whole deployment"
    command.add_argument("--web", type=int, default=1, metavar="N", help=every)
    command.add_argument("--workers", type=int, default=1, metavar="N", help="workers of each kind in it")
    command = add(doctor, "print what a person who helps has to know, without secrets and personal data")
    command.add_argument("--json", action="store_true", help="print JSON")
    command = add(install, "install this release on this machine, or go on with it; asks what it needs")
    for name, (text, _) in installation.QUESTIONS.items():
        flag, variable = f"--{name.replace('_', '-')}", f"INSTALL_{name.upper()}"
        command.add_argument(flag, default=os.environ.get(variable), help=f"{text} ({variable})")
    command.add_argument(
        "--set", action="append", type=_setting, default=[], metavar="NAME=VALUE", help=SET_HELP
    )
    before = "stop before the database, which comes from a backup; then run it again"
    command.add_argument("--before-restore", action="store_true", help=before)
    text = "measure what this machine holds, on a database of its own, and say what to add first"
    command = add(capacity, text)
    command.add_argument("--seconds", type=_seconds, default=60.0, help="how long to measure (60)")
    add(new_secrets, "print new secrets, one NAME=value a line, for the settings of a new deployment")
    # With this prefix the management command reads all options.
    text = "compare files of another gateway with a month of a merchant, and change nothing"
    add(shadow, text, add_help=False, prefix_chars="\0").add_argument("arguments", nargs="*")
    command = add(manage, "run a management command (manage.py), for example: manage createsuperuser")
    command.add_argument("arguments", nargs=REMAINDER, help="the command and its options; `help` lists all")
    return made


def _seconds(text: str) -> float:
    seconds = float(text)
    if not LEAST_SECONDS <= seconds <= MOST_SECONDS:
        raise ArgumentTypeError(f"{text} is not {LEAST_SECONDS} to {MOST_SECONDS}")
    return seconds


def _setting(text: str) -> tuple[str, str]:
    found = ENV_LINE.fullmatch(text)
    if found is None:
        raise ArgumentTypeError("it is not NAME=value")
    return found["name"], found["value"]


def _worker_for(text: str) -> workers.Worker:
    try:
        return workers.worker_for(text.split(","))
    except KeyError as unknown:
        raise ArgumentTypeError(f"{unknown} is unknown. Queues: {QUEUES}") from None


def _read_env_file(path: Path) -> None:
    """Set the variables of the file that are not set. Exits with a message, which shows no value.

    `environ.Env.read_env` would log a line that it does not understand, which may have a secret.
    """
    try:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            found = ENV_LINE.fullmatch(line.rstrip())
            if found is None:
                sys.exit(f"{PROGRAM}: {path} cannot be read: line {number} is not NAME=value")
            os.environ.setdefault(found["name"], found["value"])
    except OSError as error:
        sys.exit(f"{PROGRAM}: {path} cannot be read: {error.strerror}")
    except ValueError:
        sys.exit(f"{PROGRAM}: {path} cannot be read: it is not UTF-8")


if __name__ == "__main__":
    main()
