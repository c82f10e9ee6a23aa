"""Report pages: a neutral model of what a page says, and one HTML file that shows it."""
