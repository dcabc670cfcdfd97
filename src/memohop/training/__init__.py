"""The population trainer: one function from (data, model, members) to results."""

from memohop.training.job import DEFAULT_RULES as DEFAULT_RULES
from memohop.training.job import Enough as Enough
from memohop.training.job import Job as Job
from memohop.training.job import Rules as Rules
from memohop.training.member import NUMBERS as NUMBERS
from memohop.training.member import RATES as RATES
from memohop.training.member import Member as Member
from memohop.training.member import Result as Result
from memohop.training.member import Selection as Selection
from memohop.training.member import grid as grid
from memohop.training.member import select as select
from memohop.training.scale import Scale as Scale
from memohop.training.scale import standardised as standardised
