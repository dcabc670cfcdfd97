"""The command line: parse, call, show. PyTorch is imported where a command needs it, not here.

There is one file for each group of commands, and importing it adds them to the app. The names below
are for the commands of the study.
"""

from memohop.cli import _data as _data
from memohop.cli import _fit as _fit
from memohop.cli import _predict as _predict
from memohop.cli import _train as _train
from memohop.cli._app import OUTPUT as OUTPUT
from memohop.cli._app import Device as Device
from memohop.cli._app import Folder as Folder
from memohop.cli._app import Json as Json
from memohop.cli._app import app as app
from memohop.cli._app import main as main
from memohop.cli._app import make_app as make_app
from memohop.cli._app import print_json as print_json
from memohop.cli._app import remark as remark
from memohop.cli._app import run_command as run_command
from memohop.cli._app import show as show
from memohop.cli._app import warnings_as_remarks as warnings_as_remarks
