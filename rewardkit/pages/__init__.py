"""HTML pages: a model of their content, and the kit of templates and charts that renders them."""
