"""Colors along a ray, front to back."""

from derive import Axes, Axis, CumProd, Forward, Input, Sum

R = Axes("R")  # rays, or pixels
S, C = Axis("S"), Axis("C")  # samples along a ray, channels


class AlphaCompositing(Forward):
    """Every sample adds its color by its opacity, as far as those before it let light through.

    Source: Kerbl et al. (2023), "3D Gaussian splatting for real-time radiance field rendering",
    equations 2 and 3.
    """

    alpha = Input(R, S)
    color = Input(R, S, C)

    transmittance = CumProd(1 - alpha, S, exclusive=True)
    weights = alpha * transmittance
    y = Sum(weights * color, S)
