"""Where the key and the URL come from: the environment, or a profile in a file that only its owner reads."""

import json
import os
import platform
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

KEY, URL, PROFILE = "THAIQR_API_KEY", "THAIQR_BASE_URL", "THAIQR_PROFILE"
DEFAULT = "default"


class ProfileError(Exception):
    """The settings are missing or wrong. The message says what to do."""


class NoKeyError(ProfileError):
    """No key was given anywhere."""


@dataclass(frozen=True)
class Login:
    """A key and the service that it is for. They are never taken from two places."""

    api_key: str = field(repr=False)
    base_url: str


def config_file() -> Path:
    """`thaiqr/config.toml` in XDG_CONFIG_HOME, by default ~/.config; in APPDATA on Windows.

    Raises ProfileError.
    """
    home = os.environ.get("APPDATA" if is_windows() else "XDG_CONFIG_HOME")
    try:
        return Path(home or Path.home() / ".config") / "thaiqr" / "config.toml"
    except RuntimeError:
        raise ProfileError("This user has no home directory: set HOME, or XDG_CONFIG_HOME.") from None


def is_windows() -> bool:
    """There a file has no mode. Only its owner reads what is in APPDATA."""
    return platform.system() == "Windows"


def find(profile: str | None) -> Login:
    """The named profile, else the environment, else the profile `default`. Raises ProfileError."""
    key = os.environ.get(KEY, "").strip()
    if profile is None and key:
        return _from_environment(key)
    stored = _read()
    name = profile or DEFAULT
    if name not in stored:
        if profile is not None:
            raise ProfileError(f"There is no profile {name!r} in {config_file()}.")
        raise NoKeyError(f"No key: set {KEY} and {URL}, or run `thaiqr configure`.")
    return Login(stored[name].get("api_key", ""), stored[name].get("base_url", ""))


def store(name: str, login: Login) -> Path:
    """Write a profile; return the file. Raises ProfileError."""
    profiles = _read() | {name: {"api_key": login.api_key, "base_url": login.base_url}}
    path = config_file()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    lines = [line for each, values in profiles.items() for line in _lines(each, values)]
    draft = path.with_suffix(".new")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write("\n".join(lines))
    draft.replace(path)
    return path


def _lines(name: str, values: dict[str, str]) -> list[str]:
    # A JSON string in ASCII is also a TOML string.
    return [f"[{json.dumps(name)}]", *(f"{key} = {json.dumps(value)}" for key, value in values.items()), ""]


def _from_environment(key: str) -> Login:
    url = os.environ.get(URL, "").strip()
    if not url:
        raise NoKeyError(f"{KEY} is set, {URL} is not: which service is the key for?")
    return Login(key, url)


def _read() -> dict[str, dict[str, str]]:
    path = config_file()
    try:
        if not path.exists():
            return {}
        if not is_windows() and path.stat().st_mode & 0o077:
            raise ProfileError(f"Others can read {path}, which holds keys: chmod 600 {path}")
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ProfileError(f"{path} is no TOML: {error}") from None
    except OSError as error:
        raise ProfileError(f"{path} cannot be read: {error.strerror}") from None
    return {name: _texts(values) for name, values in found.items() if isinstance(values, dict)}


def _texts(values: dict[str, object]) -> dict[str, str]:
    return {name: str(value) for name, value in values.items()}
