"""`python -m bench.driver ...`: publish events in the instance by its own functions. Prints JSON.

It is a process with the settings of the instance. Instants are seconds since the epoch.
"""

import argparse
import http.client
import json
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import Any
from urllib.parse import urlsplit

import django

# Standard output is for the result.
os.environ["LOG_STREAM"] = "stderr"
django.setup()

import requests  # noqa: E402
from urllib3 import HTTPConnectionPool  # noqa: E402

from bench import publishing  # noqa: E402
from core import clock  # noqa: E402
from webhooks import signing  # noqa: E402
from webhooks.models import Endpoint, Event  # noqa: E402
from webhooks.sending import USER_AGENT  # noqa: E402

BARE_LOOP_THREADS = 32
TIMEOUT = 15.0
Message = tuple[bytes, dict[str, str]]


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.driver", description=__doc__)
    commands = parser.add_subparsers(required=True)
    for run, numbers in (
        (register, ()),
        (open_shops, ()),
        (publish_batch, ("count",)),
        (post_by_requests, ("count",)),
        (post_by_urllib3, ("count",)),
    ):
        command = commands.add_parser(run.__name__)
        command.set_defaults(run=run)
        for name in numbers:
            command.add_argument(name, type=int)
        command.add_argument("names", nargs="+")
    given = vars(parser.parse_args())
    print(json.dumps(given.pop("run")(**given)))


def register(names: list[str]) -> list[str]:
    """Create a merchant with one endpoint for each URL; return the ids of the merchants."""
    return [publishing.open_shop(url).merchant_id for url in names]


def open_shops(names: list[str]) -> list[dict[str, str]]:
    """Create a merchant with one endpoint for each URL; return their ids and secrets."""
    return [asdict(publishing.open_shop(url)) for url in names]


def publish_batch(count: int, names: list[str]) -> dict[str, float]:
    """Publish the events of `count` payments of one merchant in one commit; return the instant before it."""
    return {"at": publishing.publish(count, names[0])}


def post_by_requests(count: int, names: list[str]) -> dict[str, float]:
    """Post with a `requests` session in each thread, see `_post_again`."""
    return _post_again(count, names, _requests_post)


def post_by_urllib3(count: int, names: list[str]) -> dict[str, float]:
    """Post with a urllib3 pool in each thread, see `_post_again`."""
    return _post_again(count, names, _urllib3_post)


def _post_again(
    count: int, names: list[str], new_post: Callable[[str], Callable[[Message], None]]
) -> dict[str, float]:
    """The bare loop: 32 threads post the newest messages of a merchant and store nothing.

    names: the merchant id and the URL. new_post: returns the function of one thread, which raises for an
    error. Body and headers are those of the service, signed before the start. Returns the instant of the
    start and the processor seconds.
    """
    merchant_id, url = names
    messages = iter(_messages(count, merchant_id))
    posts = [new_post(url) for _ in range(BARE_LOOP_THREADS)]
    with ThreadPoolExecutor(BARE_LOOP_THREADS) as pool:
        started, cpu = time.time(), time.process_time()
        for done in [pool.submit(_post_each, post, messages) for post in posts]:
            done.result()
        return {"at": started, "cpu": time.process_time() - cpu}


def _messages(count: int, merchant_id: str) -> list[Message]:
    secrets = Endpoint.objects.get(merchant_id=merchant_id).signing_secrets(clock.now())
    newest = Event.objects.filter(merchant_id=merchant_id).order_by("-created_at", "-id")[:count]
    return [_message(event, secrets) for event in newest]


def _message(event: Any, secrets: list[str]) -> Message:
    body = bytes(event.body)
    signed = signing.headers(secrets=secrets, message_id=event.id, timestamp=int(time.time()), body=body)
    # The service does not accept compressed answers.
    usual = {"content-type": "application/json", "user-agent": USER_AGENT, "Accept-Encoding": "identity"}
    return body, {**usual, **signed}


def _post_each(post: Callable[[Message], None], messages: Iterator[Message]) -> None:
    for message in messages:
        post(message)


def _requests_post(url: str) -> Callable[[Message], None]:
    session = requests.Session()
    session.trust_env = False
    # Remove the default headers of requests.
    session.headers.clear()

    def post(message: Message) -> None:
        body, headers = message
        session.post(url, body, headers=headers, timeout=TIMEOUT).raise_for_status()

    return post


def _urllib3_post(url: str) -> Callable[[Message], None]:
    parts = urlsplit(url)
    pool = HTTPConnectionPool(parts.hostname or "", parts.port, maxsize=1, timeout=TIMEOUT, retries=False)

    def post(message: Message) -> None:
        body, headers = message
        response = pool.request("POST", parts.path, body=body, headers=headers)
        if response.status >= http.client.BAD_REQUEST:
            raise http.client.HTTPException(f"answer {response.status}")

    return post


if __name__ == "__main__":
    main()
