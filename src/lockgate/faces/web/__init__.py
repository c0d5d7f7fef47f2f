"""The web board: pages made on the server, kept fresh by the feed."""
