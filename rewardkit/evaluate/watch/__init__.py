"""`rewardkit eval watch`: evaluate every checkpoint of a run once, as soon as it is complete."""
