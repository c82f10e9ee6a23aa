"""What a training run leaves behind: read into one table, shown, judged and drawn."""
