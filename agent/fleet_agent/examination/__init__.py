"""Why does this computer run nothing?  One finding for each thing that must be so."""
