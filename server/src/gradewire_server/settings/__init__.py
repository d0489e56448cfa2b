"""Every setting of the server: flags, variables and TOML keys follow from the groups here (`engine`, `server`)."""
