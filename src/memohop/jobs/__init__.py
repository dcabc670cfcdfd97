"""What is trained: settings, runs, and their execution."""
