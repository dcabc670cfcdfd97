"""Results that nobody measured, the tables made of them, and their page."""

from made_up_results import findings as findings
from made_up_results import page as page
from made_up_results import tables as tables
