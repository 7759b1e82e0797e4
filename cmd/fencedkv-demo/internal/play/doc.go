// Package play directs the demonstration: it starts the processes, tells them
// what to do, stops one of them at the wrong moment, and ends them all. It goes
// by what they report and never by the clock.
package play
