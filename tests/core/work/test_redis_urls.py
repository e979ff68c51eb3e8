"""URLs of Redis and Sentinel: what they say, and what Celery gets for them."""

from typing import Any

import pytest
from redis.retry import Retry

from core.work.redis_urls import Broker, SentinelUrl, with_authorities

THREE = "one:26379,two:5,three"


def test_sentinel_url_names_hosts_primary_database_and_passwords() -> None:
    found = SentinelUrl.parse(f"sentinel://:p%40s@{THREE}/qr/3?sentinel_password=other")
    assert found.hosts == (("one", 26379), ("two", 5), ("three", 26379))
    assert (found.name, found.login["db"], found.tls) == ("qr", 3, {})
    pool = found.pool(2.0)
    assert pool.service_name == "qr"
    assert pool.connection_kwargs["password"] == "p@s"
    assert pool.connection_kwargs["db"] == 3
    assert found.sentinel_options(2.0)["password"] == "other"


def test_database_of_a_sentinel_url_is_0_if_it_is_left_out() -> None:
    assert SentinelUrl.parse("sentinel://one/qr").login["db"] == 0


def test_malformed_sentinel_url_is_refused() -> None:
    for url in [
        "sentinel://one",
        "sentinel://one/",
        "sentinel:///qr",
        "sentinel://one,/qr",
        "sentinel://one:x/qr",
        "sentinel://one/qr/x",
        "sentinel://one/qr?database=1",
        "sentinel://one/qr?x",
        "sentinel://a@b@one/qr/-1",
        "redis://one/0",
        "sentinel://one/qr#x",
    ]:
        with pytest.raises(ValueError, match=r".+"):
            SentinelUrl.parse(url)


def test_sentinels_use_tls_to_both_kinds_of_servers() -> None:
    found = SentinelUrl.parse("sentinels://one/qr?ssl_ca_certs=/ca.pem")
    assert found.sentinel_options(1.0) | {"retry": None} == {
        "ssl": True, "ssl_ca_certs": "/ca.pem", "socket_timeout": 1.0, "socket_connect_timeout": 1.0,
        "retry": None,
    }  # fmt: skip
    made = Broker.of("sentinels://one/qr?ssl_ca_certs=/ca.pem")
    assert made.tls == {"ssl_cert_reqs": "required", "ssl_ca_certs": "/ca.pem"}
    assert made.url == "sentinel://one/0"


def test_broker_with_sentinel_has_a_url_for_each_and_the_name() -> None:
    options: dict[str, Any] = {"socket_connect_timeout": 1, "socket_timeout": 5}
    made = Broker.of(f"sentinel://user:p%2F@{THREE}/qr/3", options=options)
    assert made.url == ";".join(f"sentinel://user:p%2F@{host}/3" for host in THREE.split(","))
    assert made.options["master_name"] == "qr"
    assert isinstance(made.options["sentinel_kwargs"]["retry"], Retry)
    assert made.options["socket_timeout"] == 5


def test_broker_is_one_sentinel_also_if_the_password_has_a_semicolon() -> None:
    url = "sentinel://:pa;s%2Fs@h1:26379,h2:26379/primary/0"
    assert Broker.of(url).url == ";".join(f"sentinel://:pa%3Bs%2Fs@{host}:26379/0" for host in ("h1", "h2"))
    assert SentinelUrl.parse(url).login["password"] == "pa;s/s"


def test_malformed_urls_are_left_for_the_checks_to_report() -> None:
    assert Broker.of("sentinel://").url == "sentinel://"


def test_redis_url_is_given_to_celery_as_it_is() -> None:
    assert Broker.of("rediss://:p@x/0?ssl_cert_reqs=required").url == "rediss://:p@x/0?ssl_cert_reqs=required"


def test_password_is_in_no_error() -> None:
    with pytest.raises(ValueError, match=r".+") as raised:
        SentinelUrl.parse("sentinel://u:s3cret@one:x/qr")
    assert "s3cret" not in str(raised.value)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("rediss://:p@one/0", "rediss://:p@one/0?ssl_ca_certs=/own%20ca.pem"),
        ("sentinels://one/qr?sentinel_password=x", "sentinels://one/qr?sentinel_password=x&ssl_ca_certs=/own%20ca.pem"),
        ("rediss://one/0?ssl_ca_certs=/b.pem", "rediss://one/0?ssl_ca_certs=/b.pem"),
        ("redis://one/0", "redis://one/0"), ("", ""), ("x", "x"),
    ],
)  # fmt: skip
def test_authorities_of_ca_bundle_are_those_of_a_url_with_tls_and_none_of_its_own(
    url: str, expected: str
) -> None:
    assert with_authorities(url, "/own ca.pem") == expected
    assert with_authorities(url, "") == url
