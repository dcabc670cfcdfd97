"""The population trainer: one function from (data, model, members) to results."""

from memohop.training.member import Member as Member
from memohop.training.member import MemberResult as MemberResult
from memohop.training.member import grid as grid
from memohop.training.rules import Rules as Rules
from memohop.training.select import Selection as Selection
from memohop.training.select import select as select
from memohop.training.trainer import train as train
