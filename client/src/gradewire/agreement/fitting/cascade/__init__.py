"""The fit of metric `auto`: when the cascade asks its judge, and with what guarantee."""
