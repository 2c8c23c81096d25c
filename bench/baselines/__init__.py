"""What each part of a deployment costs before a line of one's own code runs."""
