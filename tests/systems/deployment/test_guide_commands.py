"""Commands of the guide name what exists: programs, commands and options of ours, units, files, settings.

Most also run: `tests/flows/test_guide_samples.py` types them as a reader does. `make drill-install` types
those for root of the installation, a release, backups and restores.
"""

import re
import subprocess
from argparse import ArgumentParser, _SubParsersAction
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest
import yaml
from django.core.management import get_commands, load_command_class

from apidocs.guide.pages import PAGES
from config.command_line import parser
from config.version import VERSION
from tests.flows.guide_reader import COMMANDS, Block, blocks
from tests.stack import ROOT

PAGE_FILES = {name: page.file for name, page in PAGES.items()} | {"the README": ROOT / "README.md"}
UNITS = [path.name for folder in ("systemd", "pgbackrest") for path in (ROOT / "deploy" / folder).iterdir()]
SETTINGS = set(re.findall(r"^\| `([A-Z_]+)` \|", (ROOT / "docs" / "settings.md").read_text(), re.M))
FOR_ROOT = [
    pytest.param(block, id=f"{name}-{number}")
    for name, file in PAGE_FILES.items()
    for number, block in enumerate(blocks(file))
    if block.is_for_root
]
INLINE = re.compile(r"`([^`\n]+)`")
# Up to what ends a command in the shell.
MANAGED = re.compile(r"(?:manage\.py|thaiqr-(?:server|admin) manage) ([a-z_]+)([^|;&#)\n]*)")
STARTED = re.compile(r"thaiqr-(?:server|admin) ((?!manage\b)[a-z][a-z-]+)([^|;&#)\n]*)")
OPTION = re.compile(r"(?<=\s)--[a-z0-9-]+")
# A command begins a line, or follows one of these signs.
COMMAND = re.compile(r"(?:^|[|&;{]|\$\()[ \t]*([a-z/][^ \n;)]*)", re.M)
# Of Debian itself, and of the packages that the guide installs.
PROGRAMS = {
    "apt-get", "cd", "chmod", "chown", "cp", "diff", "echo", "install", "ln", "mkdir", "printf", "rm",
    "runuser", "sed", "systemctl", "tar", "true", "useradd", "until", "do", "sleep", "done", "grep",
    "certbot", "docker", "nginx", "openssl", "patronictl", "python3", "update-ca-certificates",
    "thaiqr-admin", "thaiqr-server",
    "/opt/thai-qr-payments/$VERSION/bin/pip", "/opt/thai-qr-payments/$VERSION/bin/thaiqr-server",
}  # fmt: skip


def commands_of(file: Path) -> str:
    """What a reader types: the samples, and commands within the text. A command that goes on is one line."""
    samples = [block.code.replace("\\\n", " ") for block in blocks(file) if block.language == COMMANDS]
    return "\n".join([*samples, *INLINE.findall(file.read_text())])


@cache
def options_of(command: str) -> frozenset[str]:
    app = get_commands()[command]
    loaded = load_command_class(app, command) if isinstance(app, str) else app
    return frozenset(_options(loaded.create_parser("manage.py", command)))


def _options(found: ArgumentParser) -> Iterator[str]:
    for action in found._actions:
        yield from action.option_strings
        if isinstance(action, _SubParsersAction):
            for each in action.choices.values():
                yield from _options(each)


def subcommands() -> dict[str, frozenset[str]]:
    """The commands of thaiqr-server with their options."""
    (action,) = (each for each in parser()._actions if isinstance(each, _SubParsersAction))
    return {name: frozenset(_options(each)) for name, each in action.choices.items()}


@pytest.mark.parametrize("name", PAGE_FILES)
def test_management_commands_of_the_guide_exist_with_their_options(name: str) -> None:
    for command, rest in MANAGED.findall(commands_of(PAGE_FILES[name])):
        assert command in get_commands(), command
        assert set(OPTION.findall(rest)) <= options_of(command), (command, rest)


@pytest.mark.parametrize("name", PAGE_FILES)
def test_management_commands_of_the_guide_start_as_printed(name: str) -> None:
    """Debian has no `python`, and `python3` has no packages."""
    assert re.findall(r"^.*(?<![\w/.])python3? manage\.py.*$", commands_of(PAGE_FILES[name]), re.M) == []


@pytest.mark.parametrize("name", PAGE_FILES)
def test_commands_of_thaiqr_server_in_the_guide_exist_with_their_options(name: str) -> None:
    known = subcommands()
    for command, rest in STARTED.findall(commands_of(PAGE_FILES[name])):
        assert command in known, command
        assert set(OPTION.findall(rest)) <= known[command], (command, rest)


@pytest.mark.parametrize("name", PAGE_FILES)
def test_deployment_files_of_the_guide_exist(name: str) -> None:
    for path in re.findall(r"(?<![\w/])deploy/[\w./@*-]*[\w*]", commands_of(PAGE_FILES[name])):
        # `.env` is what the reader makes of `.env.example`.
        assert any(ROOT.glob(path)) or path == "deploy/.env", path


@pytest.mark.parametrize("name", PAGE_FILES)
def test_units_of_the_guide_exist(name: str) -> None:
    for line in commands_of(PAGE_FILES[name]).splitlines():
        if "systemctl" in line:
            for unit in re.findall(
                r"(?<![\w/-])(?:thaiqr-|backup-)[\w@.*-]+", line.replace("thaiqr-admin", "")
            ):
                assert unit_exists(unit), unit


def unit_exists(name: str) -> bool:
    full = name if re.search(r"\.(service|socket|timer)$", name) else f"{name}.service"
    return any(fnmatch(unit, full) or unit == re.sub("@[^.]*", "@", full) for unit in UNITS)


@pytest.mark.parametrize("block", FOR_ROOT)
def test_commands_for_root_are_right_bash_and_use_known_programs(block: Block) -> None:
    done = subprocess.run(["bash", "-n"], input=block.code, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert set(programs_in(block.code)) <= PROGRAMS


def programs_in(code: str) -> list[str]:
    """The first word of each command, without comments and texts that follow `<<`."""
    joined = re.sub(r"\s#.*", "", code.replace("\\\n", " "))
    lines = re.sub(r"<<SQL\n.*?^SQL$", "", joined, flags=re.S | re.M)
    return COMMAND.findall(lines)


@pytest.mark.parametrize("block", FOR_ROOT)
def test_settings_that_commands_for_root_write_exist(block: Block) -> None:
    assert set(re.findall(r'echo "([A-Z_]+)=', block.code)) <= SETTINGS


def test_containers_that_the_guide_enters_are_services_of_the_compose_file() -> None:
    services = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())["services"]
    entered = re.findall(r"exec (\w+) thaiqr-server", commands_of(PAGE_FILES["operations"]))
    assert entered
    assert set(entered) <= services.keys()


def test_guide_installs_the_version_of_the_project_and_goes_back_to_it() -> None:
    built, installed, earlier = re.findall(r"^ *VERSION=(\S+)", PAGE_FILES["one-machine"].read_text(), re.M)
    assert built == installed == earlier == VERSION


def test_page_of_one_machine_is_short() -> None:
    """Whoever installs the service reads all of it."""
    assert len(PAGE_FILES["one-machine"].read_text().splitlines()) <= 110


def test_backups_with_patroni_are_of_its_folder() -> None:
    patroni = yaml.safe_load((ROOT / "deploy" / "patroni" / "patroni.yml").read_text())
    folder = patroni["postgresql"]["data_dir"]
    guide = commands_of(PAGE_FILES["restore"])
    assert f"s,^pg1-path=.*,pg1-path={folder}," in guide
    assert set(re.findall(r"--pgdata=(\S+)|rm -rf (\S+)", guide)) == {(folder, ""), ("", folder)}
