"""`rewardkit select`: training rows by how often the policy solves them."""
