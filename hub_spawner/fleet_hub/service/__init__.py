"""The controller's process: HTTP, WebSockets and pages."""
