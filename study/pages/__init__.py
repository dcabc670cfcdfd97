"""The study's tables, figures and page."""
