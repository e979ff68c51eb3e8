"""Recorded statements become scripts for pgbench."""

import re

from bench.life import PROGRESS
from bench.replay import BEGIN, COMMIT, Life, Script, Statement, Value

PAYMENT, EARLIER_PAYMENT = "pay_" + "1" * 27, "pay_" + "0" * 27
MERCHANT, OTHER_MERCHANT = "mch_" + "1" * 27, "mch_" + "2" * 27
LEASE = "3a052d5b686842d8b5bdef3cf27c4e52"
STARTED_AT = "2026-11-23 09:20:17.500000+00:00"
INSERT = "INSERT INTO payments (id, merchant, reference) VALUES (%s, %s, %s)"


def life_of(*statements: Statement, names: tuple[str, ...] = ()) -> Life:
    earlier = [Statement(INSERT, [Value(EARLIER_PAYMENT), Value(MERCHANT)])]
    return Life(statements, earlier, names, STARTED_AT, LEASE, [[MERCHANT], [OTHER_MERCHANT]])


def script_of(sql: str, *values: Value, names: tuple[str, ...] = ()) -> Script:
    return Script(life_of(Statement(sql, values), names=names))


def drawn(script: Script) -> str:
    """The expressions of the values that are new in each repetition."""
    return re.search(r"^SELECT (.*) FROM \(SELECT", script.text, re.MULTILINE)[1]  # type: ignore[index]


def test_new_ids_and_names_of_a_life_are_those_that_an_earlier_life_does_not_have() -> None:
    found = life_of(Statement(INSERT, [Value(PAYMENT), Value(MERCHANT), Value("R1")]), names=("R1",))
    assert found.new_texts == ["R1", PAYMENT]


def test_names_of_locks_are_new_in_each_life() -> None:
    found = life_of(
        Statement("SELECT pg_advisory_xact_lock(%s)", [Value("{-3362281715237444031}", "bigint[]")])
    )
    assert found.new_texts == ["-3362281715237444031"]


def test_repetition_has_a_new_id_of_the_same_form() -> None:
    script = script_of("SELECT %s", Value(PAYMENT))
    assert script.text.endswith("SELECT :v0;\n")
    assert drawn(script).startswith("'pay_' || extract(epoch FROM now())")
    assert script.variables == {}


def test_ids_that_share_their_characters_still_do() -> None:
    script = script_of("SELECT %s, %s, %s", Value(PAYMENT), Value("qr_" + "1" * 27), Value("evt_" + "2" * 27))
    numbers = re.findall(r"\|\| '(\d\d)' AS v", drawn(script))
    assert numbers == ["00", "00", "01"]


def test_new_name_inside_of_a_text_is_replaced_and_the_rest_stays() -> None:
    script = script_of("SELECT %s", Value("{0002R1}", "text[]"), names=("R1",))
    assert script.text.endswith("SELECT :v0::text[];\n")
    assert drawn(script).startswith("E'{0002' || right(")
    assert drawn(script).endswith(" || E'}' AS v0")


def test_value_that_is_in_every_life_is_a_variable_of_pgbench() -> None:
    script = script_of("SELECT %s, %s", Value("bank:sandbox"), Value("150000", "integer"), names=("R1",))
    assert script.variables == {"c0": "bank:sandbox", "c1": "150000"}
    assert script.text.endswith("SELECT :c0, :c1::integer;\n")


def test_ids_of_a_shop_are_those_of_the_shop_of_each_client() -> None:
    script = script_of("SELECT %s", Value(MERCHANT))
    assert drawn(script) == f"(ARRAY[E'{MERCHANT}', E'{OTHER_MERCHANT}'])[shop] AS v0"
    assert ":client_id::int % 2 + 1 AS shop" in script.text


def test_instant_is_as_long_after_the_start_as_it_was() -> None:
    script = script_of("SELECT %s", Value("2026-11-23 09:20:19+00:00", "timestamptz"))
    assert drawn(script) == "(now() + interval '1.5 seconds')::text AS v0"


def test_lease_is_the_one_that_the_claim_returned() -> None:
    claim = Statement("UPDATE t SET lease_id = gen_random_uuid() RETURNING lease_id")
    record = Statement("UPDATE t WHERE lease_id = ANY(%s)", [Value(f"{{{LEASE}}}", "uuid[]")])
    text = Script(life_of(claim, record, Statement("SELECT %s", [Value(PAYMENT)]))).text
    assert "RETURNING lease_id \\gset\n" in text
    assert "lease_id = ANY((E'{' || :lease_id || E'}')::uuid[]);\n" in text


def test_null_and_empty_text_are_literals() -> None:
    assert script_of("SELECT %s, %s, %s", Value(None), Value(""), Value(PAYMENT)).text.endswith(
        "SELECT NULL, '', :v0;\n"
    )


def test_transactions_and_signs_of_percent_stay() -> None:
    text = Script(
        life_of(Statement(BEGIN), Statement("SELECT 1 %% 2, %s", [Value(PAYMENT)]), Statement(COMMIT))
    ).text
    assert text.endswith("BEGIN;\nSELECT 1 % 2, :v0;\nCOMMIT;\n")


def test_no_letter_follows_a_colon_in_a_literal_because_pgbench_would_read_a_variable() -> None:
    script = script_of("SELECT %s", Value(f"available:{PAYMENT}"))
    assert drawn(script).startswith("E'available\\x3a' || 'pay_'")


def test_progress_lines_of_pgbench_have_the_rate_of_each_second() -> None:
    shown = """pgbench (18.6)
progress: 1.0 s, 77.0 tps, lat 84.224 ms stddev 67.492, 0 failed
progress: 2.0 s, 178.4 tps, lat 44.343 ms stddev 9.603, 0 failed
"""
    assert PROGRESS.findall(shown) == ["77.0", "178.4"]
