"""What all load test scenarios share. Standard library only."""
