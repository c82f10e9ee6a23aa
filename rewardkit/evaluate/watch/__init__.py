"""`rewardkit eval watch`: every checkpoint of a run is evaluated once, when it is complete."""
