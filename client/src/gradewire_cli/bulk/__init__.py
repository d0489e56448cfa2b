"""`gradewire bulk`: score large inputs on Ray Data, in parts that survive an interruption."""
