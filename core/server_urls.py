"""URLs that may name several servers: `scheme://user:password@host:port,host:port/path?option=value`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit

# Of TLS, by the names that redis-py gives them.
TLS_OPTIONS = ("ssl_cert_reqs", "ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
TLS_SCHEMES = ("rediss", "sentinels")


@dataclass(frozen=True)
class ServerUrl:
    """The parts of such a URL, decoded."""

    scheme: str
    username: str
    password: str
    hosts: tuple[tuple[str, int], ...]
    path: str
    options: Mapping[str, str]

    @classmethod
    def parse(cls, url: str, ports: Mapping[str, int], options: Sequence[str]) -> Self:
        """ports: the default port of each known scheme; options: the known ones. Raises ValueError."""
        parts = urlsplit(url)
        user, _, hosts = parts.netloc.rpartition("@")
        username, _, password = user.partition(":")
        given = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
        if parts.scheme not in ports or given.keys() - set(options) or parts.fragment:
            raise ValueError("unknown scheme or option")
        return cls(
            scheme=parts.scheme,
            username=unquote(username),
            password=unquote(password),
            hosts=tuple(_host(text, ports[parts.scheme]) for text in hosts.split(",")),
            path=unquote(parts.path.removeprefix("/")),
            options=given,
        )

    def one_for_each_host(self, path: str) -> str:
        """The form of kombu for several servers: a URL for each, separated by semicolons."""
        user = f"{quote(self.username, safe='')}:{quote(self.password, safe='')}@"
        user = "" if user == ":@" else user
        place = quote(path, safe="")
        return ";".join(
            f"{self.scheme}://{user}{_bracketed(host)}:{port}/{place}" for host, port in self.hosts
        )

    @property
    def tls(self) -> dict[str, str]:
        """The options of TLS that were given."""
        return {name: self.options[name] for name in TLS_OPTIONS if name in self.options}

    @property
    def is_verified(self) -> bool:
        """Whether the certificate of the server is verified, if there is TLS."""
        return self.options.get("ssl_cert_reqs", "required") == "required"


def with_authorities(url: str, ca_file: str) -> str:
    """The URL with the option `ssl_ca_certs`, if it uses TLS and has none."""
    scheme, _, rest = url.partition("://")
    _, mark, options = rest.partition("?")
    if not ca_file or scheme not in TLS_SCHEMES or "ssl_ca_certs=" in options:
        return url
    return f"{url}{'&' if mark else '?'}ssl_ca_certs={quote(ca_file)}"


def _host(text: str, port: int) -> tuple[str, int]:
    parts: SplitResult = urlsplit(f"//{text}")
    if not parts.hostname or parts.path or parts.query or "@" in text:
        raise ValueError("no host")
    return parts.hostname, port if parts.port is None else _not_zero(parts.port)


def _not_zero(port: int) -> int:
    if not port:
        raise ValueError("port 0")
    return port


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
