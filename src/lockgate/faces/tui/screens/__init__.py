"""The screens of the board, and the boxes over them."""
