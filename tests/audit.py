"""What the audit finds, asked so often that it has to be cheap."""

from core import rows
from operations.audit import runner

# All rules in one question, which PostgreSQL plans once for a connection: then it takes some milliseconds.
ANY_DIFFERENCE = " UNION ALL ".join(f"SELECT * FROM ({rule.sql}) AS difference" for rule in runner.RULES)


def differences() -> list[str]:
    """One line each."""
    if not rows.run(ANY_DIFFERENCE, []).fetchone():
        return []
    return [str(difference) for difference in runner.differences()]
