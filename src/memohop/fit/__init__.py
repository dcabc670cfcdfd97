"""Your own graph: a search for the best model, and a model that can be saved and used."""

from memohop.fit._candidate import Setting as Setting
from memohop.fit._certainty import Reliability as Reliability
from memohop.fit._ensemble import Component as Component
from memohop.fit._features import Feature as Feature
from memohop.fit._graph import Inputs as Inputs
from memohop.fit._inputs import how_to_read as how_to_read
from memohop.fit._inputs import read_alike as read_alike
from memohop.fit._keep import MODEL_FOLDER as MODEL_FOLDER
from memohop.fit._neighbourhood import Matrix as Matrix
from memohop.fit._predictions import table_of as table_of
from memohop.fit._predictions import write_predictions as write_predictions
from memohop.fit._record import FitRecord as FitRecord
from memohop.fit._workers import ray_workers as ray_workers
from memohop.fit.candidates._fitted_network import Network as Network
from memohop.fit.candidates._linear import Linear as Linear
from memohop.fit.candidates._on_curve import OnCurve as OnCurve
from memohop.fit.candidates._on_curve import off_curve as off_curve
from memohop.fit.candidates._on_curve import plain_model as plain_model
from memohop.fit.candidates._trees import Trees as Trees
from memohop.fit.estimator import GraphEstimator as GraphEstimator
from memohop.fit.estimators import GraphClassifier as GraphClassifier
from memohop.fit.estimators import GraphRegressor as GraphRegressor
from memohop.fit.estimators import MMPClassifier as MMPClassifier
from memohop.fit.estimators import load_model as load_model
from memohop.fit.on_blocks import outputs_of_prepared as outputs_of_prepared
