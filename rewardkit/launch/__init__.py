"""What rewardkit knows of launching verl."""
