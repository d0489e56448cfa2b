"""`gradewire bulk`: scores large inputs on Ray Data, in parts that outlive any process."""
