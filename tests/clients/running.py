"""Clients for tests. They share one TLS context, because reading all root certificates takes a while."""

import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import httpx
from thaiqr import AsyncThaiQR, ThaiQR

KEY = "tq_test_abcdefgh_secret"
TLS = ssl.create_default_context()


@contextmanager
def blocking_client(base_url: str) -> Iterator[ThaiQR]:
    with httpx.Client(verify=TLS) as http, ThaiQR(KEY, base_url=base_url, http_client=http) as client:
        yield client


@asynccontextmanager
async def async_client(base_url: str) -> AsyncIterator[AsyncThaiQR]:
    async with (
        httpx.AsyncClient(verify=TLS) as http,
        AsyncThaiQR(KEY, base_url=base_url, http_client=http) as client,
    ):
        yield client
