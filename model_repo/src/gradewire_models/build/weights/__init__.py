"""Published weights of an encoder, with an adapter merged in where there is one."""
