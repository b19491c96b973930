"""The mission types that come with the product, one file each."""
