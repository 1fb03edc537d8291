"""Optimal expected returns of the team, found by an independent solver."""

OPTIMA = {
    "wildfire-2x3-S0": 4.0,
    "wildfire-2x3-S1": 85.98,
    "wildfire-2x3-S2": 73.78,
    "wildfire-2x3-S3": 84.13,
    "wildfire-3x3-S0": 8.0,
    "wildfire-3x3-S1": 7.89,
    "wildfire-3x3-S2": 128.59,
    "wildfire-3x3-S3": 98.34,
}
