"""Forward passes over texts with little padding, bounded memory, the faster precision and exact gradients."""
