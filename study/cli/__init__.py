"""The commands of the study: one file for each group, and importing it adds them to the app."""

from study.cli import bench as bench
from study.cli import report as report
from study.cli import run as run
from study.cli import store as store
from study.cli.app import main as main
