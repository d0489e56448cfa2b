"""The catalog of what can be built: models, variants, adapters and calibrations as typed values."""
