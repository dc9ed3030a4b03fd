"""Campaign files: what they mean, and every mistake named at its line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core.campaign import Campaign
from core.campaign_paths import PATHS
from core.campaign_yaml import load_campaign
from core.errors import InputError
from core.plan import make_plan
from core.section import Section
from core.yaml_tree import MAX_BYTES, MAX_DEPTH

CAMPAIGNS = Path(__file__).parents[2] / "campaigns"
ENV = {"HOME": "/home/user"}

#: A small valid campaign; the tests replace lines of it. The line numbers are those of the lines.
GOOD = """\
campaign: demo
benchmark: custom
model:
  name: some-model
endpoint:
  urls: [http://127.0.0.1:8000]
instance:
  name: box
datasets:
  performance:
    path: data/performance.jsonl
  accuracy:
    - path: data/accuracy.jsonl
      scorer: {eval_method: pass_at_1}
      targets: {score: 0.9}
curve:
  c_max: 64
seeds:
  target_cohort: 2026-12-C0
client:
  command: [inference-endpoint]
"""


def load(text: str | bytes, env: Mapping[str, str] = ENV, **options: Any) -> Campaign:
    return load_campaign(text, source="demo.yaml", folder=Path("/files"), env=env, **options)


def changed(*changes: tuple[str, str]) -> str:
    text = GOOD
    for old, new in changes:
        assert text.count(old) == 1, f"{old!r} must name one place"
        text = text.replace(old, new)
    return text


def mistakes(text: str | bytes, env: Mapping[str, str] = ENV) -> list[str]:
    with pytest.raises(InputError) as caught:
        load(text, env)
    return str(caught.value).split("\n")


def test_a_campaign_loads() -> None:
    """Stated values are taken, others have the model's defaults."""
    campaign = load(GOOD)
    assert (campaign.campaign, campaign.curve.c_max) == ("demo", 64)
    assert (
        campaign.run.retries
        == Campaign.model_fields["run"].get_default(call_default_factory=True).retries
    )
    assert load(GOOD.encode()) == load("\ufeff" + GOOD) == campaign


#: Change to `GOOD` → the one message, whole.
ONE_MISTAKE = {
    "typo": (
        ("  c_max: 64", "  c_mx: 64"),
        "17: curve.c_mx: unknown key → did you mean c_max?",
    ),
    "key of another section": (
        ("  c_max: 64", "  c_max: 64\n  retries: 3"),
        "18: curve.retries: unknown key → did you mean run.retries?",
    ),
    "key of several sections": (
        ("  c_max: 64", "  c_max: 64\n  name: 3"),
        "18: curve.name: unknown key → did you mean model.name or instance.name or"
        " datasets.performance.name?",
    ),
    "typo of a key of another section": (
        ("  c_max: 64", "  c_max: 64\n  retires: 3"),
        "18: curve.retires: unknown key → did you mean run.retries?",
    ),
    "mistyped section": (
        ("endpoint:", "endpont:"),
        "5: endpont: unknown key → did you mean endpoint?",
    ),
    "unknown key": (
        ("  name: box", "  name: box\n  zzzz: 3"),
        "9: instance.zzzz: unknown key → the keys here are name, accelerators",
    ),
    "number as a key": (
        ("  name: box", "  name: box\n  7: 3"),
        "9: instance[7]: unknown key → the keys here are name, accelerators",
    ),
    "missing key": (
        ("  urls: [http://127.0.0.1:8000]", "  api_type: openai"),
        "5: endpoint.urls: missing → add it: Base URLs, each with scheme, without the /v1 path.",
    ),
    "missing section": (
        ("instance:\n  name: box\n", ""),
        "1: instance: missing → add it: The exclusive thing measured.",
    ),
    "quoted number": (
        ("c_max: 64", 'c_max: "64"'),
        '17: curve.c_max: "64" → must be a whole number; remove the quotes',
    ),
    "number with an exponent": (
        ("c_max: 64", "c_max: 1e3"),
        "17: curve.c_max: 1e3 → must be a whole number; write it in plain digits",
    ),
    "fraction": (
        ("c_max: 64", "c_max: 64.5"),
        "17: curve.c_max: 64.5 → must be a whole number; write it in plain digits",
    ),
    "boolean for a number": (
        ("c_max: 64", "c_max: true"),
        "17: curve.c_max: true → must be a whole number",
    ),
    "number for text": (
        ("name: some-model", "name: 8"),
        '4: model.name: 8 → must be text; quote it: "8"',
    ),
    "empty value": (
        ("name: some-model", "name:"),
        "4: model.name: (empty) → must be text; give it a value or remove the line",
    ),
    "empty section": (
        ("curve:\n  c_max: 64", "curve:"),
        "16: curve: (empty) → must be a mapping; give it a value or remove the line",
    ),
    "empty rehearsal": (
        ("seeds:", "rehearsal:\nseeds:"),
        "18: rehearsal: (empty) → must be a mapping; give it time_scale or remove it",
    ),
    "value for a section": (
        ("instance:\n  name: box", "instance: box"),
        "7: instance: box → must be a mapping with the keys name, accelerators",
    ),
    "text for a list": (
        ("[inference-endpoint]", "uv run inference-endpoint"),
        "21: client.command: uv run inference-endpoint → must be a list;"
        " write [uv, run, inference-endpoint]",
    ),
    "mapping for a list": (
        ("[inference-endpoint]", "{a: 1}"),
        "21: client.command: a mapping → must be a list",
    ),
    "empty list": (
        ("[inference-endpoint]", "[]"),
        "21: client.command: [] → must not be an empty list",
    ),
    "not one of the words": (
        ("c_max: 64", "c_max: 64\n  offline: elect"),
        "18: curve.offline: elect → must be 'elected', 'dedicated' or 'none';"
        " did you mean elected?",
    ),
    "text for word or list": (
        ("c_max: 64", "c_max: 64\n  levels: 1,2,64"),
        "18: curve.levels: 1,2,64 → must be 'auto' or a list; write [1, 2, 64]",
    ),
    "wrong item of a list": (
        ("c_max: 64", "c_max: 64\n  levels:\n  - 1\n  - x"),
        "20: curve.levels[1]: x → must be a whole number",
    ),
    "out of range": (
        ("c_max: 64", "c_max: 64\n  spares: 26"),
        "18: curve.spares: 26 → must be 25 or less",
    ),
    "not above": (
        ("seeds:", "run: {stall_timeout_s: 0}\nseeds:"),
        "18: run.stall_timeout_s: 0 → must be above 0.0",
    ),
    "name with a space": (
        ("name: box", "name: my box"),
        "8: instance.name: my box → must be letters, digits, - and _, at most 64,"
        " a letter or digit first",
    ),
    "path without a slash": (
        ("[http://127.0.0.1:8000]", "[http://127.0.0.1:8000]\n  health_path: v1"),
        "7: endpoint.health_path: v1 → must start with /",
    ),
    "number for a path": (
        ("data/performance.jsonl", "8"),
        "11: datasets.performance.path: 8 → must be a path",
    ),
    "empty path": (
        ("data/performance.jsonl", '""'),
        '11: datasets.performance.path: "" → must not be empty; name a path',
    ),
    "neither bound nor number": (
        ("score: 0.9", "score: high"),
        "15: datasets.accuracy[0].targets.score: high → must be a mapping or a number",
    ),
    "wrong bound": (
        ("score: 0.9", "score: {min: 0.5, mox: 1.0}"),
        "15: datasets.accuracy[0].targets.score.mox: unknown key → did you mean max?",
    ),
    "text as a level": (
        ("seeds:", 'run:\n  expected_qps: {"64": 1.0}\nseeds:'),
        '19: run.expected_qps.64: key "64" → must be a whole number',
    ),
    "number as a free key": (
        ("data/performance.jsonl", "x.jsonl\n    settings: {1: 2}"),
        "12: datasets.performance.settings[1]: key 1 → must be text",
    ),
    "not a URL": (
        ("http://127.0.0.1:8000", "127.0.0.1:8000"),
        "6: endpoint.urls: [127.0.0.1:8000] → each must be an http:// or https:// URL with a host",
    ),
    "names twice": (
        (
            "    - path: data/accuracy.jsonl",
            "    - path: data/accuracy.jsonl\n      name: performance",
        ),
        "9: datasets: the dataset names must differ, not performance, performance",
    ),
    "custom without targets": (
        ("      targets: {score: 0.9}\n", ""),
        "13: datasets.accuracy[0]: a custom benchmark needs targets, e.g. targets: {score: 0.9}",
    ),
    "official with targets": (
        ("benchmark: custom", "benchmark: gpt-oss-120b"),
        "15: datasets.accuracy[0].targets: gpt-oss-120b takes its targets from the official"
        " checker; remove targets",
    ),
    "overriding the plan": (
        ("[inference-endpoint]", "[x]\n  overrides:\n    settings:\n      runtime: {a: 1}"),
        "24: client.overrides.settings.runtime: follows from the plan and can't be overridden;"
        " remove it",
    ),
    "variable not set": (
        ("some-model", "${MODEL_NAME}"),
        "4: model.name: ${MODEL_NAME} → variable MODEL_NAME is not set; export it or give a"
        " default: ${MODEL_NAME:-…}",
    ),
    "variable malformed": (
        ("some-model", "${MODEL NAME}"),
        "4: model.name: ${MODEL NAME} → not a variable; write ${NAME} or ${NAME:-default},"
        " $${ for plain ${",
    ),
    "yes": (
        ("some-model", "yes"),
        '4: model.name: yes → is read as a boolean; quote it ("yes") if text is meant,'
        " or write true",
    ),
    "Off": (
        ("some-model", "Off"),
        '4: model.name: Off → is read as a boolean; quote it ("Off") if text is meant,'
        " or write false",
    ),
    "octal": (
        ("c_max: 64", "c_max: 0100"),
        '17: curve.c_max: 0100 → is read as an octal number; quote it ("0100") if text is meant,'
        " or write a plain decimal number",
    ),
    "underscores": (
        ("c_max: 64", "c_max: 1_024"),
        "17: curve.c_max: 1_024 → is read as a number with its _ left out; quote it"
        ' ("1_024") if text is meant, or write a plain decimal number',
    ),
    "base 60": (
        ("some-model", "12:30:45"),
        '4: model.name: 12:30:45 → is read as a base-60 number; quote it ("12:30:45") if text is'
        " meant, or write a plain decimal number",
    ),
    "hexadecimal": (
        ("c_max: 64", "c_max: 0x40"),
        '17: curve.c_max: 0x40 → is read as a hexadecimal number; quote it ("0x40") if text is'
        " meant, or write a plain decimal number",
    ),
    "binary": (
        ("c_max: 64", "c_max: 0b1000000"),
        "17: curve.c_max: 0b1000000 → is read as a binary number; quote it"
        ' ("0b1000000") if text is meant, or write a plain decimal number',
    ),
    "infinity": (
        ("seeds:", "run: {backoff_s: .inf}\nseeds:"),
        '18: run.backoff_s: .inf → is read as no finite number; quote it (".inf") if text is'
        " meant, or write a plain decimal number",
    ),
    "number out of range": (
        ("seeds:", "run: {backoff_s: 1.0e+999}\nseeds:"),
        "18: run.backoff_s: 1.0e+999 → is read as a number, but is none of use here; quote it"
        ' ("1.0e+999") if text is meant, or write a plain decimal number',
    ),
    "date": (
        ("target_cohort: 2026-12-C0", "target_cohort: 2026-12-10"),
        '19: seeds.target_cohort: 2026-12-10 → is read as a date; quote it: "2026-12-10"',
    ),
    "lone equals sign": (
        ("some-model", "="),
        '4: model.name: = → has a meaning of its own in YAML; quote it: "="',
    ),
    "tag": (
        ("some-model", "!!python/object/apply:os.system [ls]"),
        "4: model.name: [ls] → tag !!python/object/apply:os.system is not read here; remove it",
    ),
    "tag on a value": (
        ("some-model", "!mine x"),
        "4: model.name: x → tag !mine is not read here; remove it",
    ),
    "escaped control character": (
        ("some-model", r'"a\0b"'),
        r'4: model.name: "a\x00b" → holds the unprintable character U+0000; remove it',
    ),
    "half a character": (
        ("some-model", r'"\ud800"'),
        r'4: model.name: "\ud800" → holds the unprintable character U+D800; remove it',
    ),
    "duplicate key": (
        ("  c_max: 64", "  c_max: 64\n  spares: 1\n  c_max: 128"),
        "19: curve.c_max: given twice, first in line 17 → remove one",
    ),
    "duplicate section": (
        ("seeds:", "model:\n  name: other\nseeds:"),
        "18: model: given twice, first in line 3 → remove one",
    ),
    "merge key": (
        ("  c_max: 64", "  c_max: 64\n  <<: {spares: 1}"),
        "18: curve: key << → merge keys are not read here; write the keys out",
    ),
    "boolean as a key": (
        ("  c_max: 64", "  c_max: 64\n  on: 1"),
        '18: curve: key on → a key must be text; quote it: "on"',
    ),
    "no key": (
        ("  c_max: 64", "  c_max: 64\n  ~: 1"),
        "18: curve: key ~ → a key must be text; this one is empty",
    ),
    "list as a key": (
        ("  c_max: 64", "  c_max: 64\n  ? [1]\n  : 1"),
        "18: curve: key [1] → a key must be text",
    ),
}


@pytest.mark.parametrize("case", ONE_MISTAKE)
def test_one_mistake_gives_one_message(case: str) -> None:
    """The message names file, line, key and value, says what is wrong, and how to put it right."""
    change, expected = ONE_MISTAKE[case]
    assert mistakes(changed(change)) == [f"demo.yaml:{expected}"]


#: Text that is no campaign at all → its one message.
UNREADABLE: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", "1: the file is empty → write a campaign; campaigns/rehearsal.yaml is one"),
    "comments only": (
        "# soon\n",
        "1: the file is empty → write a campaign; campaigns/rehearsal.yaml is one",
    ),
    "a list": ("- a\n", "1: not a mapping → a campaign starts with campaign: NAME"),
    "a word": ("hello", "1: not a mapping → a campaign starts with campaign: NAME"),
    "two documents": (
        GOOD + "---\n" + GOOD,
        "22: a second document starts here → one campaign a file; remove the ---",
    ),
    "a tab": (
        changed(("  name: some-model", "\tname: some-model")),
        "4: a tab → YAML indents and separates with spaces only",
    ),
    "a colon too many": (
        changed(("name: some-model", "name: some: model")),
        "4: not valid YAML: a colon that can't be here → check indentation, or quote the value",
    ),
    "an at sign": (
        changed(("some-model", "@home")),
        "4: not valid YAML: found character '@' that cannot start any token → put the value into"
        " quotes",
    ),
    "an open bracket": (
        "a: 1\nb: {c: 2\n",
        "3: not valid YAML: expected ',' or '}', but got '<stream end>' (while parsing a flow"
        " mapping from line 2)",
    ),
    "an unquoted variable in a list": (
        changed(("[inference-endpoint]", "[${CLIENT:-x}]")),
        '21: not valid YAML: inside [ ] or { } a variable needs quotes → "${NAME}"',
    ),
    "an unknown alias": ("a: *b\n", "1: not valid YAML: found undefined alias 'b'"),
    "an escape out of range": (
        'a: 1\nb: "\\UFFFFFFFF"\n',
        "2: not valid YAML: a number or an escape is out of range",
    ),
    "a version out of range": (
        "%YAML 1." + "9" * 5000 + "\n---\na: 1\n",
        "1: not valid YAML: a number or an escape is out of range",
    ),
    "an alias inside its anchor": (
        "a: 1\nb: &b [*b]\n",
        "2: alias *b stands inside its own anchor",
    ),
    "too deep": ("[" * 5000, f"1: nested more than {MAX_DEPTH} deep"),
    "too many values": ("- a\n" * 20_000, "10000: more than 10,000 values, aliases expanded"),
    "not UTF-8": (
        b"campaign: demo\nbenchmark: \xff\n",
        "2: byte 0xff is not UTF-8 → save the file as UTF-8",
    ),
    "UTF-16": (GOOD.encode("utf-16"), "1: byte 0xff is not UTF-8 → save the file as UTF-8"),
    "a NUL": ("a: 1\nb: \0\n", "2: unprintable character U+0000 → remove it"),
    "a surrogate": ("a: \ud800", "1: byte 0xed is not UTF-8 → save the file as UTF-8"),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_what_is_no_campaign_is_told_in_one_line(case: str) -> None:
    text, expected = UNREADABLE[case]
    assert mistakes(text) == [f"demo.yaml:{expected}"]


def test_a_file_too_large_is_not_parsed() -> None:
    (message,) = mistakes(b"a" * (MAX_BYTES + 1))
    assert message == "demo.yaml:1: 1,000,001 bytes → a campaign file has at most 1,000,000"


def laughs(levels: int, width: int = 9) -> str:
    lines = ["a0: &a0 [x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * width)}]" for n in range(1, levels)]
    return "\n".join(lines)


def test_nested_anchors_are_counted_not_expanded() -> None:
    """A text that would expand to 9**39 values is refused, at any size."""
    (message,) = mistakes(laughs(40))
    assert message.endswith("more than 10,000 values, aliases expanded")
    five_megabytes = laughs(100_000)
    assert len(five_megabytes) > 5_000_000
    assert "bytes" in mistakes(five_megabytes)[0]


def test_aliases_cannot_hide_depth() -> None:
    """Each anchor is flat enough by itself; one inside the other they are too deep."""
    deep = "a0: &a0 [[[[[[[[x]]]]]]]]\n" + "".join(
        f"a{n}: &a{n} [[[[[[[[*a{n - 1}]]]]]]]]\n" for n in range(1, 6)
    )
    assert mistakes(deep) == [f"demo.yaml:4: nested more than {MAX_DEPTH} deep"]


def test_a_plain_alias_is_read() -> None:
    """Anchors are fine in themselves: the value counts in both places."""
    text = changed(
        ("path: data/performance.jsonl", "path: &file data/both.jsonl"),
        ("path: data/accuracy.jsonl", "path: *file"),
    )
    campaign = load(text)
    assert campaign.datasets.accuracy[0].path == campaign.datasets.performance.path


def test_all_mistakes_are_told_at_once_in_the_order_of_the_file() -> None:
    """Nobody has to correct a file one run at a time."""
    text = changed(
        ("campaign: demo", "campaign: no spaces"),
        ("name: some-model", "name: yes\n  nmae: x"),
        ("http://127.0.0.1:8000", "ftp://host"),
        ("name: box", "name: ${UNSET_NAME}\n  accelerators: none"),
        ("c_max: 64", "c_max: 0100\n  spares: 99\n  spares: 3"),
        ("[inference-endpoint]", "[]\n  overrides: {type: a, model_params: {name: b}}"),
    )
    starts = [message.split(" → ")[0] for message in mistakes(text)]
    assert starts == [
        "demo.yaml:1: campaign: no spaces",
        "demo.yaml:4: model.name: yes",
        "demo.yaml:5: model.nmae: unknown key",
        "demo.yaml:7: endpoint.urls: [ftp://host]",
        "demo.yaml:9: instance.name: ${UNSET_NAME}",
        "demo.yaml:10: instance.accelerators: none",
        "demo.yaml:19: curve.c_max: 0100",
        "demo.yaml:20: curve.spares: 99",
        "demo.yaml:21: curve.spares: given twice, first in line 20",
        "demo.yaml:25: client.command: []",
        "demo.yaml:26: client.overrides.type: a",
        "demo.yaml:26: client.overrides.model_params.name: b",
    ]


# --- Secrets -----------------------------------------------------------------------------------

LITERAL_KEYS = {
    "api_key": ("endpoint:", "endpoint:\n  api_key: {}"),
    "under a wrong section": ("model:", "model:\n  api_key: {}"),
    "at the top": ("model:", "token: {}\nmodel:"),
    "as a header": ("endpoint:", "endpoint:\n  headers: {{Authorization: {}}}"),
    "as the variable's name": ("endpoint:", "endpoint:\n  api_key_env: {}"),
    "as a variable's default": ("endpoint:", "endpoint:\n  api_key: ${{API_KEY:-{}}}"),
    "in a scorer": ("{eval_method: pass_at_1}", "{{extras: {{auth_token: {}}}}}"),
    "in a scorer's section of secrets": ("{eval_method: pass_at_1}", "{{secrets: {{any: [{}]}}}}"),
    "in the overrides": ("[inference-endpoint]", "[x]\n  overrides: {{endpoint: {{api_key: {}}}}}"),
    "in a URL": ("http://127.0.0.1:8000", "https://user:{}@host"),
    "in a URL of another kind": ("http://127.0.0.1:8000", "htps://user:{}@host"),
    "twice": ("endpoint:", "endpoint:\n  api_key: x\n  api_key: {}"),
    "as a wrong value": ("c_max: 64", "c_max: {}"),
    "as an alias": ("c_max: 64", "c_max: *{}"),
}
KEYS = (
    "sk-0123456789abcdef",
    "hf_abcdefghijklmnop",
    "A7" * 20,
    "Zm9vYmFy/Zm9v+mFyZm9vYmFyZm9vYmFyZm9v1A==",
)


@pytest.mark.parametrize("where", LITERAL_KEYS)
@pytest.mark.parametrize("key", KEYS)
def test_a_literal_key_is_refused_and_not_shown(where: str, key: str) -> None:
    old, new = LITERAL_KEYS[where]
    text = changed((old, new.format(key)))
    told = "\n".join(mistakes(text))
    assert key not in told
    assert key[4:16] not in told


@pytest.mark.parametrize("name", ["api_key", "token", "bearer", "password"])
def test_a_literal_key_comes_with_the_way_to_name_a_variable(name: str) -> None:
    assert mistakes(changed(("endpoint:", f"endpoint:\n  {name}: hunter2"))) == [
        f"demo.yaml:6: endpoint.{name}: (not shown) → keys do not go into the file; export"
        " ENDPOINT_API_KEY=… in the shell and write endpoint.api_key_env: ENDPOINT_API_KEY"
    ]


def test_the_variables_name_is_taken() -> None:
    text = changed(("endpoint:", "endpoint:\n  api_key_env: OPENAI_API_KEY"))
    assert load(text).endpoint.api_key_env == "OPENAI_API_KEY"


@pytest.mark.parametrize("name", ["not-a-name", "sk-1", "5"])
def test_what_can_be_no_variables_name_is_not_shown(name: str) -> None:
    (message,) = mistakes(changed(("endpoint:", f"endpoint:\n  api_key_env: {name}")))
    assert message.startswith("demo.yaml:6: endpoint.api_key_env: (not shown) → ")
    assert name not in message.removeprefix("demo.yaml:6")


@pytest.mark.parametrize("name", ["API_KEY", "HF_TOKEN", "PGPASSWORD", "MY_SECRET", "KEY"])
@pytest.mark.parametrize("form", ["${%s}", "${%s:-unset}", '"x${%s}"'])
def test_a_secret_variable_never_becomes_part_of_a_campaign(name: str, form: str) -> None:
    (message,) = mistakes(changed(("some-model", form % name)), {**ENV, name: "hunter2"})
    assert f"variable {name} looks like a secret" in message
    assert "endpoint.api_key_env" in message
    assert "hunter2" not in message


def test_a_tokenizers_variable_is_no_secret() -> None:
    text = changed(("some-model", "${TOKENIZER_NAME}-${MAX_TOKENS}"))
    assert load(text, {**ENV, "TOKENIZER_NAME": "t", "MAX_TOKENS": "5"}).model.name == "t-5"


def test_the_database_may_take_in_a_password_and_never_shows_it() -> None:
    text = changed(("client:", "records:\n  database: postgresql://me:${PGPASSWORD}@db/x\nclient:"))
    env = {**ENV, "PGPASSWORD": "hunter2"}
    assert load(text, env).records.database == "postgresql://me:hunter2@db/x"
    told = "\n".join(mistakes(text.replace("c_max: 64", "c_mx: 64"), env))
    assert "hunter2" not in told


def test_a_secret_can_be_left_to_the_client() -> None:
    """`$${NAME}` stays as `${NAME}`, which the client expands when it runs."""
    text = changed(("{eval_method: pass_at_1}", "{auth_token: '$${SERVICE_TOKEN}'}"))
    assert load(text).datasets.accuracy[0].scorer == {"auth_token": "${SERVICE_TOKEN}"}


# --- Variables ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "env", "meant"),
    [
        ("${LEVEL}", {"LEVEL": "128"}, 128),
        ("${LEVEL:-64}", {}, 64),
        ("${LEVEL:-64}", {"LEVEL": ""}, 64),
        ("${LEVEL:-64}", {"LEVEL": "128"}, 128),
        ("1${REST}", {"REST": "28"}, 128),
    ],
)
def test_an_unquoted_value_is_read_anew_after_expansion(
    written: str, env: dict[str, str], meant: int
) -> None:
    assert load(changed(("c_max: 64", f"c_max: {written}")), {**ENV, **env}).curve.c_max == meant


def test_a_quoted_value_stays_text() -> None:
    """As text a number is welcome in a name, not as a level."""
    env = {**ENV, "N": "64"}
    assert load(changed(("some-model", '"${N}"')), env).model.name == "64"
    assert mistakes(changed(("c_max: 64", 'c_max: "${N}"')), env) == [
        'demo.yaml:17: curve.c_max: "${N}" → must be a whole number'
    ]


def test_a_value_from_the_environment_is_as_suspect_as_any() -> None:
    """The file's own text is shown, never the variable's value."""
    assert mistakes(changed(("some-model", "${N}")), {**ENV, "N": "yes"}) == [
        'demo.yaml:4: model.name: ${N} → is read as a boolean; quote it ("yes") if text is meant,'
        " or write true"
    ]
    (message,) = mistakes(changed(("some-model", "${N}")), {**ENV, "N": "a\x00b"})
    assert message.endswith("holds the unprintable character U+0000; remove it")


def test_an_empty_variable_is_no_value() -> None:
    text = changed(("name: some-model", "name: m\n  tokenizer: ${TOKENIZER:-}"))
    assert load(text).model.tokenizer is None


def test_expansion_happens_once_and_in_values_only() -> None:
    text = changed(
        ("some-model", "$${A}-$B-${A}"),
        ("{eval_method: pass_at_1}", "{'${A}': '${A}'}"),
    )
    campaign = load(text, {**ENV, "A": "${B}", "B": "b"})
    assert campaign.model.name == "${A}-$B-${B}"
    assert campaign.datasets.accuracy[0].scorer == {"${A}": "${B}"}


# --- Paths -------------------------------------------------------------------------------------


def _path_fields(section: type[Section], prefix: tuple[str | int, ...] = ()) -> set[Any]:
    found: set[Any] = set()
    for key, value in section.model_fields.items():
        kinds = (value.annotation, *get_args(value.annotation))
        if Path in kinds:
            found.add((*prefix, key))
        for kind in kinds:
            if isinstance(kind, type) and issubclass(kind, Section):
                index = (-1,) if kind in get_args(value.annotation) and ... in kinds else ()
                found |= _path_fields(kind, (*prefix, key, *index))
    return found


def test_every_path_of_the_model_is_resolved() -> None:
    """A new field of type Path must be added to `PATHS`."""
    assert set(PATHS) == _path_fields(Campaign)


def test_paths_start_at_the_file_and_at_home() -> None:
    text = changed(
        ("data/performance.jsonl", "~/p.jsonl"),
        ("data/accuracy.jsonl", "/a.jsonl"),
        ("[inference-endpoint]", "[./bin/client, ~/x, a/b, ~other, --project=~/y]"),
        (
            "seeds:",
            "records: {folder: d, runs: ../r, database: 'sqlite:///x.db'}\nseeds:\n"
            "  registry: r.yaml",
        ),
    )
    campaign = load(text)
    assert str(campaign.datasets.performance.path) == "/home/user/p.jsonl"
    assert str(campaign.datasets.accuracy[0].path) == "/a.jsonl"
    assert campaign.client.command == (
        "/files/bin/client",
        "/home/user/x",
        "a/b",
        "~other",
        "--project=~/y",
    )
    assert str(campaign.records.folder) == "/files/d"
    assert str(campaign.records.runs) == "/files/../r"
    assert campaign.records.database == "sqlite:////files/x.db"
    assert str(campaign.seeds.registry) == "/files/r.yaml"


def test_the_data_folder_lies_beside_the_file_by_default() -> None:
    beside = Path("/files/pareto-data")
    assert load(GOOD).records.folder == beside
    assert load(GOOD + "records: {runs: r}\n").records.folder == beside


def test_a_detector_is_a_command_like_the_clients() -> None:
    text = changed(
        ("[inference-endpoint]", "[inference-endpoint]\n  steady_state_command: [./detect, ~/x, y]")
    )
    assert load(text).client.steady_state_command == ("/files/detect", "/home/user/x", "y")


@pytest.mark.parametrize("command", ["uv", "~/bin/uv", "/usr/bin/uv"])
def test_a_program_without_a_folder_is_looked_up(command: str) -> None:
    (program,) = load(changed(("inference-endpoint", command))).client.command
    assert program == command.replace("~", "/home/user")


@pytest.mark.parametrize(
    ("tokenizer", "meant"),
    [
        ("org/name", "org/name"),
        ("known/folder", "/files/known/folder"),
        ("./org/name", "/files/org/name"),
        ("../name", "/files/../name"),
        ("~/name", "/home/user/name"),
        ("/abs/name", "/abs/name"),
        ('""', ""),
    ],
)
def test_a_tokenizer_is_a_folder_or_a_hub_name(tokenizer: str, meant: str) -> None:
    text = changed(("name: some-model", f"name: m\n  tokenizer: {tokenizer}"))
    campaign = load(text, is_folder=lambda path: path == Path("/files/known/folder"))
    assert campaign.model.tokenizer == meant


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:////abs/x.db",
        "sqlite:///:memory:",
        "sqlite://",
        "postgresql://h/x",
        "sqlite:///file:x",
    ],
)
def test_other_database_urls_stay_as_they_are(url: str) -> None:
    assert load(GOOD + f"records: {{database: '{url}'}}\n").records.database == url


def test_a_home_folder_is_needed_only_for_a_tilde() -> None:
    assert load(GOOD, {}) == load(GOOD)
    assert mistakes(changed(("data/performance.jsonl", "~/p.jsonl")), {}) == [
        "demo.yaml:11: datasets.performance.path: ~/p.jsonl → HOME is not set, so ~ leads nowhere;"
        " write the folder out"
    ]


def test_sections_of_the_wrong_kind_have_no_paths() -> None:
    """Looking for paths must not trip over what the model is about to refuse."""
    text = changed(("datasets:\n  performance:\n    path: data/performance.jsonl\n", "datasets:\n"))
    assert any("datasets.performance: missing" in line for line in mistakes(text + "records: 5\n"))


# --- Whole files -------------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted(CAMPAIGNS.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_example_loads_and_has_a_legal_plan(path: Path) -> None:
    """The examples are what users start from."""
    campaign = load_campaign(path.read_bytes(), source=path.name, folder=CAMPAIGNS, env=ENV)
    assert campaign.campaign == path.stem
    plan = make_plan(campaign, campaign.datasets.performance.rows)
    assert sum(point.accuracy for point in plan.points) >= 4


def test_the_rehearsal_is_seven_points_four_of_them_with_accuracy() -> None:
    path = CAMPAIGNS / "rehearsal.yaml"
    campaign = load_campaign(path.read_bytes(), source=path.name, folder=CAMPAIGNS, env=ENV)
    plan = make_plan(campaign, 64)
    assert len(plan.points) == 7
    assert sum(point.accuracy for point in plan.points) == 4
    assert plan.time_scale == 0.008


def accepted_or_refused(content: str | bytes) -> None:
    """Loading ends with a campaign or with `InputError`, whose message is printable text."""
    told = "demo.yaml:"
    try:
        load(content)
    except InputError as error:
        told = str(error)
    assert told.startswith("demo.yaml:")
    assert all(line.isprintable() for line in told.split("\n"))


@given(st.binary(max_size=200))
@example(b"\xff\xfe")
@example(b"%YAML 1.99999999999\n---\n")
@settings(deadline=None, max_examples=150)
def test_bytes_never_crash_the_loader(content: bytes) -> None:
    accepted_or_refused(content)


@given(st.text(alphabet="aky01:-_.,{}[]&*!|>'\"%@#?~<=$ \n\t\\\x85\u2028\ud800", max_size=60))
@settings(deadline=None, max_examples=150)
def test_yaml_like_text_never_crashes_the_loader(content: str) -> None:
    accepted_or_refused(content)


VALUES = st.recursive(
    st.sampled_from(
        ["yes", "017", "~", "1", "-1", "0.5", ".nan", "x", "'1'", "''", "${A}", "=", "&a b"]
    ),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]")
        | st.dictionaries(
            st.sampled_from(["a", "1", "min", "path", "token"]), inner, max_size=2
        ).map(
            lambda items: "{" + ", ".join(f"{key}: {value}" for key, value in items.items()) + "}"
        )
    ),
    max_leaves=4,
)


@given(st.sampled_from(range(GOOD.count("\n"))), VALUES)
@settings(deadline=None, max_examples=150)
def test_any_value_anywhere_is_accepted_or_refused(line: int, value: str) -> None:
    lines = GOOD.split("\n")
    lines[line] = lines[line].partition(":")[0] + ": " + value
    accepted_or_refused("\n".join(lines))
