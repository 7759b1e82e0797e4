// Command testreport turns the output of go test -json, on its standard input,
// into the summary that go test prints without -json, and is stricter about
// what counts as a success:
//
//	go test -json ./... | go run ./cmd/testreport --allow-skips skips.txt
//
// It exits 1 if a test or a build failed, if no test ran at all, if the stream
// ends before a package does, or if a test was skipped that the list of allowed
// skips does not name. Exit status 2 is wrong usage.
//
// The list has one skip a line, blank lines and those that begin with # apart:
// package, test and the reason, separated by blanks. A listed skip that did
// not happen in a package of this run is noted and no failure.
package main

import "os"

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
