"""The HTTP gateway as the server's child: what it is handed, its process, and who starts it again."""
