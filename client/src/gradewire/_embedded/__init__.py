"""How this package reaches server and models; its modules are imported only when they are asked for."""
