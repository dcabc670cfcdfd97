"""Examines a graph: what it is like, what predicts the labels, and what not to trust."""

from memohop.data.audit._examine import HEARD as HEARD
from memohop.data.audit._examine import Advice as Advice
from memohop.data.audit._examine import Audit as Audit
from memohop.data.audit._examine import audit as audit
from memohop.data.audit._measures import FOLDS as FOLDS
from memohop.data.audit._measures import homophily_bins as homophily_bins
from memohop.data.audit._measures import local_homophily as local_homophily
