from core import errors

RequestNotFound = errors.NotFound.of("request_not_found", "No request with this id in the request log.")
