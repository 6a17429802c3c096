"""What the page shows, as trees of elements made from reports. Pure: no browser, no arithmetic, no rules."""
