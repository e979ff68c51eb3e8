from core.errors import NotFound

SettlementNotFound = NotFound.of("settlement_not_found", "No settlement {id}.")
