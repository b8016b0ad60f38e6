"""What the methods made of networks share."""
