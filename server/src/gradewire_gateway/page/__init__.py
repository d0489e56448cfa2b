"""The page at the gateway's own address: its files, who may use it, and the report of rows with labels."""
