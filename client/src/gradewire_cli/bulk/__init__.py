"""`gradewire bulk`: score large inputs on Ray Data, in parts that survive any process."""
