"""`loomc bisect`: where a kernel's results part from what its operations mean, or from what a device recorded."""
