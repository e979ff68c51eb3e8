"""Run `thaiqr` as a person or a script would, in this process or in one of its own."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from thaiqr.cli.app import app
from typer.testing import CliRunner

WIDTH = 80


@dataclass(frozen=True)
class Done:
    """What a command printed, and its exit code."""

    code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        """Its only line of output."""
        return json.loads(self.stdout)

    @property
    def lines(self) -> list[Any]:
        """Each line of its output."""
        return [json.loads(line) for line in self.stdout.splitlines()]


@dataclass
class CommandLine:
    """`thaiqr` with a key for a service. Each run checks that the key is printed nowhere."""

    key: str
    base_url: str
    home: Path
    env: dict[str, str] = field(default_factory=dict)

    def __call__(self, *arguments: str, input: str | None = None, **env: str) -> Done:
        ran = CliRunner().invoke(
            app, list(arguments), input=input, env=self.environment(env), prog_name="thaiqr"
        )
        if ran.exception is not None and not isinstance(ran.exception, SystemExit):
            raise ran.exception
        done = Done(ran.exit_code, ran.stdout, ran.stderr)
        assert not self.key or self.key not in done.stdout + done.stderr
        return done

    def ok(self, *arguments: str, **env: str) -> Done:
        done = self(*arguments, **env)
        assert done.code == 0, done
        return done

    def environment(self, more: Mapping[str, str]) -> dict[str, str]:
        return {
            "THAIQR_API_KEY": self.key,
            "THAIQR_BASE_URL": self.base_url,
            "THAIQR_PROFILE": "",
            "XDG_CONFIG_HOME": str(self.home),
            "COLUMNS": str(WIDTH),
            "NO_COLOR": "1",
            "TERM": "dumb",
            "PYTHONIOENCODING": "utf-8",
            **self.env,
            **more,
        }

    @contextmanager
    def running(
        self, *arguments: str, encoding: str = "utf-8", stdout: Any = subprocess.PIPE
    ) -> Iterator["subprocess.Popen[str]"]:
        """The command in a process of its own, which is ended after the block."""
        import os

        process = subprocess.Popen(
            [sys.executable, "-m", "thaiqr", *arguments],
            env={**os.environ, **self.environment({})},
            stdout=stdout,
            stderr=subprocess.PIPE,
            encoding=encoding,
        )
        with process:
            try:
                yield process
            finally:
                process.terminate()
