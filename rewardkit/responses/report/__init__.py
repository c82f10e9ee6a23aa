"""`rewardkit report`: scored responses as one HTML page."""
