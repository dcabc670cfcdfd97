"""The command line: parse, call, print. PyTorch is imported where a command needs it, not here.

There is one file for each group of commands, and importing it adds them to the app.
"""

from memohop.cli import data as data
from memohop.cli import fit as fit
from memohop.cli import predict as predict
from memohop.cli import train as train
from memohop.cli.app import main as main
