"""`rewardkit recipes import`: launch scripts as recipes; a script is read and never run."""
