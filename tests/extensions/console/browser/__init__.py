"""`tsctl console` in Debian's Chromium, driven by Playwright: `make browser`."""
