"""What several commands share: options, printing and progress."""
