"""The built-in datasets: one module per dataset."""
