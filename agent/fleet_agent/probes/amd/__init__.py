"""AMD devices, by their tools' word: presence only, never a place to run on."""
