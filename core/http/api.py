"""The parser, negotiation, errors and base viewset of the API. Only this module turns errors into HTTP."""

import hashlib
import logging
import re
import sys
from collections.abc import Callable
from functools import wraps
from types import MappingProxyType
from typing import IO, Any

from django.core.exceptions import (
    BadRequest,
    DisallowedHost,
    RequestDataTooBig,
    SuspiciousOperation,
    TooManyFieldsSent,
    TooManyFilesSent,
)
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.views.decorators.csrf import csrf_exempt
from rest_framework import exceptions, viewsets
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser, MultiPartParser
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request

from core import errors
from core.database.availability import is_unavailable
from core.http import fields, received, responses, strict_json, uploads
from core.http.middleware import request_id_of
from core.http.openapi import Operation
from core.observing.logs import LogRateLimit, redact

log = logging.getLogger("api")
MAX_REASON_LENGTH = 200
_bad_request_log_limit = LogRateLimit(1)
_OTHER_CHARSET = re.compile(r';\s*charset\s*=\s*(?!"?utf-8"?\s*(?:;|$))')


class StrictJsonParser(BaseParser):
    """Parses `application/json` with `core.http.strict_json`."""

    media_type = responses.JSON

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Any = None
    ) -> dict[str, Any]:
        try:
            # The body and not the stream, which can be read only once: idempotency keys need the body too.
            read = strict_json.loads(parser_context["request"].body, is_body=True)
        except strict_json.JsonRefused as refusal:
            raise errors.InvalidRequest(reason=refusal) from None
        parser_context["request"]._request.fields_of_body = read
        return read


class FormParser(MultiPartParser):
    """Parses a form with a picture, which becomes `picture` of the request.

    In the data stands its digest, for idempotency keys. An amount is an integer, as in JSON.
    """

    def parse(  # type: ignore[override]
        self, stream: IO[Any], media_type: str | None = None, parser_context: Any = None
    ) -> dict[str, Any]:
        try:
            form: Any = super().parse(stream, media_type, parser_context)
        except exceptions.ParseError:
            raise errors.InvalidRequest(reason="its form is malformed") from None
        except (TooManyFieldsSent, TooManyFilesSent):
            raise errors.InvalidRequest(reason="its form has too many fields") from None
        picture = form.files["picture"].read(uploads.MAX_PICTURE + 1) if "picture" in form.files else None
        for _, files in form.files.lists():
            for file in files:
                file.close()
        texts: dict[str, Any] = form.data.dict()
        if any(len(values) > 1 for _, values in [*form.data.lists(), *form.files.lists()]):
            raise errors.InvalidRequest(reason="its form has a field twice")
        if "\0" in "".join([*texts, *texts.values()]):
            raise errors.InvalidRequest(reason="its form has a text with U+0000")
        if re.fullmatch("[0-9]{1,18}", texts.get("amount", "")):
            texts["amount"] = int(texts["amount"])
        request = parser_context["request"]._request
        request.fields_of_body = texts | dict.fromkeys(form.files.keys() - {"picture"})
        if picture is None:
            return dict(request.fields_of_body)
        if len(picture) > uploads.MAX_PICTURE:
            raise errors.RequestTooLarge(param="picture", detail=uploads.PICTURE_TOO_LARGE)
        request.picture = picture
        return {**request.fields_of_body, "picture": hashlib.sha256(picture).hexdigest()}


class JsonNegotiation(BaseContentNegotiation):
    """The API ignores `Accept` and answers in JSON. Only the QR image reads the header."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        value = request.content_type.lower()
        if _OTHER_CHARSET.search(value):
            return None
        media_type = value.partition(";")[0].strip()
        return next((parser for parser in parsers if parser.media_type == media_type), None)

    def select_renderer(self, request: Request, renderers: Any, format_suffix: Any = None) -> Any:
        return renderers[0], renderers[0].media_type


class ApiViewSet(viewsets.ViewSet):
    """The base of all resources. Handlers return an object of the API, an `ApiResponse` or Django's."""

    parser_classes = [StrictJsonParser]
    renderer_classes = [JSONRenderer]
    content_negotiation_class = JsonNegotiation
    http_method_names: Any = ["get", "post", "put", "patch", "delete", "head"]  # no OPTIONS, as by default
    # No headers: responses do not vary, and only 405 has `Allow`.
    default_response_headers: Any = MappingProxyType({})

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        """DRF's, for responses that are complete."""
        if not isinstance(response, HttpResponseBase | responses.ApiResponse):
            response = responses.ApiResponse.of(response)
        if isinstance(response, responses.ApiResponse):
            response = responses.to_django(response)
        for name, value in self.headers.items():
            response.headers[name] = value
        return response

    def http_method_not_allowed(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        self.headers = {"Allow": ", ".join(self.allowed_methods)}
        return super().http_method_not_allowed(request, *args, **kwargs)


def exception_handler(error: Exception, context: dict[str, Any]) -> HttpResponse:
    """Turn every exception into the error envelope. Faults are logged with their traceback."""
    return error_response(error, context["request"])


def error_response(error: Exception, request: HttpRequest | Request) -> HttpResponse:
    api_error, request_id = _translate(error, request), request_id_of(request)
    known = {"request_id": request_id}
    if isinstance(api_error, errors.Busy):
        log.warning("%s refused: %s", request.path, api_error.code, extra=known)
    elif api_error.status >= 500:
        log.error("%s %s failed", request.method, request.path, exc_info=error, extra=known)
    response = responses.to_django(responses.error_response(api_error, request_id))
    response.error_code = api_error.code  # type: ignore[attr-defined]
    return response


_FRAMEWORK_ERRORS: list[tuple[tuple[type[Exception], ...], type[errors.ApiError]]] = [
    ((Http404, exceptions.NotFound), errors.PathNotFound),
    ((RequestDataTooBig,), errors.RequestTooLarge),
    ((TooManyFieldsSent,), errors.TooManyParameters),
    ((BadRequest, SuspiciousOperation), errors.MalformedRequest),
]


def _translate(error: Exception, request: HttpRequest | Request) -> errors.ApiError:
    if isinstance(error, errors.ApiError):
        return error
    if isinstance(error, exceptions.MethodNotAllowed):
        return errors.MethodNotAllowed(method=request.method)
    if isinstance(error, exceptions.UnsupportedMediaType):
        return errors.UnsupportedMediaType(received=received.describe(request.content_type, is_shown=True))
    if isinstance(error, OperationalError | InterfaceError) or is_unavailable(error):
        return errors.ServiceUnavailable(retry_after=1)
    types = (ours for theirs, ours in _FRAMEWORK_ERRORS if isinstance(error, theirs))
    return next(types, errors.InternalError)()


def read_body(operation: Operation, request: Request) -> dict[str, Any]:
    """The validated fields of the body. The first field at fault is refused as `invalid_<field>`."""
    serializer = operation.body_reader
    data = fields.without_nulls(serializer, request.data)
    try:
        return dict(serializer.run_validation(data))
    except exceptions.ValidationError as error:
        fault = fields.first_fault(error, serializer, data)
        error_type, detail = errors.CATALOGUE[f"invalid_{fault.name}"], fault.reason
        if "{received}" not in error_type.message and fault.received != errors.NOTHING:
            detail = f"{detail}; received {fault.received}"
        raise error_type(param=fault.name, detail=detail, received=fault.received) from None


def read_query(operation: Operation, request: Request) -> dict[str, Any]:
    """The validated query parameters, or 400 `invalid_parameters`; unknown parameters are ignored."""
    serializer, query = operation.query_reader, request.query_params
    given = {name: query[name] for name in query}
    try:
        for name in query:
            field = name.partition("[")[0]
            values = query.getlist(name)
            if field in serializer.fields and len(values) > 1:
                raise exceptions.ValidationError({field: ["must be given once"]})
            if field in serializer.fields and "\x00" in "".join((name, *values)):
                raise exceptions.ValidationError({field: ["must not contain U+0000"]})
        return dict(serializer.run_validation(given))
    except exceptions.ValidationError as error:
        fault = fields.first_fault(error, serializer, given)
        raise errors.InvalidParameters(param=fault.name, rule=fault.reason, received=fault.received) from None


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    has_slash = request.path_info.endswith("/") and request.path_info != "/"
    detail = "must not end with a slash" if has_slash else None
    return error_response(errors.PathNotFound(detail=detail), request)


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """The response to a request that Django refuses. Anybody can cause it, so it logs a line a second."""
    suppressed = _bad_request_log_limit.admit(type(exception).__name__)
    if suppressed is not None:
        reason = redact(str(exception))[:MAX_REASON_LENGTH]
        log.warning("%s: %s (%d more)", type(exception).__name__, reason, suppressed)
    if isinstance(exception, DisallowedHost):
        return error_response(errors.InvalidHost(), request)
    return error_response(errors.MalformedRequest(), request)


def server_error(request: HttpRequest) -> HttpResponse:
    """The response to an unhandled exception, which Django does not pass on."""
    error = sys.exception()
    return error_response(error if isinstance(error, Exception) else errors.InternalError(), request)


View = Callable[..., HttpResponse]
SAFE_METHODS = ("GET", "HEAD")


def get_or_head_only(view: View) -> View:
    """Answer GET and HEAD; other methods get 405 in the error envelope, without a CSRF check."""

    @csrf_exempt
    @wraps(view)
    def handle(request: HttpRequest, **kwargs: Any) -> HttpResponse:
        if request.method in SAFE_METHODS:
            return view(request, **kwargs)
        response = error_response(errors.MethodNotAllowed(method=request.method), request)
        response.headers["Allow"] = ", ".join(SAFE_METHODS)
        return response

    return handle
