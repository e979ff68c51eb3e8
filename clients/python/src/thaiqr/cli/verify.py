"""`thaiqr verify`: whether a file of evidence, or a signed day of a proof page, is true."""

from pathlib import Path
from typing import Annotated, Any

import typer

from thaiqr.cli import evidence
from thaiqr.cli.exits import Exit
from thaiqr.cli.output import Output
from thaiqr.cli.session import AsJson

MAX_SHOWN = 20


def verify(
    file: Annotated[Path, typer.Argument(help="Evidence of payments, or a day of a proof page.")],
    key: Annotated[
        str | None, typer.Option(help="The operator's public key, or its fingerprint SHA256:...")
    ] = None,
    payment: Annotated[str | None, typer.Option(help="The payment that it must be about.")] = None,
    json: AsJson = False,
) -> None:
    """Say whether a file of the service is true. Ends with 5 if it is not. Needs no key and no service."""
    output = Output(json)
    try:
        content = file.read_bytes()
    except OSError as error:
        output.fail(str(error))
        raise typer.Exit(Exit.USAGE) from None
    try:
        found = evidence.verify(content, key=key, payment_id=payment)
    except evidence.NotTrue as error:
        _show(output, json, {"true": False, "reason": str(error)}, f"false: {error}.")
        raise typer.Exit(Exit.WRONG_PAYLOAD) from None
    payments = [{"payment_id": each.payment_id, "day": each.day} for each in found.payments]
    trust = "You gave" if key else "You have to trust, so compare with what the operator tells you,"
    lines = [f"true: {len(payments)} of {len(payments)} payments are as the operator signed them."]
    lines += [f"{each.payment_id} at the close of {each.day}" for each in found.payments[:MAX_SHOWN]]
    shown = {"true": True, "trusts": found.fingerprints, "payments": payments}
    if found.proof:
        shown, lines = shown | {"proof": found.proof}, [f"true: the operator signed this: {found.proof}"]
    lines.append(f"{trust} the key {', '.join(found.fingerprints)}")
    _show(output, json, shown, *lines)


def _show(output: Output, json: bool, data: dict[str, Any], *lines: str) -> None:
    if json:
        output.data(data)
    for line in () if json else lines:
        output.say(line)  # without markup: somebody else wrote the file
