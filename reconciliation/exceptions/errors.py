from core.errors import Invalid, NotFound


class ExceptionNotFound(NotFound):
    code = "exception_not_found"
    message = "No exception {id}."


class ExceptionNotAcceptable(Invalid):
    code = "exception_not_acceptable"
    message = "This exception cannot be accepted: {why}."


class ExceptionNotReturnable(Invalid):
    code = "exception_not_returnable"
    message = "This exception cannot be returned: {why}."
