"""The merge train's rules: what is built, tested and landed next."""
