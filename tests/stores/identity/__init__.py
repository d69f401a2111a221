"""Keys, regions and endpoints without botocore: the same as with it."""
