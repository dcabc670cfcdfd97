"""GPU kernels, in Triton: an operation finds them with :func:`memohop.nn.kernels_for`."""

from memohop.nn._kernels.attention import dynamic_scores as dynamic_scores
from memohop.nn._kernels.attention import dynamic_scores_backward as dynamic_scores_backward
from memohop.nn._kernels.dense import batched_product as batched_product
from memohop.nn._kernels.gates import gated_update as gated_update
from memohop.nn._kernels.gates import gated_update_backward as gated_update_backward
from memohop.nn._kernels.products import dropout as dropout
from memohop.nn._kernels.products import inner as inner
from memohop.nn._kernels.products import product as product
from memohop.nn._kernels.products import row_softmax as row_softmax
from memohop.nn._kernels.products import row_sums as row_sums
