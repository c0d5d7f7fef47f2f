"""How a repository is set up and tested, decided from what its files say; nothing is run here."""
