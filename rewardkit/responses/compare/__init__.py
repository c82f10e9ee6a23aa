"""`rewardkit compare`: two scorers on the same responses."""
