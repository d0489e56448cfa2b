"""Who may read /metrics, which tell of all tenants together."""

from collections.abc import Mapping

from gradewire_server.domain.caller import Scope
from gradewire_server.rpc.authentication import Authentication
from gradewire_server.rpc.errors import UnauthenticatedError


def why_refused(authentication: Authentication | None, authorization: str) -> tuple[int, Mapping[str, str]] | None:
    """The HTTP status and the JSON to refuse a request with; None where it is let in.

    Args:
        authentication: Knows the tokens; None: everybody is let in.
        authorization: The header of that name; empty where there is none.
    """
    if authentication is None:
        return None
    try:
        caller = authentication.check(authorization, "")
    except UnauthenticatedError:
        return 401, {"error": "the header Authorization: Bearer TOKEN with a token of this server is needed"}
    if Scope.ADMIN not in caller.scopes:
        return 403, {"error": f"metrics need a token with the scope {Scope.ADMIN}: they tell of all tenants"}
    return None
