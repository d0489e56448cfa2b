"""What people have, read as items: names of fields, cells with lists, tables; no library of tables is imported."""
