"""``python -m fleet_hub.service``: the controller, supervised."""

from __future__ import annotations

from fleet_hub.service.supervisor import main


if __name__ == "__main__":
    main()
