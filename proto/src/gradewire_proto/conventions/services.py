"""Names of the services, as gRPC and gRPC health have them."""

from typing import Final

SCORING: Final = "gradewire.v1.Scoring"
REFERENCES: Final = "gradewire.v1.References"
MODELS: Final = "gradewire.v1.Models"
JUDGING: Final = "gradewire.v1.Judging"
"""In health alone: whether metrics of a judge can be had. Unknown there where no judge is configured."""
