"""What a training does: the settings of a recipe, and recipes as TOML files."""
