"""Kinds of values that settings take, however they are given."""

import re
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, ByteSize, Field, SecretStr
from pydantic_settings import NoDecode


def _split(value: Any) -> Any:
    return [part for part in re.split(r"[,\s]+", value) if part] if isinstance(value, str) else value


def blank_is_none(value: Any) -> Any:
    """An empty text switches an optional setting off."""
    return None if isinstance(value, str) and not value.strip() else value


Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)]
Secrets = Annotated[tuple[SecretStr, ...], NoDecode, BeforeValidator(_split)]
OptionalPath = Annotated[Path | None, BeforeValidator(blank_is_none)]
OptionalSecret = Annotated[SecretStr | None, BeforeValidator(blank_is_none)]
Bytes = Annotated[ByteSize, Field(ge=1)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
PositiveSeconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
Port = Annotated[int, Field(ge=0, le=65535)]
Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]
