"""Everything that the audit finds: in the books, in the audit trail and in the closes."""

from collections.abc import Callable, Iterator

from audit_trail.chain import Verification
from operations.audit import contents, runner
from operations.audit.daily_close import closing
from operations.audit.month_close import closing as month_closing


def find(chain: Verification, *, on_progress: Callable[[int], None] = lambda rules: None) -> Iterator[str]:
    """Yield a line for each difference, from one snapshot of the caller. No line has names or accounts.

    chain: has the newest link of the audit trail afterwards. on_progress: called after each rule.
    """
    yield from map(str, runner.differences(on_progress=on_progress))
    parts = (
        ("encrypted content", contents.findings()),
        ("audit trail", chain.findings()),
        ("daily closes", closing.findings()),
        ("closed months", month_closing.findings()),
    )
    for part, found in parts:
        yield from (f"{part}: {name}: {finding}" for name, finding in found)
