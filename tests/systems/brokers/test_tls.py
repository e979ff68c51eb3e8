"""TLS to Redis and Sentinel: an own authority is trusted by CA_BUNDLE, a strange one is refused."""

from collections.abc import Iterator

import pytest
from redis.exceptions import ConnectionError
from redis.sentinel import MasterNotFoundError

from config.deployment import redis_server
from core.work import redis
from core.work.redis_urls import Broker, SentinelUrl, with_authorities
from tests import redis_tls
from tests.redis_tls import TlsServers
from tests.systems.brokers.carried_task import is_carried
from tests.webhooks.certificates import Authority

pytestmark = pytest.mark.slow
SECONDS = 2.0
REFUSED = "certificate verify failed"


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsServers]:
    with redis_tls.running(tmp_path_factory.mktemp("tls")) as found:
        yield found


def trusting(url: str, authority: Authority) -> str:
    """As the settings make it of CA_BUNDLE."""
    return with_authorities(url, str(authority.ca_file))


def ping(url: str) -> bool:
    with redis.connect(url, SECONDS) as client:
        return bool(client.ping())


def test_sentinel_and_redis_of_an_own_authority_are_trusted_by_ca_bundle(servers: TlsServers) -> None:
    for url in (servers.redis_url, servers.sentinel_url()):
        assert ping(trusting(url, servers.authority))
        assert is_carried(Broker.of(trusting(url, servers.authority)))


def test_redis_of_a_strange_authority_is_refused(servers: TlsServers) -> None:
    for url in (servers.redis_url, trusting(servers.redis_url, servers.strange)):
        with pytest.raises(ConnectionError, match=REFUSED):
            ping(url)


def test_sentinel_of_a_strange_authority_or_under_another_name_is_refused(servers: TlsServers) -> None:
    url = servers.sentinel_url()
    another_name = trusting(servers.sentinel_url("127.0.0.1"), servers.authority)
    for refused in (url, trusting(url, servers.strange), another_name):
        with pytest.raises(MasterNotFoundError):
            ping(refused)
        (sentinel,) = SentinelUrl.parse(refused).sentinels(SECONDS).sentinels
        with pytest.raises(ConnectionError, match=REFUSED):
            sentinel.ping()
        (finding,) = redis_server.sentinel_findings(refused)
        assert REFUSED in finding.found


def test_redis_of_a_strange_authority_behind_a_trusted_sentinel_is_refused(servers: TlsServers) -> None:
    url = trusting(servers.sentinel_url(name=redis_tls.STRANGE_NAME), servers.authority)
    with pytest.raises(ConnectionError, match=REFUSED):
        ping(url)
