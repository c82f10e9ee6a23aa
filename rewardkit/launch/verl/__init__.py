"""What rewardkit knows of verl's configuration, by release."""
