"""The list of a server's models: the server's type, its models, and which of them see images."""

from typing import Any, Final

from gradewire_server.domain.items import quoted, shortened
from gradewire_server.judges.remote import errors
from gradewire_server.judges.remote.errors import RemoteError, Reply
from gradewire_server.judges.remote.openai_dialect import ServerKind

_MAX_LISTED_MODELS: Final = 5


def kind_of(reply: Reply) -> ServerKind | None:
    """Return a server's type according to its list of models, or None if the reply lists no model."""
    entries = _entries(reply, "data")
    owners = {str(each.get("owned_by", "")) for each in entries}
    known = (kind for kind in (ServerKind.LLAMA_CPP, ServerKind.VLLM) if kind.value in owners)
    return next(known, ServerKind.OTHER if any("id" in each for each in entries) else None)


def missing_model(reply: Reply, model: str) -> RemoteError | None:
    """Return the error for a list of models without the model, or None.

    A list proves nothing: many servers also know other names, such as names of deployments (Azure), without a tag
    (Ollama) or with the name of a provider (OpenRouter). llama.cpp accepts any name.
    """
    names = [str(each["id"]) for each in _entries(reply, "data") if "id" in each]
    if not names or kind_of(reply) is ServerKind.LLAMA_CPP or {model, f"models/{model}"} & set(names):
        return None
    shown = ", ".join(shortened(name) for name in names[:_MAX_LISTED_MODELS])
    return errors.refused(
        f"{errors.server_at(reply.address)} has no model {quoted(model)}, only {shown}"
        f"{' and others' if len(names) > _MAX_LISTED_MODELS else ''}. Check {errors.MODEL_SETTING}"
    )


def sees_images(reply: Reply, model: str) -> bool | None:
    """Return True if a model accepts images according to the server's list of models, or None if this is unknown."""
    entries = _entries(reply, "models", "data")
    own = [each for each in entries if model in (each.get("id"), each.get("name"), each.get("model"))]
    for entry in own or (entries if len(_entries(reply, "data")) == 1 else []):
        able = entry.get("capabilities")
        if isinstance(able, list):
            return "multimodal" in able or "vision" in able
        if isinstance(able, dict) and isinstance(able.get("vision"), bool):
            return bool(able["vision"])
        if isinstance(able, dict) and isinstance(able.get("image_input"), dict):  # Anthropic's
            return able["image_input"].get("supported") is True
        architecture = entry.get("architecture")
        if isinstance(architecture, dict) and isinstance(architecture.get("input_modalities"), list):
            return "image" in architecture["input_modalities"]
    return None


def _entries(reply: Reply, *lists: str) -> list[dict[str, Any]]:
    try:
        body = errors.json_object(reply.content)
    except RemoteError:
        return []
    listed = [body.get(name) for name in lists]
    return [each for entries in listed if isinstance(entries, list) for each in entries if isinstance(each, dict)]
