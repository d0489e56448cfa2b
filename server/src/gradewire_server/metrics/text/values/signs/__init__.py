"""What is no amount and no date: places in an order, indices, locants, lists."""
