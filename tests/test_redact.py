"""Secrets are recognised by name, shape or value, and other text stays unchanged."""

import json
from pathlib import Path

import pytest

import rewardkit
from rewardkit import redact
from rewardkit.redact import HIDDEN, Redactor, is_secret_name, redactor_of
from tests.tables import every

CANARY = "Zq7canaryValue42"
RELEASES = sorted((Path(rewardkit.__file__).parent / "launch/verl/release_keys").glob("*.json"))


@pytest.mark.parametrize(
    "name",
    """
    OPENAI_KEY SECRET_KEY PRIVATE_KEY AUTHORIZATION GOOGLE_APPLICATION_CREDENTIALS API_TOKENS
    GH_PAT WANDB_API_KEY HF_TOKEN api_key apiKey X-Api-Key Proxy-Authorization --api-key
    --hf-token token a.env_vars.WANDB_API_KEY client_secret DB_PWD AWS_ACCESS_KEY_ID
    AWS_SECRET_ACCESS_KEY OBS_AK access_token auth_token password trainer.wandb.password
    secrets.wandb hub_token MYSQL_PWD HUGGING_FACE_HUB_TOKEN DEEPSEEK_KEY gh_pat wandb_key
    BASIC_AUTH slack_webhook Cookie
    """.split(),
)
def test_names_of_secrets_are_recognised(name):
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    """
    tokenizer max_tokens total_tokens key prompt_key response_key image_key pad_token
    eos_token_id author passes ppo_max_token_len_per_gpu monkey PWD OLDPWD RAY_AUTH_TOKEN_PATH
    RAY_AUTH_MODE KEY tokens keys PROMPT_KEY reward_fn_key num_tokens MAX_TOKENS path pattern sk
    task_key pass bypass TOKENIZERS_PARALLELISM eos_token stop_tokens max_num_batched_tokens
    tokenizer_path use_auth HF_HOME data.train_files trainer.total_epochs
    """.split(),
)
def test_other_names_are_not_secret(name):
    assert not is_secret_name(name)


def test_no_key_of_any_release_of_verl_looks_like_a_secret():
    """The value of a flagged key would be missing from commands."""

    def keys(value):
        if isinstance(value, dict):
            for name, item in value.items():
                yield name
                yield from keys(item)
        elif isinstance(value, list):
            for item in value:
                yield from keys(item) if isinstance(item, (dict, list)) else [item]

    listed = {key for path in RELEASES for key in keys(json.loads(path.read_text()))}
    assert len(listed) > 1000
    assert [key for key in listed if isinstance(key, str) and is_secret_name(key)] == []


@every("value", ["", "${HF_TOKEN}", "$HF_TOKEN", "$(cat key)", "EMPTY", "None", 1])
def test_references_and_numbers_are_not_secret(value):
    assert not redact.is_secret_value("HF_TOKEN", value)


@pytest.mark.parametrize(
    "text",
    [
        f"export WANDB_API_KEY={CANARY}", f"WANDB_API_KEY='{CANARY}' python3 x",
        f"--api-key {CANARY}", f"--api-key={CANARY}", f"http://user:{CANARY}@proxy:80/x",
        f"https://{CANARY}@github.com/x", f"redis://:{CANARY}@host",
        f"+a.env_vars.WANDB_API_KEY={CANARY}", f'{{"api_key": "{CANARY}"}}',
        f"{{'WANDB_API_KEY': '{CANARY}', 'x': 1}}", f"Authorization: Bearer {CANARY}",
        f"https://judge.example/v1?model=m&key={CANARY}", f"curl -H 'X-Api-Key: {CANARY}'",
        f"a={{api_key:{CANARY},x:1}}", f"https://h/x?api_key={CANARY}&y=1",
        f"(pid=1) WANDB_API_KEY: {CANARY}",
        f"-----BEGIN RSA PRIVATE KEY-----\n{CANARY}\n-----END RSA PRIVATE KEY-----",
    ],
)  # fmt: skip
def test_a_secret_in_a_text_is_hidden(text):
    hidden = Redactor().text(text)
    assert CANARY not in hidden
    assert HIDDEN in hidden


@every(
    "secret",
    [
        "sk-proj-abcDEF1234567890abcd", "hf_" + "aB3" * 10, "ghp_" + "aB3" * 12,
        "github_pat_" + "aB3" * 10, "AKIA" + "A1B2" * 4, "xoxb-123456789012-abcdef",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTYifQ.abc",
    ],
)  # fmt: skip
def test_a_secret_is_recognised_by_its_shape(secret):
    assert Redactor().text(f"it is {secret}, isn't it") == f"it is {HIDDEN}, isn't it"


@every(
    "text",
    [
        "max_tokens=4096 ppo_max_token_len_per_gpu=8192",
        "looks like a secret, and is not in the recipe",
        "token: the next one; Basic information here; the key=value form",
        "data.prompt_key=prompt eos_token=</s> pad_token: '<pad>'",
        "git clone ssh://git@github.com/x && cd user@host:/path",
        "WANDB_API_KEY=$WANDB_API_KEY api_key=EMPTY HF_TOKEN=${HF_TOKEN}",
        "step:1 - response_length/mean:55.0 - perf/tokens_per_sec:1234.5",
        "sha 0123456789abcdef0123456789abcdef01234567 task-sk-learn-disk-usage",
        "http://head:8265 MASTER_PORT: 29500",
    ],
)
def test_other_text_stays_unchanged(text):
    assert Redactor().text(text) == text


def test_a_value_seen_under_a_secret_s_name_is_hidden_under_every_other():
    tree = {"env": {"OPENAI_KEY": CANARY}, "note": [f"x{CANARY}y"], "n": 3}
    hidden = {"env": {"OPENAI_KEY": HIDDEN}, "note": [f"x{HIDDEN}y"], "n": 3}
    assert Redactor().tree(tree) == hidden
    environment = {"MY_PASSWORD": CANARY, "HOME": "/root"}
    known = redactor_of(environment, ["--base-url", "http://u:p4ssw0rd@h"])
    assert known.text(f"{CANARY} p4ssw0rd /root") == f"{HIDDEN} {HIDDEN} /root"


def test_short_values_and_paths_are_hidden_only_under_their_own_name():
    secrets = {"password": "abc", "GOOGLE_APPLICATION_CREDENTIALS": "/a/b.json"}
    others = {"x": "abc abcd", "y": "/a/b.json"}
    assert Redactor().tree(secrets | others) == dict.fromkeys(secrets, HIDDEN) | others


def test_a_text_adds_nothing_to_what_is_remembered():
    """A reward's exceptions quote responses: those decide neither what is hidden nor how long it takes."""
    redactor = Redactor()
    assert redactor.text("no number in 'password=hunter22'") == "no number in 'password=***'"
    assert redactor.text("the hunter22 is 4") == "the hunter22 is 4"


def test_known_secrets_are_hidden_in_data_and_what_looks_like_one_is_not():
    redactor = redactor_of({"MY_TOKEN": CANARY, "PIN_TOKEN": "123456"})
    response = "password=hunter22 123456"
    assert redactor.data(f"{response} {CANARY}") == f"{response} {HIDDEN}"


@pytest.mark.parametrize(
    ("name", "value", "variable"),
    [
        ("api_key", CANARY, "API_KEY"),
        ("judge-key.api_key", "of-the-environment", "MY_JUDGE"),
        ("base_url", f"http://h/v1?key={CANARY}", "BASE_URL"),
        ("max_tokens", 512, ""),
        ("api_key_env", "OPENAI_API_KEY", ""),
    ],
)
def test_a_secret_option_has_a_variable_that_replaces_it(monkeypatch, name, value, variable):
    monkeypatch.setenv("MY_JUDGE", "of-the-environment")
    assert redact.variable_of(name, value) == variable
