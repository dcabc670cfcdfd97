"""Examines a graph: what it is like, what predicts the labels, and what not to trust."""

from memohop.data.audit.examine import Advice as Advice
from memohop.data.audit.examine import Audit as Audit
from memohop.data.audit.examine import audit as audit
from memohop.data.audit.examine import distrust as distrust
