"""Sends notifications: to services by Apprise, to programs by webhooks, to this desktop."""

from lockgate.adapters.notify.addresses import FileAddresses
from lockgate.adapters.notify.notifier import ProcessNotifier

__all__ = ["FileAddresses", "ProcessNotifier"]
