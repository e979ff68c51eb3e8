"""The bare loop: 32 threads post the same messages with `requests`, and do nothing else."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import requests

from core import clock
from webhooks import signing
from webhooks.models import Endpoint, Event
from webhooks.sending import USER_AGENT

THREADS = 32
TIMEOUT = 15.0
Message = tuple[bytes, dict[str, str]]


def post_again(count: int, names: list[str]) -> dict[str, float]:
    """Post the newest `count` messages of a merchant to a URL: `names` are the merchant's id and the URL.

    The same bytes under the same headers as the service sends, signed beforehand. Gives the instant of the
    start and the processor time used, in seconds. Raises HTTPError.
    """
    merchant_id, url = names
    messages = iter(_messages(count, merchant_id))
    sessions = [_session() for _ in range(THREADS)]
    with ThreadPoolExecutor(THREADS) as pool:
        started, cpu = time.time(), time.process_time()
        for done in [pool.submit(_post, session, url, messages) for session in sessions]:
            done.result()
        return {"at": started, "cpu": time.process_time() - cpu}


def _messages(count: int, merchant_id: str) -> list[Message]:
    secrets = Endpoint.objects.get(merchant_id=merchant_id).signing_secrets(clock.now())
    newest = Event.objects.filter(merchant_id=merchant_id).order_by("-created_at", "-id")[:count]
    return [_message(event, secrets) for event in newest]


def _message(event: Any, secrets: list[str]) -> Message:
    body = bytes(event.body)
    signed = signing.headers(secrets=secrets, message_id=event.id, timestamp=int(time.time()), body=body)
    # As the service does: no compressed answers.
    usual = {"content-type": "application/json", "user-agent": USER_AGENT, "Accept-Encoding": "identity"}
    return body, {**usual, **signed}


def _session() -> requests.Session:
    session = requests.Session()
    session.trust_env = False
    # What requests adds by itself.
    session.headers.clear()
    return session


def _post(session: requests.Session, url: str, messages: Iterator[Message]) -> None:
    for body, headers in messages:
        session.post(url, body, headers=headers, timeout=TIMEOUT).raise_for_status()
