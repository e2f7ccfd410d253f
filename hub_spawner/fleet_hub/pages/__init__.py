"""Templates and assets of the Hub's pages and of the service's."""
