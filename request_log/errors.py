from core import errors


class RequestNotFound(errors.NotFound):
    code = "request_not_found"
    message = "No request with this id in the request log."
