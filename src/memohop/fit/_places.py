r"""Longitude and latitude as points in space.

A place at longitude :math:`\lambda` and latitude :math:`\varphi` is the point

.. math:: (\cos \varphi \cos \lambda, \cos \varphi \sin \lambda, \sin \varphi)

of the unit sphere, so that 179 degrees east is next to 179 degrees west, and degrees of longitude
are as short near the poles as they are: the nearest points are the nearest on the sphere. A missing
place is its centre.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from memohop.errors import UsageError
from memohop.fit._neighbourhood import Matrix

Places = NDArray[np.float64]
"""Of each pair, longitude and latitude, ``[pairs, 2, 4]``: the number of the feature, the mean and
the standard deviation of its values, and the feature that is 1 where it is missing, or -1."""


def points(x: Matrix, places: Places) -> NDArray[np.float32]:
    """The points of each node, side by side, ``[nodes, 3 * pairs]``."""
    on_sphere = []
    for pair in places:
        degrees, absent = [], np.zeros(x.shape[0], dtype=bool)
        for feature, mean, std, flag in pair:
            degrees.append(_dense(x, feature) * std + mean)
            if flag >= 0:
                absent |= _dense(x, flag) > 0
        longitude, latitude = np.deg2rad(degrees)
        around = np.cos(latitude)
        point = [around * np.cos(longitude), around * np.sin(longitude), np.sin(latitude)]
        on_sphere.append(np.where(absent, 0, point).T)
    return np.hstack(on_sphere).astype(np.float32)


def checked_places(places: Places, features: int) -> Places:
    """Those that were saved; a ``UsageError`` if they are not of so many features."""
    feature, _, std, flag = np.moveaxis(places, -1, 0)
    known = (feature >= 0) & (feature < features) & (flag >= -1) & (flag < features) & (std > 0)
    if not known.all() or not 0 < len(places) <= features:
        raise UsageError("the places are not those of features")
    return places


def _dense(x: Matrix, feature: float) -> NDArray[np.float64]:
    """One of the features."""
    column = x[:, [int(feature)]]
    column = column.toarray() if sparse.issparse(column) else column
    return np.asarray(column[:, 0], dtype=np.float64)
