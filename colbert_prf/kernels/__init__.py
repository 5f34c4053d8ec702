"""Arrays in, arrays out: the arithmetic of late interaction, each kernel beside its plain NumPy definition."""
