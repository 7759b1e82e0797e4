// Package timeline draws what happens as a sequence diagram, one lane each for
// client A, the lock, client B and the store, as it happens. The lanes take the
// width there is. Below 80 columns the texts beside them get shorter, and below
// 53 what does not fit is cut off at the right. The terminal or reader must know
// UTF-8.
package timeline
