"""The catalog's models, variants, adapters and calibrations as typed values."""
