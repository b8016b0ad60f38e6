"""What a method learns from: windows divided in time, scaled, with labels."""
