"""The differential gate's rules: base's and the change's tests on both codes."""
