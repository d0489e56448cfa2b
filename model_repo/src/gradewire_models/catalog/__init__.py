"""The catalog of models, variants, adapters and calibrations that can be built, as typed values."""
