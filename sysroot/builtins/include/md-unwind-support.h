/* No signal frames: nothing to add. */
