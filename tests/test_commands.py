"""A command in a copy of the warm process behaves like a process of its own."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.commands import set_up, warm
from tests.stack import ROOT, wait_until

pytestmark = pytest.mark.slow
SECONDS = 60
SLEEP = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
# It starts a command, prints its id, and is killed.
KILLED = """
import os, subprocess, sys
from tests.commands import set_up, warm
set_up(frozenset(os.environ.items()))
subprocess.Popen([*warm(), sys.argv[1]], stdout=1).wait()
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return tmp_path / "script.py"


@pytest.mark.parametrize(
    "code",
    [
        "print(sys.argv[1:], __name__, os.getcwd(), sys.path[0], dict(os.environ), sys.stdin.read(), end='')",
        "print('\u0e01', file=sys.stderr); sys.exit(7)",
        "sys.exit('wrong')",
        "os.kill(os.getpid(), signal.SIGKILL)",
        "os.kill(os.getpid(), signal.SIGTERM)",
        "sys.stdout.reconfigure(errors='backslashreplace'); print('\\udcff')",
        "atexit.register(print, 'end')",
    ],
)
def test_result_is_that_of_a_process(script: Path, code: str) -> None:
    script.write_text(f"import atexit, os, signal, sys\n{code}\n")
    environ = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "NAME": "\u0e02"}

    def run(python: list[str]) -> tuple[int, str, str]:
        command = [*python, str(script), "one", "two words"]
        done = subprocess.run(
            command, cwd="/", env=environ, input="given", capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout, done.stderr

    assert run(warm()) == run([sys.executable])


def test_command_reads_its_own_settings() -> None:
    """Also if Django was set up before with other settings."""
    shown = "from django.conf import settings; print(settings.PORT)"
    given = [os.environ | {"PORT": port} for port in ("8001", "8002")]
    for python in (warm(), set_up(frozenset(given[0].items()))):
        command = [*python, "manage.py", "shell", "-v0", "-c", shown]
        for environ in given:
            printed = subprocess.check_output(command, cwd=ROOT, env=environ, text=True)
            assert printed == f"{environ['PORT']}\n"


def test_output_of_a_command_that_is_set_up_is_that_of_a_process() -> None:
    code = "import sys; print(sys.argv); sys.exit('wrong')"
    results = [
        subprocess.run(
            [*python, "manage.py", "shell", "-v0", "-c", code],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        for python in (set_up(frozenset(os.environ.items())), [sys.executable])
    ]
    found = [(done.returncode, done.stdout, done.stderr) for done in results]
    assert found[0] == found[1]
    assert found[0][0] == 1


@contextmanager
def sleeping(script: Path, *before: str) -> Iterator["tuple[subprocess.Popen[str], int]"]:
    """The process that was started, and the id of the command."""
    script.write_text(SLEEP)
    started = subprocess.Popen([*(before or warm()), script], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    with started:
        assert started.stdout is not None
        try:
            yield started, int(started.stdout.readline())
        finally:
            started.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_signal_ends_the_command(script: Path, number: signal.Signals) -> None:
    with sleeping(script) as (process, pid):
        process.send_signal(number)
        assert process.wait(SECONDS) == -number
        wait_until(lambda: not exists(pid), SECONDS)


def test_nothing_is_left_of_tests_that_were_killed(script: Path) -> None:
    with sleeping(script, sys.executable, "-c", KILLED) as (tests, pid):
        tests.kill()
        wait_until(lambda: not exists(pid), SECONDS)
        folder = Path(tempfile.gettempdir())
        wait_until(lambda: not list(folder.glob(f"commands-{tests.pid}-*")), SECONDS)


def exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
