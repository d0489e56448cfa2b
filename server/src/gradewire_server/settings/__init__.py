"""Every setting of the server: flags, variables and TOML keys follow from one class."""
