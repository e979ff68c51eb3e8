from core.errors import NotFound, StateError, invalid_field

ExceptionNotFound = NotFound.of("exception_not_found", "No exception {id}.")
ExceptionNotAcceptable = StateError.of(
    "exception_not_acceptable", "This exception cannot be accepted: {why}."
)
ExceptionNotReturnable = StateError.of(
    "exception_not_returnable", "This exception cannot be returned: {why}."
)
InvalidPart = invalid_field("part", "all or excess")
