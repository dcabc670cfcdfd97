"""What commands are given: a small experiment, and results that nobody measured."""

from made_up_results import findings as findings
from made_up_results import page as page
from made_up_results import tables as tables
from tiny_experiment import tiny_file as tiny_file
