"""One question to a bank or an acquirer over HTTP, and what can be known when the answer does not come."""

from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import requests
from requests.exceptions import ConnectTimeout, RequestException
from urllib3.exceptions import NewConnectionError

from banks.watched import Adapter
from core import strict_json
from core.deadlines import Deadline
from core.errors import InvalidRequest

LONGEST_ANSWER = 1_048_576


class NotSent(Exception):
    """There was no connection by which the question could have left."""


class NoAnswer(Exception):
    """It may have arrived; no answer came in time, or none that can be read."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What was answered; `body` is the same byte for byte."""

    status: int
    told: dict[str, Any]
    body: bytes = field(default=b"", repr=False)


def ask(
    method: str,
    url: str,
    *,
    timeout: tuple[float, float],
    until: Deadline | None = None,
    is_neighbour: bool = False,
    **how: Any,
) -> Answer:
    """Ask once. Raises NotSent, NoAnswer.

    timeout: seconds to connect, and of silence. until: when whatever comes is over; the sum of these if not
    given.
    """
    deadline = until or Deadline.after(sum(timeout))
    with requests.Session() as session, ExitStack() as held:
        session.trust_env = not is_neighbour  # a proxy of the environment is for the outside
        session.mount("https://", Adapter(deadline, held))
        session.mount("http://", Adapter(deadline, held))
        try:
            answer = held.enter_context(
                session.request(method, url, timeout=timeout, allow_redirects=False, stream=True, **how)
            )
            body = _body(answer)
            if deadline.is_past:
                raise NoAnswer()  # what looks like the end may be where it was cut off
            return Answer(answer.status_code, strict_json.loads(body), body)
        except RequestException as error:
            raise NotSent() if _never_left(error) else NoAnswer() from None
        except InvalidRequest:
            raise NoAnswer() from None


def _body(answer: requests.Response) -> bytes:
    """The body, whatever pieces it comes in; what is longer than any answer is cut and means nothing."""
    body = b""
    for piece in answer.iter_content(LONGEST_ANSWER):
        body += piece
        if len(body) > LONGEST_ANSWER:
            break
    return body[:LONGEST_ANSWER]


def _never_left(error: RequestException) -> bool:
    reason = getattr(error.args[0], "reason", None) if error.args else None
    return isinstance(error, ConnectTimeout) or isinstance(reason, NewConnectionError)
