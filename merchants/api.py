"""The base of all resources that need a merchant's key."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from rest_framework.request import Request

from core.database import replica
from core.http import ignored_parameters
from core.http.api import ApiViewSet
from core.http.openapi import Operation, operation_of
from merchants import csv_lists, key_rate_limit
from merchants.authentication import NOTHING_ELSE, ReadWithKey, authenticate, merchant_of
from merchants.errors import InsufficientScope, as_suspension
from merchants.models import ApiKey

__all__ = ["MerchantViewSet", "merchant_of"]


class MerchantViewSet(ApiViewSet):
    """Checks the secret key, the rate limit of the key, and its scopes."""

    # What an action reads by the same query as the key. It finds the values in `self.read`.
    reads_with_key: Mapping[str, ReadWithKey] = {}
    read: Sequence[Any]
    # Whether lists may come from a standby: they write nothing.
    lists_read_replica = True
    get: Any

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        other = self.reads_with_key.get(self.action or "", NOTHING_ELSE)
        request.user, request.auth, self.read = authenticate(request, other, kwargs)  # type: ignore[assignment]
        key_rate_limit.check(request)
        operation = self._check_scope(request)
        if replica.is_configured() and operation and operation.is_list and self.lists_read_replica:
            self.get = replica.reads(self.get)
        if operation is not None and csv_lists.is_wanted(request, operation):
            self.get = partial(
                csv_lists.respond, self.get, operation=operation, merchant_id=merchant_of(request).id
            )

    def handle_exception(self, exc: Exception) -> Any:
        return super().handle_exception(as_suspension(exc))

    def _check_scope(self, request: Request) -> Operation | None:
        """Return the operation. Raises InsufficientScope, and RuntimeError for one that declares no scope."""
        handler = getattr(self, self.action or "", None)
        if handler is None:  # the path has no such method: 405 follows
            return None
        operation = operation_of(handler)
        if operation is None or operation.scope is None:
            raise RuntimeError(f"{self.action} of {type(self).__name__} declares no scope")
        key: ApiKey = request.auth  # type: ignore[assignment]
        if operation.scope not in key.scopes:
            raise InsufficientScope(scope=operation.scope.value)
        return operation

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        response = super().finalize_response(request, response, *args, **kwargs)
        self._name_ignored_parameters(request, response)
        room = getattr(request._request, "rate_room", None)
        if room is not None:
            for name, value in key_rate_limit.headers(room).items():
                response.headers[name] = value
        return response

    def _name_ignored_parameters(self, request: Any, response: Any) -> None:
        """Add the header `Ignored-Parameters` if the request has unknown fields or query parameters."""
        operation = operation_of(getattr(self, self.action or "", None))
        if operation is None:
            return
        body = getattr(request._request, "fields_of_body", {})
        query = request.query_params if request.META.get("QUERY_STRING") else ()
        if named := ignored_parameters.header_of(operation, body, query):
            response.headers[ignored_parameters.HEADER] = named
