"""The main job through the API: a code is made, paid, confirmed, and it is written down who is to be told."""

from tests.conftest import SandboxBankClient, Shop


def test_paid_qr_code_is_succeeded_in_api(shop: Shop, bank: SandboxBankClient) -> None:
    code = shop.qr_code(reference="order 17", metadata={"table": 4})
    assert code["status"] == "pending"
    assert shop.payment(code["payment_id"])["status"] == "pending"

    assert bank.notify(code).status_code == 200

    payment = shop.payment(code["payment_id"])
    assert (payment["status"], payment["reference"], payment["metadata"]) == (
        "succeeded",
        "order 17",
        {"table": 4},
    )
    assert payment["completed_at"] is not None
    listed = shop.get("/Thai/v1/transactions").json()
    assert listed["total"] == 1
    assert (listed["transactions"][0]["payment_id"], listed["transactions"][0]["type"]) == (
        code["payment_id"],
        "payment",
    )
