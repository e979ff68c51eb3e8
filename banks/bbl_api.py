"""How Bangkok Bank's API is asked: a token for the application, and a signature over each body."""

import uuid
from collections.abc import Mapping
from typing import Any

import orjson

from banks import jwt, oauth
from banks.http_client import NoResponse, Response
from banks.oauth import ApiClient, AuthorizedSession
from banks.token_cache import AccessToken
from core import clock

API_URL = "https://api.bangkokbank.com"
SCOPE = {"grant_type": "client_credentials", "scope": "CREATE READ"}


class BblClient:
    """Some questions to the bank, which share the time that they may take."""

    def __init__(self, credentials: Mapping[str, str]) -> None:
        self._credentials = credentials
        name, secret = credentials["consumer_id"], credentials["consumer_secret"]
        self._session = AuthorizedSession(ApiClient(credentials["api_url"], name, secret, self._fetch_token))

    def request(self, path: str, params: Mapping[str, str]) -> Response:
        """path: the name of the credential that holds it. Raises NotSent, NoResponse."""
        now = clock.now()
        headers = {
            "Content-Type": "application/json",
            "Request-Ref": uuid.uuid4().hex,
            "Transmit-Date-Time": now.astimezone(clock.BANGKOK).isoformat(timespec="milliseconds"),
            "Signature": jwt.sign(params, private_key=self._credentials["private_key"], now=now),
        }
        body = orjson.dumps(params)
        return self._session.request("POST", self._credentials[path], headers=headers, data=body)

    def _fetch_token(self, session: AuthorizedSession) -> AccessToken:
        name, secret = self._credentials["consumer_id"], self._credentials["consumer_secret"]
        response = session.request_without_token(
            "POST", "/oauth/accesstoken", data=SCOPE, auth=(name, secret)
        )
        if response.status != 200:
            raise NoResponse()
        # Its pages and its gateway write the names differently.
        data: dict[str, Any] = {name.replace("_", "").lower(): value for name, value in response.data.items()}
        return oauth.parse_token(data, "accesstoken", "expiresin")


def response_code(response: Response) -> str:
    return str(response.data.get("responseCode", ""))
