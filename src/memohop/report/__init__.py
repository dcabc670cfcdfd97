"""What people look at: tables for the terminal, charts, and pages. Nothing here computes scores."""
