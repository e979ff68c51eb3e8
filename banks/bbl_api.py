"""How Bangkok Bank's API is asked: a token for the application, and a signature over each body."""

import uuid
from collections.abc import Mapping
from typing import Any

import orjson

from banks import oauth, signing
from banks.exchange import Answer, NoAnswer
from banks.oauth import Api, Errand
from banks.tokens import Token
from core import clock

API_URL = "https://api.bangkokbank.com"
SCOPE = {"grant_type": "client_credentials", "scope": "CREATE READ"}


class Caller:
    """Some questions to the bank, which share the time that they may take."""

    def __init__(self, credentials: Mapping[str, str]) -> None:
        self._credentials = credentials
        name, secret = credentials["consumer_id"], credentials["consumer_secret"]
        self._errand = Errand(Api(credentials["api_url"], name, secret, self._fetch_token))

    def ask(self, path: str, asked: Mapping[str, str]) -> Answer:
        """path: the name of the credential that holds it. Raises NotSent, NoAnswer."""
        now = clock.now()
        headers = {
            "Content-Type": "application/json",
            "Request-Ref": uuid.uuid4().hex,
            "Transmit-Date-Time": now.astimezone(clock.BANGKOK).isoformat(timespec="milliseconds"),
            "Signature": signing.sign(asked, private_key=self._credentials["private_key"], now=now),
        }
        body = orjson.dumps(asked)
        return self._errand.ask("POST", self._credentials[path], headers=headers, data=body)

    def _fetch_token(self, errand: Errand) -> Token:
        name, secret = self._credentials["consumer_id"], self._credentials["consumer_secret"]
        answer = errand.call("POST", "/oauth/accesstoken", data=SCOPE, auth=(name, secret))
        if answer.status != 200:
            raise NoAnswer()
        # Its pages and its gateway write the names differently.
        told: dict[str, Any] = {name.replace("_", "").lower(): value for name, value in answer.told.items()}
        return oauth.token(told, "accesstoken", "expiresin")


def code(answer: Answer) -> str:
    return str(answer.told.get("responseCode", ""))
