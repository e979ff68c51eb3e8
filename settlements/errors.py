from core.errors import NotFound


class SettlementNotFound(NotFound):
    code = "settlement_not_found"
    message = "No settlement {id}."
