from core.errors import NotFound


class SettlementNotFound(NotFound):
    code = "settlement_not_found"
    message = "No settlement {id}."


class QuestionClosed(Exception):
    """Somebody has closed the question before."""


class NothingToBook(Exception):
    """The question has no difference, or its money is still expected."""
