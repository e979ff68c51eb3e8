"""Reads the Dockerfile, and carries out its steps in Debian roots where no container engine is at hand.

`python -m tests.systems.deployment.dockerfiles BASE FOLDER` makes FOLDER/final from BASE, a root that
`debootstrap --variant=minbase bookworm BASE` made. It needs root. Each step prints its seconds.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from shlex import split
from typing import Any

from dockerfile_parse import DockerfileParser

from tests.stack import ROOT

PATH = ROOT / "deploy" / "Dockerfile"
IGNORE_FILE = PATH.with_name("Dockerfile.dockerignore")


@dataclass
class Step:
    instruction: str
    value: str


@dataclass
class Stage:
    """From one FROM to the next."""

    base: str
    name: str
    steps: list[Step] = field(default_factory=list)


def stages() -> list[Stage]:
    """The stages of the Dockerfile."""
    with PATH.open("rb") as file:
        parsed: list[dict[str, Any]] = DockerfileParser(fileobj=file).structure
    found: list[Stage] = []
    for each in parsed:
        if each["instruction"] == "FROM":
            base, _, name = each["value"].partition(" AS ")
            found.append(Stage(base, name))
        elif each["instruction"] != "COMMENT":
            found[-1].steps.append(Step(each["instruction"], each["value"]))
    return found


def context() -> list[str]:
    """The tracked files that the ignore file lets into the build."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    lines = [line for line in IGNORE_FILE.read_text().splitlines() if line and not line.startswith("#")]
    return [name for name in listed.stdout.splitlines() if _is_in_context(name, lines)]


def _is_in_context(name: str, lines: list[str]) -> bool:
    """The last line that matches decides, as for Docker."""
    is_in = True
    for line in lines:
        pattern = line.removeprefix("!")
        if pattern == "*" or name == pattern or name.startswith(f"{pattern}/") or fnmatch(name, pattern):
            is_in = line.startswith("!")
    return is_in


class Replay:
    """Carries out one stage in a copy of the base."""

    def __init__(self, base: Path, root: Path, others: dict[str, Path]) -> None:
        self.root, self.others = root, others
        self.folder, self.user = "/", "0:0"
        self.environ = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
        subprocess.run(["cp", "-a", "--reflink=auto", base, root], check=True)
        shutil.copy("/etc/resolv.conf", root / "etc" / "resolv.conf")

    def run(self, stage: Stage) -> None:
        """Carry out its steps. The others describe the image."""
        carry_out = {
            "RUN": self._run,
            "COPY": self._copy,
            "ENV": self._env,
            "WORKDIR": self._workdir,
            "USER": self._user,
        }
        for step in stage.steps:
            started = time.monotonic()
            if step.instruction in carry_out:
                carry_out[step.instruction](step.value)
            print(f"{time.monotonic() - started:6.1f} s  {step.instruction} {step.value[:90]}", flush=True)

    def _run(self, value: str) -> None:
        self.execute(["sh", "-c", value])

    def execute(self, command: list[str], **more: str) -> None:
        """Run a command in the root, as its user, in its folder. Raises CalledProcessError."""
        inside = ["sh", "-c", 'cd "$0" && exec "$@"', self.folder, *command]
        environ = [f"{name}={value}" for name, value in (self.environ | more).items()]
        subprocess.run(
            ["chroot", f"--userspec={self.user}", self.root, "env", "-i", *environ, *inside], check=True
        )

    def _copy(self, value: str) -> None:
        *sources, target = split(value)
        place = self._inside(target)
        if sources[0].startswith("--from="):
            origin = self.others[sources.pop(0).removeprefix("--from=")]
            for source in sources:
                subprocess.run(["cp", "-a", origin / source.lstrip("/"), place.parent], check=True)
        elif sources == ["."]:
            for name in context():
                (place / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, place / name)
        else:
            place.mkdir(parents=True, exist_ok=True)
            for source in sources:
                assert source in context(), source
                shutil.copy2(ROOT / source, place)

    def _env(self, value: str) -> None:
        for pair in split(value):
            name, _, text = pair.partition("=")
            self.environ[name] = text

    def _workdir(self, value: str) -> None:
        self.folder = value
        self._inside(value).mkdir(parents=True, exist_ok=True)

    def _user(self, value: str) -> None:
        self.user = value

    def _inside(self, path: str) -> Path:
        return self.root / os.path.join(self.folder, path).lstrip("/")  # noqa: PTH118 (an absolute path wins)


def replay(base: Path, folder: Path) -> Iterator[Replay]:
    """Carry out all stages. Yields each when it is complete; the last is the image."""
    roots: dict[str, Path] = {}
    for number, stage in enumerate(stages()):
        root = folder / (stage.name or "final")
        print(f"--- stage {number}: {stage.base} {stage.name}", flush=True)
        made = Replay(base, root, dict(roots))
        made.run(stage)
        roots[stage.name] = root
        yield made


if __name__ == "__main__":
    *_, image = replay(Path(sys.argv[1]), Path(sys.argv[2]))
    image.execute(["thaiqr-server", "--version"])
