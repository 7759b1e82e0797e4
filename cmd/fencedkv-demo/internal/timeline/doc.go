// Package timeline draws what happens as a sequence diagram, one lane each for
// client A, the lock, client B and the store, as it happens. It needs 79
// columns and a terminal or reader that knows UTF-8.
package timeline
