"""What the audit finds, asked so often that it has to be cheap."""

from console.audit import checking
from core import rows

# All rules in one question, which PostgreSQL plans once for a connection: then it takes some milliseconds.
ANY_DIFFERENCE = " UNION ALL ".join(f"SELECT * FROM ({rule.sql}) AS difference" for rule in checking.RULES)


def differences() -> list[str]:
    """One line each."""
    if not rows.run(ANY_DIFFERENCE, []).fetchone():
        return []
    return [str(difference) for difference in checking.differences()]
