/* Needs what `plugin` exports. */
extern long next(void);
extern long zeroed;
long twice_next(void) { return 2 * next(); }
long see_zeroed(void) { return zeroed; }
