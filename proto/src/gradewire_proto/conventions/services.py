"""Names of the services, as gRPC and gRPC health have them."""

from typing import Final

SCORING: Final = "gradewire.v1.Scoring"
REFERENCES: Final = "gradewire.v1.References"
MODELS: Final = "gradewire.v1.Models"
JUDGING: Final = "gradewire.v1.Judging"
"""Health says of it whether judges can be had, for metrics and comparisons; unknown there where none is configured."""
MONITORING: Final = "gradewire.v1.Monitoring"
