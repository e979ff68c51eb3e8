from core.errors import NotFound, StateError, invalid_field


class ExceptionNotFound(NotFound):
    code = "exception_not_found"
    message = "No exception {id}."


class ExceptionNotAcceptable(StateError):
    code = "exception_not_acceptable"
    message = "This exception cannot be accepted: {why}."


class ExceptionNotReturnable(StateError):
    code = "exception_not_returnable"
    message = "This exception cannot be returned: {why}."


InvalidPart = invalid_field("part", "all or excess")
