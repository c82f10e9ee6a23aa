"""`rewardkit leaderboard`: several runs on the same sets of questions, in one table."""
