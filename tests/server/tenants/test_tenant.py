"""What a tokens file says, and that every error names table and key and shows no token."""

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_server.domain.caller import Scope
from gradewire_server.tenants.tenant import USUAL_SCOPES, Tenant, TokensFileError, read_tenants

SECRET = "hunter2-hunter2"  # noqa: S105 - nothing is behind it
DIGEST = sha256(SECRET.encode()).digest()


def test_a_tenant_with_a_token_alone_gets_what_is_usual() -> None:
    (tenant,) = read_tenants(f'[a]\ntoken = "{SECRET}"')
    assert tenant == Tenant("a", "a", (DIGEST,), USUAL_SCOPES, 1.0, None)
    assert Scope.ADMIN not in tenant.scopes, "what tells of other tenants is given by name alone"


def test_every_key() -> None:
    (tenant, other) = read_tenants(
        f"""
        [a]
        namespace = "shared"
        token_sha256 = ["{DIGEST.hex().upper()}", "{sha256(b"next").hexdigest()}"]
        token = "old"
        scopes = ["score", "admin"]
        weight = 2.5
        quota_tokens_per_minute = 100
        [b]
        token = ["x", "y", "x"]
        """
    )
    digests = tuple(sha256(token).digest() for token in (b"old", SECRET.encode(), b"next"))
    assert tenant == Tenant("a", "shared", digests, frozenset({Scope.SCORE, Scope.ADMIN}), 2.5, 100)
    assert len(other.token_sha256) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no tenants"),
        ("# nothing", "has no tenants"),
        ("[a", "is not valid TOML"),
        ("a = 1", "a: must be a table"),
        (f'token = "{SECRET}"', "token: must be a table"),
        ('["a b"]\ntoken = "x"', r"\['a b'\]: a tenant's name"),
        ('[""]\ntoken = "x"', "a tenant's name"),
        ('["a:b"]\ntoken = "x"', "a tenant's name"),
        ("[a]", r"\[a\] token: is missing"),
        ('[a]\ntoken = ""', r"\[a\] token: a token must be 1 to 1024"),
        ('[a]\ntoken = " "', r"\[a\] token: a token must be 1 to 1024"),
        ('[a]\ntoken = ["x", ""]', r"\[a\] token: a token must be 1 to 1024"),
        (f'[a]\ntoken = "{SECRET} {SECRET}"', r"\[a\] token: a token must be 1 to 1024"),
        ('[a]\ntoken = "é"', r"\[a\] token: a token must be 1 to 1024"),
        ("[a]\ntoken = []", r"\[a\] token: must be a string, or a list"),
        ("[a]\ntoken = 1", r"\[a\] token: must be a string, or a list"),
        (f'[a]\ntoken_sha256 = "{SECRET}"', r"\[a\] token_sha256: must be the SHA-256"),
        (f'[a]\ntoken_sha256 = "{sha256(b"").hexdigest()}"', r"\[a\] token_sha256: is the digest of an empty"),
        ('[a]\ntoken = "x"\nnamespace = ""', r"\[a\] namespace: must be 1 to 64"),
        ('[a]\ntoken = "x"\nnamespace = "b:c"', r"\[a\] namespace: must be 1 to 64"),
        ('[a]\ntoken = "x"\nscopes = []', r"\[a\] scopes: must be a list"),
        ('[a]\ntoken = "x"\nscopes = "score"', r"\[a\] scopes: must be a list"),
        ('[a]\ntoken = "x"\nscopes = ["root"]', r"\[a\] scopes: must be a list .* score, prepare, judge, admin"),
        ('[a]\ntoken = "x"\nscopes = [["score"]]', r"\[a\] scopes: must be a list"),
        ('[a]\ntoken = "x"\nweight = 0', r"\[a\] weight: must be a number above 0"),
        ('[a]\ntoken = "x"\nweight = nan', r"\[a\] weight: must be a number above 0"),
        ('[a]\ntoken = "x"\nweight = true', r"\[a\] weight: must be a number above 0"),
        ('[a]\ntoken = "x"\nquota_tokens_per_minute = 0', r"\[a\] quota_tokens_per_minute: must be a whole"),
        ('[a]\ntoken = "x"\nquota_tokens_per_minute = 1.5', r"\[a\] quota_tokens_per_minute: must be a whole"),
        ('[a]\ntoken = "x"\nquota = 5', r"\[a\] 'quota': unknown key"),
        (f'[a]\ntoken = "{SECRET}"\n[b]\ntoken = "{SECRET}"', r"\[b\] token: \[a\] has the same token"),
        (f'[a]\ntoken = "{SECRET}"\n[b]\ntoken_sha256 = "{DIGEST.hex()}"', r"\[b\] token: \[a\] has the same token"),
        ("a = " + "[" * 5000, "is not valid TOML"),
    ],
)
def test_a_wrong_file_is_one_line_that_names_table_and_key_and_shows_no_token(text: str, message: str) -> None:
    with pytest.raises(TokensFileError, match=message) as caught:
        read_tenants(text)
    assert "\n" not in str(caught.value)
    assert SECRET not in str(caught.value)


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        tenants = read_tenants(text)
    except TokensFileError:
        return
    assert tenants
    assert all(tenant.token_sha256 for tenant in tenants)


_VALUES = st.recursive(
    st.text(max_size=8) | st.integers() | st.floats() | st.booleans() | st.sampled_from(["score", "a" * 64]),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)


@given(
    st.dictionaries(
        st.sampled_from(["a", "b", "x.y"]),
        st.dictionaries(
            st.sampled_from(["token", "token_sha256", "scopes", "weight", "quota_tokens_per_minute", "namespace"]),
            _VALUES,
            max_size=6,
        ),
        min_size=1,
        max_size=3,
    )
)
def test_any_values_are_read_within_their_bounds_or_refused_by_name(
    tables: dict[str, dict[str, object]],
) -> None:
    text = "".join(
        f'["{name}"]\n' + "".join(f"{key} = {_toml(value)}\n" for key, value in table.items())
        for name, table in tables.items()
    )
    try:
        tenants = read_tenants(text)
    except TokensFileError as error:
        named = any(f"[{name}]" in str(error) for name in tables)
        tenants = ()
    else:
        named = [tenant.name for tenant in tenants] == list(tables)
    assert named
    for tenant in tenants:
        assert all(len(digest) == 32 for digest in tenant.token_sha256)
        assert tenant.scopes
        assert 0 < tenant.weight <= 1000
        assert tenant.quota_tokens_per_minute is None or tenant.quota_tokens_per_minute > 0


def _toml(value: object) -> str:
    if isinstance(value, str):
        return '"' + "".join(f"\\U{ord(character):08x}" for character in value if not _lone(character)) + '"'
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return repr(value)


def _lone(character: str) -> bool:
    return 0xD800 <= ord(character) <= 0xDFFF


def test_the_servers_own_namespace_is_shared_on_purpose_only() -> None:
    text = f'[default]\ntoken = "{SECRET}"'
    (tenant,) = read_tenants(text, "elsewhere")
    assert tenant.namespace == "default"
    with pytest.raises(TokensFileError, match=r"\[default\] namespace: a tenant with this name would share"):
        read_tenants(text, "default")
    (tenant,) = read_tenants(f'{text}\nnamespace = "default"', "default")
    assert tenant.namespace == "default"
    (tenant,) = read_tenants(f'{text}\nnamespace = "other"', "default")
    assert tenant.namespace == "other"
