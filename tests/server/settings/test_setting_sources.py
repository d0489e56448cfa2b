"""Settings: one name for flag, variable and key; a fixed order of precedence; secrets never shown."""

import os
import re
import tomllib
from pathlib import Path

import pytest

from gradewire_server.settings.server import Settings, every_setting, unknown_variables
from gradewire_server.settings.setting import HIDDEN, SettingsError, all_setting_fields, mask_url

DOCUMENT = Path(__file__).parents[3] / "docs" / "reference" / "settings.md"


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("GRADEWIRE_"):
            monkeypatch.delenv(name)


def test_flag_over_variable_over_file_over_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "gradewire.toml"
    path.write_text('port = 1\nhttp_port = 1\ndrain_s = 1\npreload = ["a", "b"]\n')
    monkeypatch.setenv("GRADEWIRE_PORT", "2")
    monkeypatch.setenv("GRADEWIRE_HTTP_PORT", "2")
    settings = Settings.load(config=path, port="3", drain_s=None)
    assert (settings.listen.port, settings.listen.http_port) == (3, 2)
    assert (settings.shutdown.drain_s, settings.shutdown.grace_s) == (1, 30)
    assert settings.engine.preload == ("a", "b")
    monkeypatch.setenv("GRADEWIRE_CONFIG", str(path))
    assert Settings.load().shutdown.drain_s == 1


@pytest.mark.parametrize("info", every_setting(), ids=lambda info: info.name)
def test_every_setting_has_one_name_everywhere(info: object, monkeypatch: pytest.MonkeyPatch) -> None:
    samples = {
        "text": "x",
        "path": "/x",
        "integer": "7",
        "number": "0.5",
        "bytes": "64MiB",
        "boolean": "true",
        "list": "a,b",
        "choice": "debug",
    }
    name, kind = info.name, info.kind  # type: ignore[attr-defined]
    own = {
        "backend": "triton",
        "device": "cpu",
        "redis_url": "redis://h",
        "window_choice": "bf16",
        "max_deadline_s": "700",
        "triton_url": "h:1",
        "judge_backend": "none",
        "judge_device": "cuda:1",
        "judge_assistant_prefill": "no",
        "judge_sees_images": "yes",
        "otlp_endpoint": "http://127.0.0.1:4317",
        "rewards_reads": "correct",
        "rewards_extraction": "boxed",
        "rewards_policy": "hold",
        "rewards_uncertain": "judge",
        "auth_also": "health,metrics",
        "judge_prices": "0.15,0.6",
        "redis_mac_key": "0123456789abcdef",
    }
    given = own.get(name, samples[kind])
    partners = {"tls_cert": {"tls_key": "/k"}, "tls_key": {"tls_cert": "/c"}, "config": {}}.get(name, {})
    if name in {"tls_client_ca", "http_tls"}:
        partners = {"tls_cert": "/c", "tls_key": "/k"}
    if name == "auth_also":
        partners = {"auth_tokens": "x"}
    if name == "config":
        given = os.devnull
    by_flag = Settings.load(**{name: given}, **partners)
    monkeypatch.setenv(info.variable, given)  # type: ignore[attr-defined]
    by_variable = Settings.load(**partners)
    assert by_flag.given[name] == by_variable.given[name]
    assert info.variable == f"GRADEWIRE_{name.upper()}"  # type: ignore[attr-defined]
    assert info.flag == f"--{name.replace('_', '-')}"  # type: ignore[attr-defined]
    assert info.help.endswith(".")  # type: ignore[attr-defined]


def test_bytes_are_read_with_units() -> None:
    assert Settings.load(memory_max_bytes="64MiB").engine.cache.memory_max_bytes == 64 << 20


def test_blank_switches_a_store_off() -> None:
    settings = Settings.load(disk_directory="", redis_url="")
    assert settings.engine.cache.disk is None
    assert settings.engine.cache.redis is None


def test_the_engine_gets_what_is_set(tmp_path: Path) -> None:
    config = Settings.load(
        model_repository=tmp_path,
        default_model="m",
        workers=3,
        namespace="n",
        disk_directory=tmp_path / "d",
        disk_max_bytes="1MiB",
        redis_url="redis://h",
        redis_timeout_s=0.5,
        prediction_ttl_s=60,
    ).engine
    assert (config.model_repository, config.default_model, config.compute.workers) == (tmp_path, "m", 3)
    assert config.cache.disk is not None
    assert (config.cache.disk.directory, config.cache.disk.max_bytes) == (tmp_path / "d", 1 << 20)
    assert config.cache.redis is not None
    assert (config.cache.redis.url, config.cache.redis.timeout_s) == ("redis://h", 0.5)
    assert (config.cache.namespace, config.cache.prediction_ttl_s) == ("n", 60)


def test_the_engine_is_told_where_triton_is(tmp_path: Path) -> None:
    assert Settings.load().engine.triton is None
    triton = Settings.load(
        backend="triton",
        triton_url="grpcs://host:8001",
        triton_tls_ca=tmp_path / "ca",
        triton_token="hunter2",  # noqa: S106 - nothing is behind it
        triton_max_in_flight=5,
        triton_repair=False,
    ).engine.triton
    assert triton is not None
    assert (triton.address, triton.tls, triton.tls_ca, triton.token) == ("host:8001", True, tmp_path / "ca", "hunter2")
    assert (triton.max_in_flight, triton.repair) == (5, False)
    assert "hunter2" not in repr(triton)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"backend": "triton", "triton_url": "http://host:8001"}, "triton_url must be HOST:PORT"),
        ({"backend": "triton", "triton_url": "host"}, "triton_url must be HOST:PORT"),
        ({"backend": "triton", "triton_url": "host:0"}, "triton_url must be HOST:PORT"),
        ({"backend": "triton", "triton_url": "host:65536"}, "triton_url must be HOST:PORT"),
        ({"backend": "triton", "triton_url": " host:8001"}, "triton_url must be HOST:PORT"),
        ({"backend": "triton", "triton_url": "grpcs://host"}, "triton_url must be HOST:PORT"),
        ({"backend": "triton", "triton_tls_ca": "/c"}, "to begin with grpcs://"),
        (
            {"backend": "triton", "triton_url": "grpcs://host:8001", "triton_tls_cert": "/c"},
            "set both triton_tls_cert and",
        ),
        ({"judge_backend": "none", "preload": "judge"}, 'preload: "judge" needs a judge'),
        (
            {"judge_backend": "triton", "judge_url": "grpcs://host", "judge_remote_model": "m"},
            "judge_url must be HOST:PORT",
        ),
        ({"backend": "cloud"}, "backend: .*--backend"),
        ({"port": "x"}, r"port: .*--port.*GRADEWIRE_PORT"),
        ({"port": 70000}, "port: "),
        ({"nonsense": 1}, "nonsense: unknown setting"),
        ({"drain_s": "nan"}, "drain_s: "),
        ({"otlp_endpoint": "localhost:4317"}, "otlp_endpoint 'localhost:4317' is not a URL: use http://HOST:PORT"),
        ({"tls_cert": "/c"}, "set both tls_cert and tls_key, or neither"),
        ({"tls_client_ca": "/c"}, "tls_client_ca needs"),
        ({"http_tls": True}, "http_tls needs"),
        ({"redis_url": "http://user:hunter2@h"}, "Redis URL must begin"),
        ({"namespace": "a b"}, "namespace"),
        ({"config": "/nowhere.toml"}, "config: cannot read /nowhere.toml"),
        ({"log_level": "loud"}, "log_level: "),
        ({"auth_tokens": ""}, "auth_tokens: contains an empty token"),
        ({"auth_tokens": " "}, "auth_tokens: contains an empty token"),
        ({"auth_tokens": ","}, "auth_tokens: contains an empty token"),
        ({"auth_tokens": " ,\t, "}, "auth_tokens: contains an empty token"),
        ({"auth_tokens": [""]}, "auth_tokens: contains an empty token"),
        ({"auth_tokens": ["hunter2", " "]}, "auth_tokens: contains an empty token"),
        ({"auth_tokens": ["hunter2 hunter2"]}, "auth_tokens: a token must be 1 to 1024 printable"),
        ({"auth_tokens": ["hunter2é"]}, "auth_tokens: a token must be 1 to 1024 printable"),
        ({"auth_also": "metrics"}, "auth_also needs tokens: set auth_tokens or auth_tokens_file"),
        ({"auth_also": "health, page"}, "auth_also: "),
    ],
)
def test_a_wrong_value_is_one_line_that_names_it_and_shows_no_secret(values: dict[str, object], message: str) -> None:
    with pytest.raises(SettingsError, match=message) as caught:
        Settings.load(**values)
    assert "\n" not in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_an_unknown_key_in_the_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "gradewire.toml"
    path.write_text("prot = 1\n")
    with pytest.raises(SettingsError, match="unknown keys: prot"):
        Settings.load(config=path)


@pytest.mark.parametrize("written", ['[""]', '""', '["right", ""]', '","', '" "'])
def test_an_empty_token_in_the_file_is_refused(tmp_path: Path, written: str) -> None:
    path = tmp_path / "gradewire.toml"
    path.write_text(f"auth_tokens = {written}\n")
    with pytest.raises(SettingsError, match="auth_tokens: contains an empty token"):
        Settings.load(config=path)


def test_an_empty_variable_for_tokens_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADEWIRE_AUTH_TOKENS", "")
    with pytest.raises(SettingsError, match="auth_tokens: contains an empty token"):
        Settings.load()


def test_no_tokens_at_all_are_said_by_an_empty_list(tmp_path: Path) -> None:
    path = tmp_path / "gradewire.toml"
    path.write_text("auth_tokens = []\n")
    assert Settings.load(config=path).listen.is_open


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"memory_limit": "-1"}, "memory_limit: must be a size, such as 64MiB or 2GB (flag --memory-limit"),
        ({"memory_limit": "1 XB"}, "memory_limit: has an unknown unit"),
        ({"judge_prices": 0.15}, "judge_prices: must be a list, or a string with commas between the items"),
        ({"port": "a"}, "port: must be a whole number"),
        ({"drain_s": "soon"}, "drain_s: must be a number"),
        ({"http_tls": "perhaps"}, "http_tls: must be true or false"),
        ({"device": "tpu"}, "device: must be auto, cpu, cuda or cuda:N"),
    ],
)
def test_messages_are_the_projects_own(values: dict[str, object], message: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(message)):
        Settings.load(**values)


def test_variables_that_are_no_settings_are_found() -> None:
    environment = {"GRADEWIRE_AUTH_HTTP": "1", "GRADEWIRE_PROT": "1", "GRADEWIRE_PORT": "1", "GRADEWIRE_TOKEN": "x"}
    assert unknown_variables(environment | {"PATH": "/"}) == ["GRADEWIRE_AUTH_HTTP", "GRADEWIRE_PROT"]


def test_secrets_print_as_stars_and_the_rest_reads_back(tmp_path: Path) -> None:
    settings = Settings.load(
        redis_url="redis://user:hunter2@h:1/0",
        auth_tokens="hunter2,hunter3",
        triton_token="part:hunter4",  # noqa: S106 - nothing is behind it
        otlp_endpoint="http://user:hunter5@h:4317",
        judge_url="https://user:hunter6@h/v1",
        port=4,
        memory_max_bytes="64MiB",
    )
    for shown in (settings.to_toml(), repr(settings), str(settings), str(settings.printable())):
        assert "hunter" not in shown
    values = tomllib.loads(settings.to_toml())
    assert values["redis_url"] == "redis://user:*****@h:1/0"
    assert values["auth_tokens"] == ["*****", "*****"]
    assert values["triton_token"] == "*****"  # noqa: S105 - the stars
    assert set(values) == {info.name for info in every_setting()} - {"config"}
    path = tmp_path / "gradewire.toml"
    path.write_text(settings.to_toml())
    again = Settings.load(config=path)
    hidden = {"redis_url": None, "auth_tokens": (), "triton_token": "", "config": None}
    hidden |= {"otlp_endpoint": "", "judge_url": ""}
    assert {**again.given, **hidden} == {**settings.given, **hidden}


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://h:1/0", "redis://h:1/0"),
        ("redis://:pw@h", "redis://:*****@h"),
        ("rediss://u:p@w@h", "rediss://u:*****@h"),
        ("unix:///run/redis.sock?db=1", "unix:///run/redis.sock?db=1"),
        ("unix://u:pw@/run/redis.sock", "unix://u:*****@/run/redis.sock"),
        ("redis://h?password=pw", "redis://*****"),
        ("pw", "*****"),
        ("redis://[pw", "*****"),
    ],
)
def test_passwords_of_urls_are_masked(url: str, shown: str) -> None:
    assert mask_url(url) == shown


def test_documentation_names_every_setting_with_its_default() -> None:
    text = DOCUMENT.read_text()
    for info in every_setting():
        default = "" if info.name == "disk_directory" else info.default
        row = f"| `{info.name}` | {info.kind} | {f'`{default}`' if default else ''} | {info.help} | {info.when} |\n"
        assert row in text, info.name


def test_the_key_of_redis_is_never_blank_short_or_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings.load(redis_url="redis://h", redis_mac_key="0123456789abcdef")
    assert "0123456789abcdef" not in settings.to_toml() + repr(settings)
    for blank in ("", "   "):
        with pytest.raises(SettingsError, match="redis_mac_key is blank, which would switch the MAC off"):
            Settings.load(redis_url="redis://h", redis_mac_key=blank)
        with monkeypatch.context() as variables:
            variables.setenv("GRADEWIRE_REDIS_MAC_KEY", blank)
            with pytest.raises(SettingsError, match="redis_mac_key is blank"):
                Settings.load(redis_url="redis://h")
    with pytest.raises(SettingsError, match="redis_mac_key must have 16 or more bytes, not 15") as caught:
        Settings.load(redis_url="redis://h", redis_mac_key=" 0123456789abcde ")
    assert "0123456789abcde" not in str(caught.value)


def test_a_judge_runs_where_it_is_told_to() -> None:
    here = Settings.load(judge_threads=2, judge_repository="/models").engine.judge
    assert (here.backend, here.remote) == ("embedded", None)
    assert here.embedded is not None
    assert (here.embedded.threads, here.embedded.repository) == (2, Path("/models"))
    beside = Settings.load(model_repository="/data/models").engine.judge.embedded
    assert beside is not None
    assert beside.repository == Path("/data/judges")
    both = Settings.load(model_repository="/data/models", judge_repository="/models").engine.judge.embedded
    assert both is not None
    assert both.repository == Path("/models")
    none = Settings.load(judge_backend="none").engine.judge
    assert (none.backend, none.embedded, none.remote) == ("none", None, None)
    key = "secret-key"
    away = Settings.load(judge_backend="openai", judge_url="http://h/v1", judge_remote_model="m", judge_token=key)
    remote = away.engine.judge.remote
    assert remote is not None
    assert (remote.url, remote.model, remote.token) == ("http://h/v1", "m", key)
    assert key not in away.to_toml() + repr(away) + repr(away.engine)


DECISIONS = {"judge_backend": "decisions", "judge_url": "http://h/v1", "judge_remote_model": "m"}


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"judge_backend": "openai", "judge_remote_model": "m"}, "judge_url"),
        ({"judge_backend": "triton", "judge_url": "h:1"}, "judge_remote_model"),
        (
            {"judge_backend": "openai", "judge_url": "http://h", "judge_remote_model": "m", "judge_model": "n"},
            "judge_model and judge_remote_model",
        ),
        ({"judge_backend": "decisions", "judge_remote_model": "m"}, "judge_backend decisions needs judge_url"),
        ({"judge_backend": "decisions", "judge_url": "http://h/v1"}, "judge_remote_model"),
        ({**DECISIONS, "judge_reasoning_tokens": "9"}, "judge_reasoning_tokens needs judge_backend openai"),
        ({**DECISIONS, "judge_assistant_prefill": "yes"}, "judge_assistant_prefill needs judge_backend openai"),
        ({"judge_prices": "1,-1"}, "judge_prices"),
        ({"judge_prices": "1"}, "judge_prices"),
        ({"judge_backend": "somewhere"}, "judge_backend"),
    ],
)
def test_a_judge_that_cannot_be_reached_so_is_refused_at_once(settings: dict[str, str], named: str) -> None:
    with pytest.raises(SettingsError, match=named):
        Settings.load(**settings)


def test_groups_show_no_secret_either() -> None:
    for field in all_setting_fields(Settings).values():
        may_contain_password = field.name in {"otlp_endpoint", "judge_url"}
        assert field.field.repr is not (HIDDEN in field.field.metadata or may_contain_password), field.name
