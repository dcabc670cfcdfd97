"""Looks a graph over: what it is like, who knows the labels, and what not to trust."""

from memohop.data.audit.examine import Audit as Audit
from memohop.data.audit.examine import audit as audit
